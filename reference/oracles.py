"""The oracles of diff_test.py: other programs that compute the logits of a checkpoint, or its text. Another one is another row of a table."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable

import numpy as np

from checkpoint import Shape, Tensors, float_values

HERE = Path(__file__).resolve().parent


class Missing(Exception):
    """The oracle cannot be had here; the text says what to give or install."""


@dataclass
class Case:
    """One checkpoint and the tokens fed from position 0."""

    path: Path
    shape: Shape
    tensors: Tensors
    tokens: list[int]
    group_size: int


@dataclass
class Places:
    """Where things that are no part of this tree are."""

    node_folder: Path | None = None
    llama2c: Path | None = None


@dataclass(frozen=True)
class LogitsOracle:
    """logits(case, places) -> [positions, vocab_size]. Quantized weights are given multiplied out, and activations stay floats.

    slack: how many times the bound of docs/testing.md its own arithmetic may take. log_probabilities: it tells those instead of logits.
    """

    name: str
    logits: Callable[[Case, Places], np.ndarray]
    slack: float
    log_probabilities: bool = False


@dataclass(frozen=True)
class TextOracle:
    """A program that prints the text of a checkpoint: llama2.c's command line. quantized: which files it reads."""

    name: str
    quantized: bool


def half_split_rows(rows: np.ndarray, heads: int) -> np.ndarray:
    """Query or key rows from pairs side by side (2 i, 2 i + 1) to the halves (i, i + head_size / 2) that transformers rotates."""
    size = rows.shape[0] // heads
    return rows.reshape(heads, size // 2, 2, rows.shape[1]).transpose(0, 2, 1, 3).reshape(rows.shape)


def transformers_state(shape: Shape, weights: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    """The state dictionary of a LlamaForCausalLM."""
    names = {
        "attention_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "wq": "self_attn.q_proj",
        "wk": "self_attn.k_proj",
        "wv": "self_attn.v_proj",
        "wo": "self_attn.o_proj",
        "w1": "mlp.gate_proj",
        "w2": "mlp.down_proj",
        "w3": "mlp.up_proj",
    }
    embedding = weights["embedding"][0]
    state = {
        "model.embed_tokens.weight": embedding,
        "model.norm.weight": weights["final_norm"][0][0],
        "lm_head.weight": embedding if shape.shared else weights["classifier"][0],
    }
    for name, theirs in names.items():
        for layer, values in enumerate(weights[name]):
            if name in ("wq", "wk"):
                values = half_split_rows(values, shape.n_heads if name == "wq" else shape.n_kv_heads)
            state[f"model.layers.{layer}.{theirs}.weight"] = values if values.shape[0] > 1 else values[0]
    return state


def transformers_logits(case: Case, _: Places) -> np.ndarray:
    try:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as problem:
        raise Missing(f"{problem}: install transformers==4.39.3 beside torch") from None
    shape = case.shape
    config = LlamaConfig(
        vocab_size=shape.vocab_size,
        hidden_size=shape.dim,
        intermediate_size=shape.hidden_dim,
        num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_heads,
        num_key_value_heads=shape.n_kv_heads,
        max_position_embeddings=shape.seq_len,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=shape.shared,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).eval()
    state = transformers_state(shape, float_values(case.tensors))
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()}, strict=True)
    with torch.no_grad():
        return model(torch.tensor([case.tokens])).logits[0].numpy()


