"""llama2.c checkpoints as numpy arrays: reading and writing legacy and version 2 files, synthetic ones among them.

Formats and the synthetic weight stream: tests/data/golden/README.md.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def write_synthetic(path: Path, shape: Shape, seed: int, query_key_scale: float = 1.0) -> None:
    """A legacy checkpoint of that shape with the weights of that seed. query_key_scale: a power of two that multiplies wq and wk."""
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
            if name in ("wq", "wk"):
                scale *= np.float32(query_key_scale)
            for _ in range(tensors):
                weights = stream.draw(rows * columns) * scale
                if name in NORMS:
                    weights = np.float32(1) + weights
                file.write(weights.astype("<f4").tobytes())
        if shape.shared:
            file.write(bytes(4 * shape.seq_len * shape.head_size))


@dataclass(frozen=True)
class Quantized:
    """A matrix of a version 2 file: q[rows, columns] int8 and a float32 scale for each group_size columns of a row."""

    q: np.ndarray
    scales: np.ndarray
    group_size: int

    def values(self) -> np.ndarray:
        """[rows, columns] float32."""
        rows, columns = self.q.shape
        groups = self.q.reshape(rows, columns // self.group_size, self.group_size)
        return (groups.astype(np.float32) * self.scales[:, :, None]).reshape(rows, columns)


Tensors = dict[str, list[Any]]  # name -> one array [rows, columns], or one Quantized, a tensor


def version2_header(shape: Shape, group_size: int) -> bytes:
    numbers = (shape.dim, shape.hidden_dim, shape.n_layers, shape.n_heads, shape.n_kv_heads, shape.vocab_size, shape.seq_len)
    header = struct.pack("<Ii7iBi", VERSION_MAGIC, 2, *numbers, shape.shared, group_size)
    return header.ljust(VERSION_HEADER_BYTES, b"\0")


def quantize(values: np.ndarray, group_size: int) -> Quantized:
    """Per group scale = max|w| / 127, q = w / scale rounded half to even."""
    rows, columns = values.shape
    groups = values.reshape(rows, columns // group_size, group_size)
    scales = np.abs(groups).max(axis=2) / np.float32(127)
    q = np.rint(groups / scales[:, :, None]).astype(np.int8)
    return Quantized(q.reshape(rows, columns), scales, group_size)


def write_version2(path: Path, legacy: Path, group_size: int) -> None:
    """A version 2 file of a float32 checkpoint."""
    shape, weights = read_tensors(legacy)
    with path.open("wb") as file:
        file.write(version2_header(shape, group_size))
        for name in NORMS:
            for values in weights[name]:
                file.write(values.astype("<f4").tobytes())
        for name in (name for name in shape.tensors() if name not in NORMS):
            for values in weights[name]:
                matrix = quantize(values, group_size)
                file.write(matrix.q.tobytes() + matrix.scales.astype("<f4").tobytes())


def read_tensors(path: Path) -> tuple[Shape, Tensors]:
    """Shape and tensors, quantized ones as the file has them."""
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
    weights: Tensors = {}
    for name in order:
        tensors, rows, columns = shape.tensors()[name]
        if magic != VERSION_MAGIC and name == "classifier":
            offset += 4 * shape.seq_len * shape.head_size
        weights[name] = []
        for _ in range(tensors):
            count = rows * columns
            if group_size and name not in NORMS:
                q = np.frombuffer(data, "<i1", count, offset).reshape(rows, columns)
                scales = np.frombuffer(data, "<f4", count // group_size, offset + count)
                weights[name].append(Quantized(q, scales.reshape(rows, columns // group_size), group_size))
                offset += count + 4 * (count // group_size)
            else:
                weights[name].append(np.frombuffer(data, "<f4", count, offset).reshape(rows, columns))
                offset += 4 * count
    return shape, weights


def float_values(weights: Tensors) -> dict[str, list[np.ndarray]]:
    """The same with quantized tensors multiplied out."""
    return {
        name: [value.values() if isinstance(value, Quantized) else value for value in values] for name, values in weights.items()
    }


def read(path: Path) -> tuple[Shape, dict[str, list[np.ndarray]]]:
    """Shape, and name -> one float32 array [rows, columns] a tensor."""
    shape, weights = read_tensors(path)
    return shape, float_values(weights)
