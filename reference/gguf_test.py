#!/usr/bin/env python3
"""Models of every GGUF element type against their equations in float64: every logit at every position, on every kernel set.

    build/oracles/bin/python -B reference/gguf_test.py --library build/release/src/libproofinfer.so.1

reference/install.sh makes that environment. The files are written with the PyPI package gguf, which also says what their weights are. What the bounds
mean: docs/gguf.md. Before anything is compared, oracles with one mistake each must be out of bounds. Exit code 0: all within; 1: not.
"""
from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bindings" / "python" / "src"))

# Types that the package quantizes to itself; K types get random blocks with scales for weights of about 0.1.
QUANTIZED = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
RANDOM_BLOCKS = {"Q4_K": {0: 2.1e-4, 2: 2.6e-3}, "Q5_K": {0: 1.0e-4, 2: 2.6e-3}, "Q6_K": {208: 1.0e-4}}
FLOATS = ["F32", "F16", "BF16"]
DRAWS = 3
UNIT = 2.0**-24


@dataclass
class Toy:
    name: str
    types: list[str]  # of the matrices, in turn
    dim: int = 256
    hidden_dim: int = 256
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    head_size: int = 64
    vocab_size: int = 75
    epsilon: float = 1e-5
    rope_base: float = 10000.0
    linear: float = 1.0
    factors: np.ndarray | None = None
    tied: bool = True
    weights: dict[str, np.ndarray] = field(default_factory=dict)  # float64, as the file's blocks mean them
    kinds: dict[str, str] = field(default_factory=dict)


def toys() -> list[Toy]:
    rows = [Toy(name, [name]) for name in FLOATS + QUANTIZED + list(RANDOM_BLOCKS)]
    rows.append(Toy("mixed", ["Q4_K", "Q6_K", "F16", "Q8_0"], tied=False, epsilon=1e-6, rope_base=500000.0))
    rows.append(Toy("own_heads", ["Q4_1", "F32"], dim=96, hidden_dim=160, head_size=32, n_heads=3, n_kv_heads=1, linear=4.0))
    rows.append(Toy("own_head_size", ["Q5_0", "BF16", "Q8_0"], dim=96, hidden_dim=160, head_size=32, n_heads=4, n_kv_heads=2,
                    factors=np.linspace(1, 8, 16, dtype=np.float32)))
    return rows