def llama_cpp_logits(case: Case, places: Places) -> np.ndarray:
    try:
        import export_gguf
    except ImportError as problem:
        raise Missing(f"{problem}: install gguf==0.17.1") from None
    if places.node_folder is None or not (places.node_folder / "node_modules" / "node-llama-cpp").is_dir():
        raise Missing("give --node-folder, a folder in which node-llama-cpp@3.21.1 is installed")
    # llama.cpp wants a piece for every byte: smaller vocabularies are filled up with rows of zeros.
    rows = max(case.shape.vocab_size, 259)
    weights = float_values(case.tensors)
    for name in ("embedding", "classifier"):
        if name in weights:
            weights[name] = [np.pad(weights[name][0], ((0, rows - case.shape.vocab_size), (0, 0)))]
    with tempfile.TemporaryDirectory() as folder:
        gguf, tokens, output = (Path(folder).resolve() / name for name in ("model.gguf", "tokens.json", "probabilities"))
        export_gguf.write(gguf, replace(case.shape, vocab_size=rows), weights)
        tokens.write_text(json.dumps(case.tokens))
        command = ["node", str(HERE / "llama_cpp_logits.mjs"), str(gguf), str(tokens), str(output)]
        done = subprocess.run(command, cwd=places.node_folder, capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"llama.cpp failed: {done.stderr.decode(errors='replace')[-2000:]}")
        data = output.read_bytes()
    probabilities = np.frombuffer(data, "<f4").reshape(len(case.tokens), rows)[:, : case.shape.vocab_size].astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.log(probabilities / probabilities.sum(-1, keepdims=True))


def model_py_logits(case: Case, places: Places) -> np.ndarray:
    import torch

    if places.llama2c is None or not (places.llama2c / "model.py").is_file():
        raise Missing("give --llama2c, a folder of llama2.c with model.py")
    spec = importlib.util.spec_from_file_location("llama2c_model", places.llama2c / "model.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["llama2c_model"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    shape = case.shape
    arguments = module.ModelArgs(
        dim=shape.dim,
        n_layers=shape.n_layers,
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads,
        vocab_size=shape.vocab_size,
        hidden_dim=shape.hidden_dim,
        norm_eps=1e-5,
        max_seq_len=shape.seq_len,
    )
    model = module.Transformer(arguments).eval()
    weights = float_values(case.tensors)
    if not shape.shared:
        model.tok_embeddings.weight = torch.nn.Parameter(torch.empty(shape.vocab_size, shape.dim))
    names = {"wq": "attention.wq", "wk": "attention.wk", "wv": "attention.wv", "wo": "attention.wo", "w1": "feed_forward.w1",
             "w2": "feed_forward.w2", "w3": "feed_forward.w3", "attention_norm": "attention_norm", "ffn_norm": "ffn_norm"}
    classifier = weights["embedding" if shape.shared else "classifier"][0]
    state = {"tok_embeddings.weight": weights["embedding"][0], "output.weight": classifier, "norm.weight": weights["final_norm"][0][0]}
    for name, theirs in names.items():
        for layer, values in enumerate(weights[name]):
            state[f"layers.{layer}.{theirs}.weight"] = values if values.shape[0] > 1 else values[0]
    missing, unexpected = model.load_state_dict({name: torch.tensor(value) for name, value in state.items()}, strict=False)
    if unexpected or any("freqs" not in name and "mask" not in name for name in missing):
        raise RuntimeError(f"model.py takes other weights than expected: {missing}, {unexpected}")
    tokens = torch.tensor([case.tokens])
    with torch.no_grad():
        return model(tokens, tokens)[0].numpy()  # with targets it gives all positions


LOGITS_ORACLES = (
    LogitsOracle("transformers", transformers_logits, slack=1.0),
    LogitsOracle("llama.cpp", llama_cpp_logits, slack=2.0, log_probabilities=True),
    LogitsOracle("model.py", model_py_logits, slack=1.0),
)
TEXT_ORACLES = (TextOracle("run", quantized=False), TextOracle("runq", quantized=True))


def printed_text(oracle: TextOracle, case: Case, tokenizer: Path, arguments: list[str], places: Places) -> bytes:
    """What the program prints."""
    program = places.llama2c / oracle.name if places.llama2c else None
    if program is None or not program.is_file():
        raise Missing(f"give --llama2c, a folder of llama2.c with {oracle.name} built in it")
    command = [str(program.resolve()), str(case.path), "-z", str(tokenizer), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{oracle.name} failed: {done.stderr.decode(errors='replace')}")
    return done.stdout
