"""llama2.c checkpoints as numpy arrays: reading legacy and version 2 files, writing synthetic ones.

Formats and the synthetic weight stream: tests/data/golden/README.md.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HEADER_BYTES = 28
VERSION_HEADER_BYTES = 256
VERSION_MAGIC = 0x616B3432


@dataclass(frozen=True)
class Shape:
    """The seven integers of a header; shared: whether the classifier is the embedding."""

    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    seq_len: int
    shared: bool

    @property
    def head_size(self) -> int:
        return self.dim // self.n_heads

    @property
    def kv_dim(self) -> int:
        return self.head_size * self.n_kv_heads

    def tensors(self) -> dict[str, tuple[int, int, int]]:
        """Name -> (tensors, rows, columns) in legacy file order; norms have one row."""
        d, h, n = self.dim, self.hidden_dim, self.n_layers
        table = {
            "embedding": (1, self.vocab_size, d),
            "attention_norm": (n, 1, d),
            "wq": (n, d, d),
            "wk": (n, self.kv_dim, d),
            "wv": (n, self.kv_dim, d),
            "wo": (n, d, d),
            "ffn_norm": (n, 1, d),
            "w1": (n, h, d),
            "w2": (n, d, h),
            "w3": (n, h, d),
            "final_norm": (1, 1, d),
        }
        if not self.shared:
            table["classifier"] = (1, self.vocab_size, d)
        return table


NORMS = ("attention_norm", "ffn_norm", "final_norm")
# The shapes of two published story models, whose speed is a common yardstick.
NAMED_SHAPES = {
    "15m": Shape(288, 768, 6, 6, 6, 32000, 256, True),
    "110m": Shape(768, 2048, 12, 12, 12, 32000, 1024, True),
}


class WeightStream:
    """One splitmix64 stream, one draw a weight: the synthetic checkpoints' source."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.drawn = 0

    def draw(self, count: int) -> np.ndarray:
        """[count] float32 in [-1, 1)."""
        index = np.arange(self.drawn + 1, self.drawn + count + 1, dtype=np.uint64)
        self.drawn += count
        with np.errstate(over="ignore"):
            z = np.uint64(self.seed) + index * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z ^= z >> np.uint64(31)
        return ((z >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float32) * np.float32(2.0**-23)


def write_synthetic(path: Path, shape: Shape, seed: int) -> None:
    """A legacy checkpoint of that shape with the weights of that seed."""
    stream = WeightStream(seed)
    with path.open("wb") as file:
        vocab = shape.vocab_size if shape.shared else -shape.vocab_size
        file.write(
            struct.pack(
                "<7i", shape.dim, shape.hidden_dim, shape.n_layers, shape.n_heads, shape.n_kv_heads, vocab, shape.seq_len
            )
        )
        for name, (tensors, rows, columns) in shape.tensors().items():
            if name == "classifier":
                file.write(bytes(4 * shape.seq_len * shape.head_size))
            scale = np.float32(0.25)
            if name not in NORMS and name not in ("embedding", "classifier"):
                scale = np.float32(2.0 ** -((columns.bit_length() - 1) // 2))
            for _ in range(tensors):
                weights = stream.draw(rows * columns) * scale
                if name in NORMS:
                    weights = np.float32(1) + weights
                file.write(weights.astype("<f4").tobytes())
        if shape.shared:
            file.write(bytes(4 * shape.seq_len * shape.head_size))


def read(path: Path) -> tuple[Shape, dict[str, list[np.ndarray]], int]:
    """Shape, name -> one float32 array [rows, columns] a tensor (dequantized), and the group size (0: float32)."""
    data = path.read_bytes()
    magic, version = struct.unpack_from("<Ii", data)
    if magic != VERSION_MAGIC:
        *numbers, vocab, seq_len = struct.unpack_from("<7i", data)
        shape = Shape(*numbers, abs(vocab), seq_len, vocab > 0)
        order, offset, group_size = list(shape.tensors()), HEADER_BYTES, 0
    else:
        numbers7 = struct.unpack_from("<7i", data, 8)
        shape = Shape(*numbers7, bool(data[36]))
        matrices = [name for name in shape.tensors() if name not in NORMS]
        order, offset = [*NORMS, *matrices], VERSION_HEADER_BYTES
        group_size = struct.unpack_from("<i", data, 37)[0] if version == 2 else 0
    weights: dict[str, list[np.ndarray]] = {}
    for name in order:
        tensors, rows, columns = shape.tensors()[name]
        if magic != VERSION_MAGIC and name == "classifier":
            offset += 4 * shape.seq_len * shape.head_size
        weights[name] = []
        for _ in range(tensors):
            count = rows * columns
            if group_size and name not in NORMS:
                q = np.frombuffer(data, "<i1", count, offset).reshape(-1, group_size)
                scales = np.frombuffer(data, "<f4", count // group_size, offset + count)
                values = q.astype(np.float32) * scales[:, None]
                offset += count + 4 * (count // group_size)
            else:
                values = np.frombuffer(data, "<f4", count, offset)
                offset += 4 * count
            weights[name].append(values.reshape(rows, columns))
    return shape, weights, group_size