def blocks_of(name: str, rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of a matrix in a file, and its weights."""
    kind = gguf.GGMLQuantizationType[name]
    if name in RANDOM_BLOCKS:
        block, size = gguf.GGML_QUANT_SIZES[kind]
        data = rng.integers(0, 256, (rows * columns // block, size), np.uint8)
        for place, scale in RANDOM_BLOCKS[name].items():
            data[:, place : place + 2] = (scale * rng.uniform(0.5, 1.5, len(data))).astype(np.float16)[:, None].view(np.uint8)
        data = data.reshape(rows, -1)
    else:
        values = (rng.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
        data = gguf.quantize(values, kind)
    return data, gguf.dequantize(data, kind).reshape(rows, columns).astype(np.float64)


def write(toy: Toy, path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(toy.dim)
    writer.add_feed_forward_length(toy.hidden_dim)
    writer.add_block_count(toy.n_layers)
    writer.add_head_count(toy.n_heads)
    writer.add_head_count_kv(toy.n_kv_heads)
    writer.add_layer_norm_rms_eps(toy.epsilon)
    writer.add_rope_freq_base(toy.rope_base)
    writer.add_key_length(toy.head_size)
    writer.add_value_length(toy.head_size)
    if toy.linear != 1.0:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(toy.linear)
    if toy.factors is not None:
        writer.add_tensor("rope_freqs.weight", toy.factors)
    count = 0

    def matrix(name: str, rows: int, columns: int) -> None:
        nonlocal count
        kind = toy.types[count % len(toy.types)]
        count += 1
        data, toy.weights[name] = blocks_of(kind, rng, rows, columns)
        toy.kinds[name] = kind
        if kind == "F32":
            writer.add_tensor(name + ".weight", data)
        else:
            writer.add_tensor(name + ".weight", data, raw_dtype=gguf.GGMLQuantizationType[kind])

    def norm(name: str) -> None:
        values = rng.uniform(0.5, 1.5, toy.dim).astype(np.float32)
        toy.weights[name] = values.astype(np.float64)
        writer.add_tensor(name + ".weight", values)

    q_dim, kv_dim = toy.n_heads * toy.head_size, toy.n_kv_heads * toy.head_size
    matrix("token_embd", toy.vocab_size, toy.dim)
    for layer in range(toy.n_layers):
        at = f"blk.{layer}."
        norm(at + "attn_norm")
        matrix(at + "attn_q", q_dim, toy.dim)
        matrix(at + "attn_k", kv_dim, toy.dim)
        matrix(at + "attn_v", kv_dim, toy.dim)
        matrix(at + "attn_output", toy.dim, q_dim)
        norm(at + "ffn_norm")
        matrix(at + "ffn_gate", toy.hidden_dim, toy.dim)
        matrix(at + "ffn_up", toy.hidden_dim, toy.dim)
        matrix(at + "ffn_down", toy.dim, toy.hidden_dim)
    norm("output_norm")
    if not toy.tied:
        matrix("output", toy.vocab_size, toy.dim)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Oracle:
    """The equations in float64, all positions at once. mistake: the name of one to make. activations: "exact", or "quantized" per 32 before matrices
    of block types. noise: moves each product by as much as rounding may, and each activation that is quantized by half of its step."""

    def __init__(self, toy: Toy, activations: str = "exact", noise: int = 0, mistake: str = "") -> None:
        self.toy, self.activations, self.mistake = toy, activations, mistake
        self.noise = np.random.default_rng(noise) if noise else None

    def signs(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.noise.integers(0, 2, shape) * 2.0 - 1.0

    def multiply(self, name: str, x: np.ndarray) -> np.ndarray:
        weight = self.toy.weights[name]
        if self.toy.kinds[name] not in FLOATS:
            groups = x.reshape(*x.shape[:-1], -1, 32)
            steps = np.abs(groups).max(-1, keepdims=True) / 32512.0
            if self.activations == "quantized":
                scaled = groups / np.where(steps == 0, 1.0, steps)
                x = (np.sign(scaled) * np.floor(np.abs(scaled) + 0.5) * steps).reshape(x.shape)
            if self.noise is not None:
                x = (groups + self.signs(groups.shape) * steps / 2).reshape(x.shape)
        out = x @ weight.T
        if self.noise is not None:
            out = out + self.signs(out.shape) * (UNIT * x.shape[-1]) * (np.abs(x) @ np.abs(weight).T)
        return out

    def normed(self, name: str, x: np.ndarray) -> np.ndarray:
        epsilon = 1e-2 if self.mistake == "epsilon" else self.toy.epsilon
        return self.toy.weights[name] * x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)

    def rotated(self, x: np.ndarray, heads: int) -> np.ndarray:
        toy, positions = self.toy, np.arange(x.shape[0])
        base = toy.rope_base * (2 if self.mistake == "base" else 1)
        frequencies = base ** (-np.arange(0, toy.head_size, 2) / toy.head_size) / (1 if self.mistake == "linear" else toy.linear)
        if toy.factors is not None and self.mistake != "factors":
            frequencies = frequencies / toy.factors.astype(np.float64)
        angles = positions[:, None] * frequencies
        pairs = x.reshape(x.shape[0], heads, toy.head_size // 2, 2)
        if self.mistake == "halves":
            pairs = x.reshape(x.shape[0], heads, 2, toy.head_size // 2).swapaxes(-1, -2)
        c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
        a, b = pairs[..., 0], pairs[..., 1]
        return np.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape[0], heads, toy.head_size)

    def attention(self, at: str, x: np.ndarray) -> np.ndarray:
        toy, n = self.toy, x.shape[0]
        q = self.rotated(self.multiply(at + "attn_q", x), toy.n_heads)
        k = self.rotated(self.multiply(at + "attn_k", x), toy.n_kv_heads)
        v = self.multiply(at + "attn_v", x).reshape(n, toy.n_kv_heads, toy.head_size)
        of_head = np.arange(toy.n_heads) // (toy.n_heads // toy.n_kv_heads)
        if self.mistake == "kv_head":
            of_head = np.arange(toy.n_heads) % toy.n_kv_heads
        scores = np.einsum("qhe,khe->hqk", q, k[:, of_head]) / np.sqrt(toy.head_size)
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hqk,khe->qhe", scores / scores.sum(-1, keepdims=True), v[:, of_head])
        return self.multiply(at + "attn_output", mixed.reshape(n, -1))

    def logits(self, tokens: list[int]) -> np.ndarray:
        x = self.toy.weights["token_embd"][tokens]
        for layer in range(self.toy.n_layers):
            at = f"blk.{layer}."
            x = x + self.attention(at, self.normed(at + "attn_norm", x))
            inner = self.normed(at + "ffn_norm", x)
            gate = self.multiply(at + "ffn_gate", inner)
            x = x + self.multiply(at + "ffn_down", gate / (1 + np.exp(-gate)) * self.multiply(at + "ffn_up", inner))
        return self.multiply("token_embd" if self.toy.tied else "output", self.normed("output_norm", x))


def engine_logits(path: Path, tokens: list[int], isa: str) -> np.ndarray:
    import proofinfer

    with proofinfer.Model(path, isa=isa) as model, model.session() as session:
        rows = []
        for token in tokens:
            session.append([token])
            rows.append(np.array(session.logits(), np.float64))
        return np.stack(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ["PROOFINFER_LIBRARY"] = arguments.library
    import proofinfer

    sets = [isa.name for isa in proofinfer.isas() if isa.available]
    failed = 0
    print(f"{'model':14} {'bound':>9} {'engine':>9} {'quantized':>9}   kernel sets: {' '.join(sets)}")
    with tempfile.TemporaryDirectory() as folder:
        for number, toy in enumerate(toys()):
            path = Path(folder) / f"{toy.name}.gguf"
            write(toy, path, arguments.seed + number)
            tokens = [int(t) for t in np.random.default_rng(number).integers(0, toy.vocab_size, 70)]
            exact = Oracle(toy).logits(tokens)
            bound = max(np.abs(Oracle(toy, noise=seed).logits(tokens) - exact).max() for seed in range(1, DRAWS + 1))
            mistakes = ["epsilon", "base", "kv_head", "halves"] + ["linear"] * (toy.linear != 1.0) + ["factors"] * (toy.factors is not None)
            for mistake in mistakes:
                if mistake == "kv_head" and toy.n_kv_heads == 1:
                    continue
                moved = np.abs(Oracle(toy, mistake=mistake).logits(tokens) - exact).max()
                if moved <= bound:
                    print(f"{toy.name}: the mistake {mistake} moves the logits by {moved:.3g} only: the bound {bound:.3g} would not notice it")
                    failed += 1
            quantized = Oracle(toy, activations="quantized").logits(tokens)
            worst = {isa: engine_logits(path, tokens, isa) for isa in sets}
            first = worst[sets[0]]
            error, near = np.abs(first - exact).max(), np.abs(first - quantized).max()
            equal = all(np.array_equal(first, rows) for rows in worst.values())
            good = bool(np.isfinite(error) and error <= bound and equal)
            failed += not good
            print(f"{toy.name:14} {bound:9.2e} {error:9.2e} {near:9.2e}   {'ok' if good else 'FAILED'}", flush=True)
    print("all within the bounds" if failed == 0 else f"{failed} failures")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
