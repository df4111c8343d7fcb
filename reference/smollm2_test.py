#!/usr/bin/env python3
"""SmolLM2-135M-Instruct in Q4_1, a model that people have, against llama.cpp and against the equations.

    build/oracles/bin/python -B reference/smollm2_test.py --library build/release/src/libproofinfer.so.1 \\
        --model "$(tests/tools/smollm2.sh)" --node-folder build/oracles/node

reference/install.sh all makes that environment. Along POSITIONS positions of two texts, the right token always given: the logits must be those of
docs/arithmetic.md, evaluated here in numpy's float32, the top token must be llama.cpp's wherever that leads by more than MARGIN, and the perplexity
of both texts end to end must be near llama.cpp's. Chats must become the ids that llama.cpp makes of the template that Jinja renders. What the figures say: docs/testing.md.
Exit code 0: all holds; 1: not.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np

import chat_templates
import gguf_test

HERE = Path(__file__).resolve().parent
TEXTS = ["prose", "technical"]
POSITIONS = 256
MARGIN = 0.1
PERPLEXITY = 0.01
TOP = 10
QUESTION = "What is the capital of France?"
PROMPTS = [None, "You are a helpful assistant."]
ANSWER_TOKENS = 40
f32 = np.float32


class Smollm2:
    """The file: numbers, template, and each weight as its block says it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        reader = gguf.GGUFReader(path)
        self.fields = {name: reader.get_field(name).contents() for name in reader.fields}
        self.tensors = {tensor.name.removesuffix(".weight"): tensor for tensor in reader.tensors}

        def number(name: str) -> int | float:
            return self.fields["llama." + name]

        self.layers = number("block_count")
        self.heads, self.kv_heads = number("attention.head_count"), number("attention.head_count_kv")
        self.dim, self.hidden = number("embedding_length"), number("feed_forward_length")
        self.head_size = self.dim // self.heads
        self.epsilon, self.rope_base = f32(number("attention.layer_norm_rms_epsilon")), f32(number("rope.freq_base"))

    def floats(self, name: str) -> np.ndarray:
        tensor = self.tensors[name]
        return gguf.dequantize(tensor.data, tensor.tensor_type).astype(f32).reshape(tensor.shape[::-1])

    def blocks(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The numbers [group][32][row], the scales [group][row] and the minima, if the type has such."""
        tensor = self.tensors[name]
        columns, rows = map(int, tensor.shape)
        kind = tensor.tensor_type.name
        data = np.ascontiguousarray(tensor.data).reshape(rows, columns // 32, -1)

        def half(at: int) -> np.ndarray:
            return np.ascontiguousarray(data[..., at : at + 2]).view(np.float16)[..., 0].T.astype(f32)

        if kind == "Q8_0":
            numbers, minima = data[..., 2:].view(np.int8), None
        elif kind == "Q4_1":
            numbers, minima = np.concatenate([data[..., 4:] & 15, data[..., 4:] >> 4], -1), half(2)
        else:
            sys.exit(f"{name}: the type {kind} is not expected in this file")
        return np.ascontiguousarray(numbers.transpose(1, 2, 0)).astype(np.float64), half(0), minima

    def oracle(self) -> gguf_test.Toy:
        model = gguf_test.Toy("SmolLM2", [], self.dim, self.hidden, self.layers, self.heads, self.kv_heads, self.head_size,
                              epsilon=float(self.epsilon), rope_base=float(self.rope_base))
        for name, tensor in self.tensors.items():
            model.weights[name] = self.floats(name).astype(np.float64)
            model.kinds[name] = tensor.tensor_type.name
        return model


def expf(x: np.ndarray) -> np.ndarray:
    """glibc's, in float64; unfused, which moves a double by a unit and hardly ever a float."""
    n = 32
    z = np.maximum(x, f32(-200)).astype(np.float64) * (float.fromhex("0x1.71547652b82fep+0") * n)
    k = np.rint(z)
    r = z - k
    high = float.fromhex("0x1.c6af84b912394p-5") / n**3 * r + float.fromhex("0x1.ebfce50fac4f3p-3") / n**2
    low = float.fromhex("0x1.62e42ff0c52d6p-1") / n * r + 1
    return ((high * (r * r) + low) * np.exp2(k / n)).astype(f32)


def of_libm(name: str, *arguments: np.ndarray) -> np.ndarray:
    function = getattr(ctypes.CDLL("libm.so.6"), name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * len(arguments)
    return np.vectorize(function, otypes=[f32])(*arguments)


class Rule:
    """docs/arithmetic.md in float32, operation by operation: sums in their order, all positions at once."""

    def __init__(self, model: Smollm2) -> None:
        self.model = model

    def multiply(self, name: str, x: np.ndarray) -> np.ndarray:
        numbers, scales, minima = self.model.blocks(name)
        groups = x.reshape(len(x), -1, 32)
        steps = np.abs(groups).max(-1) / f32(32512)
        quotients = groups / np.where(steps == 0, f32(1), steps)[..., None]
        q = np.trunc(quotients + np.copysign(f32(0.5), quotients).astype(np.float64))  # the sum is exact in float64
        out = np.zeros((len(x), numbers.shape[2]), f32)
        for g in range(len(numbers)):
            # Sums of integers are exact in float64, in any order; then each is rounded to a float once.
            term = (q[:, g] @ numbers[g]).astype(f32) * scales[g]
            if minima is not None:
                term = term + q[:, g].sum(-1, keepdims=True).astype(f32) * minima[g]
            out = out + term * steps[:, g, None]
        return out

    def normed(self, name: str, x: np.ndarray) -> np.ndarray:
        squares = np.add.accumulate(x * x, -1)[:, -1:]
        return self.model.floats(name) * ((f32(1) / np.sqrt(squares / f32(x.shape[-1]) + self.model.epsilon)) * x)

    def rotated(self, x: np.ndarray) -> np.ndarray:
        half = self.model.head_size // 2
        exponents = (2 * np.arange(half)).astype(f32) / f32(self.model.head_size)
        frequencies = f32(1) / of_libm("powf", self.model.rope_base, exponents)
        angles = np.arange(len(x)).astype(f32)[:, None] * frequencies
        c, s = of_libm("cosf", angles)[:, None], of_libm("sinf", angles)[:, None]
        pairs = x.reshape(len(x), -1, half, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        return np.stack([a * c - b * s, a * s + b * c], -1).reshape(len(x), -1, self.model.head_size)

    def attention(self, at: str, x: np.ndarray) -> np.ndarray:
        n = len(x)
        of_head = np.arange(self.model.heads) // (self.model.heads // self.model.kv_heads)
        q = self.rotated(self.multiply(at + "attn_q", x)).transpose(1, 0, 2)
        k = self.rotated(self.multiply(at + "attn_k", x)).transpose(1, 0, 2)[of_head]
        v = self.multiply(at + "attn_v", x).reshape(n, self.model.kv_heads, -1).transpose(1, 0, 2)[of_head]
        scores = np.zeros((self.model.heads, n, n), f32)
        for i in range(self.model.head_size):
            scores = scores + q[:, :, None, i] * k[:, None, :, i]
        scores = scores / np.sqrt(f32(self.model.head_size))
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, f32(-np.inf))
        scores = np.where(scores == -np.inf, f32(0), expf(scores - scores.max(-1, keepdims=True)))
        weights = scores / np.add.accumulate(scores, -1)[..., -1:]
        mixed = np.zeros(v.shape, f32)
        for t in range(n):
            mixed[:, t:] = mixed[:, t:] + weights[:, t:, t, None] * v[:, t, None]
        return self.multiply(at + "attn_output", mixed.transpose(1, 0, 2).reshape(n, -1))

    def logits(self, tokens: list[int]) -> np.ndarray:
        x = self.model.floats("token_embd")[tokens]
        for layer in range(self.model.layers):
            at = f"blk.{layer}."
            x = x + self.attention(at, self.normed(at + "attn_norm", x))
            inner = self.normed(at + "ffn_norm", x)
            gate = self.multiply(at + "ffn_gate", inner)
            gate = gate * (f32(1) / (f32(1) + expf(-gate)))
            x = x + self.multiply(at + "ffn_down", gate * self.multiply(at + "ffn_up", inner))
        return self.multiply("token_embd", self.normed("output_norm", x))


class LlamaCpp:
    """llama.cpp through the scripts beside this one."""

    def __init__(self, model: Path, node_folder: Path, folder: Path) -> None:
        self.model, self.node_folder, self.folder = model.resolve(), node_folder, folder

    def run(self, script: str, given: object, *more: str) -> bytes:
        inputs, output = self.folder / "given.json", self.folder / "output"
        inputs.write_text(json.dumps(given))
        subprocess.run(["node", str(HERE / script), str(self.model), str(inputs), *more, str(output)], cwd=self.node_folder, check=True)
        return output.read_bytes()

    def log_probabilities(self, tokens: list[int]) -> np.ndarray:
        rows = np.frombuffer(self.run("llama_cpp_logits.mjs", tokens), "<f4").reshape(len(tokens), -1).astype(np.float64)
        return np.log(np.maximum(rows, 1e-45) / rows.sum(-1, keepdims=True))

    def ids(self, texts: list[str]) -> list[list[int]]:
        return json.loads(self.run("llama_cpp_tokens.mjs", [[text, True] for text in texts]))

    def greedy(self, prompts: list[list[int]]) -> list[list[int]]:
        return json.loads(self.run("llama_cpp_greedy.mjs", prompts, str(ANSWER_TOKENS)))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    moved = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(-1, keepdims=True))


def greedy(logits: Callable[[list[int]], np.ndarray], prompt: list[int], stops: list[int]) -> list[int]:
    answer: list[int] = []
    while len(answer) < ANSWER_TOKENS and not (answer and answer[-1] in stops):
        answer.append(int(logits(prompt + answer)[-1].argmax()))
    return answer


def text_of(name: str) -> str:
    return (HERE.parent / "tests" / "data" / f"smollm2_{name}.txt").read_text()


def agreeing(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    return rows.argmax(-1) == others.argmax(-1)


class Test:
    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        import proofinfer

        self.proofinfer = proofinfer
        self.file = Smollm2(arguments.model)
        self.peer = LlamaCpp(arguments.model, arguments.node_folder, folder)
        self.model = proofinfer.Model(arguments.model)
        self.tokenizer = proofinfer.Tokenizer(arguments.model)
        self.exact = gguf_test.Oracle(self.file.oracle())
        self.failures = 0

    def check(self, good: bool, what: str) -> None:
        self.failures += not good
        print(f"  {'ok' if good else 'FAILED'}: {what}", flush=True)

    def engine_logits(self, tokens: list[int]) -> np.ndarray:
        with self.model.session() as session:
            session.append(tokens, logits="all")
            return np.stack([np.array(session.logits(position), f32) for position in range(len(tokens))])

    def text(self, name: str) -> None:
        every = self.tokenizer.encode(text_of(name))
        if len(every) <= POSITIONS:
            sys.exit(f"the text {name} has {len(every)} tokens only")
        tokens, following = every[:POSITIONS], every[1 : POSITIONS + 1]
        print(f"{name}: {POSITIONS} positions", flush=True)
        engine = self.engine_logits(tokens)
        rule = Rule(self.file).logits(tokens)
        equal = int((engine == rule).all(-1).sum())
        self.check(equal == POSITIONS, f"{equal} positions have every logit's bits as docs/arithmetic.md")
        ours, exact = log_softmax(engine), log_softmax(self.exact.logits(tokens))
        theirs = self.peer.log_probabilities(tokens)
        if theirs.shape != ours.shape:
            sys.exit(f"llama.cpp's logits have the shape {theirs.shape}")

        self.compare_tops(ours, theirs)
        places = np.arange(POSITIONS)
        print(f"  exact top token: the engine at {agreeing(ours, exact).sum()} positions, llama.cpp at {agreeing(theirs, exact).sum()}")
        top = np.argsort(-exact, -1)[:, :TOP]
        errors = [np.sqrt(((rows - exact)[places[:, None], top] ** 2).mean()) for rows in (ours, theirs)]
        print(f"  rms error of ln p of the {TOP} most probable tokens: engine {errors[0]:.3f}, llama.cpp {errors[1]:.3f}")
        perplexities = [float(np.exp(-rows[places, following].mean())) for rows in (ours, theirs, exact)]
        print("  perplexity {:.3f}, llama.cpp {:.3f}, exact {:.3f}".format(*perplexities))

    def perplexity(self) -> None:
        """Of both texts end to end: along one of them, what llama.cpp's rounding costs it is a matter of chance by 0.6 %."""
        tokens = self.tokenizer.encode("".join(text_of(name) for name in TEXTS))
        given, following = tokens[:-1], tokens[1:]
        of_next = [rows[np.arange(len(given)), following] for rows in (log_softmax(self.engine_logits(given)), self.peer.log_probabilities(given))]
        ours, theirs = (float(np.exp(-row.mean())) for row in of_next)
        spread = float((of_next[0] - of_next[1]).std() / np.sqrt(len(given)))
        print(f"both texts: {len(given)} positions")
        self.check(abs(ours / theirs - 1) <= PERPLEXITY, f"perplexity {ours:.3f}, llama.cpp {theirs:.3f} ({ours / theirs - 1:+.2%}, standard error {spread:.2%})")

    def compare_tops(self, ours: np.ndarray, theirs: np.ndarray) -> None:
        leading = np.sort(theirs, -1)[:, -2:]
        log_margin = leading[:, 1] - leading[:, 0]
        margin = np.exp(leading[:, 1]) - np.exp(leading[:, 0])
        same, clear = agreeing(ours, theirs), margin > MARGIN
        told = f"the same top token at {(same & clear).sum()} of {clear.sum()} positions where llama.cpp's leads by more than {MARGIN}"
        self.check(bool(clear.any() and same[clear].all()), f"{told}; at {same.sum()} of all {len(same)}")
        log_clear = log_margin > MARGIN
        print(f"  with margins of ln p: at {(same & log_clear).sum()} of {log_clear.sum()}. Where it is another, by p and by ln p: "
              + "; ".join(f"{margin[i]:.3f}, {log_margin[i]:.2f}" for i in np.flatnonzero(~same)))

    def chats(self) -> None:
        template = self.file.fields["tokenizer.chat_template"]
        pieces = [piece for piece in self.file.fields["tokenizer.ggml.tokens"] if piece.startswith("<|") and piece.endswith("|>")]
        drawn = [case for seed in range(20) for case in chat_templates.lists(f"smollm2 {seed}")]
        # What spells a control piece stays text in the library, but not in a rendered template.
        lists = [case for case in drawn if not any(piece in message["content"] for piece in pieces for message in case[0])]
        texts = [chat_templates.render(template, ("<|im_start|>", "<|im_end|>"), messages, answer) for messages, answer in lists]
        theirs = self.peer.ids(texts)
        ours = [self.proofinfer.encode_chat(self.tokenizer, messages, answer=answer) for messages, answer in lists]
        same = sum(a == b for a, b in zip(ours, theirs))
        print("chats")
        self.check(len(lists) >= 100 and same == len(lists), f"{same} of {len(lists)} message lists have llama.cpp's ids of the rendered template")
        for case, a, b in [row for row in zip(lists, ours, theirs) if row[1] != row[2]][:1]:
            print(f"  {case[0]}: {a}, llama.cpp {b}")

    def answers(self) -> None:
        print(QUESTION)
        chats = [([] if prompt is None else [("system", prompt)]) + [("user", QUESTION)] for prompt in PROMPTS]
        prompts = [self.proofinfer.encode_chat(self.tokenizer, chat) for chat in chats]
        stops = self.proofinfer.chat_stop_tokens(self.tokenizer)
        for name, prompt, theirs in zip(PROMPTS, prompts, self.peer.greedy(prompts)):
            print(f"  system message: {name or 'that of the template'}")
            contenders = {
                "engine": (self.engine_logits(prompt), greedy(self.engine_logits, prompt, stops)),
                "llama.cpp": (self.peer.log_probabilities(prompt), theirs),
                "exact": (self.exact.logits(prompt), greedy(self.exact.logits, prompt, stops)),
            }
            for who, (rows, answer) in contenders.items():
                likely = np.exp(log_softmax(rows[-1]))
                first = ", ".join(f"{self.tokenizer.decode([token])!r} {likely[token]:.3f}" for token in np.argsort(-likely)[:2].tolist())
                text = self.tokenizer.decode([token for token in answer if token not in stops])
                print(f"    {who}: {first}: {text!r}", flush=True)
                if who == "engine":
                    self.check("Paris" in text, "the answer names Paris")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--node-folder", type=Path, required=True, help="where node-llama-cpp is installed")
    parser.add_argument("--only", choices=["text", "chats", "answers"])
    arguments = parser.parse_args()
    os.environ["PROOFINFER_LIBRARY"] = arguments.library
    sys.path.insert(0, str(HERE.parent / "bindings" / "python" / "src"))
    with tempfile.TemporaryDirectory() as folder:
        test = Test(arguments, Path(folder))
        if arguments.only in (None, "chats"):
            test.chats()
        if arguments.only in (None, "answers"):
            test.answers()
        if arguments.only in (None, "text"):
            for name in TEXTS:
                test.text(name)
            test.perplexity()
    print("all holds" if test.failures == 0 else f"{test.failures} failures")
    return test.failures != 0


if __name__ == "__main__":
    sys.exit(main())
