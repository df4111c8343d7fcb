"""Checkpoints and vocabularies made for the tests, to the recipe of tests/data/golden/README.md of the repository."""

from __future__ import annotations

import math
import struct
from array import array
from typing import Any, Dict, Iterator

MASK = 2**64 - 1


def draws(seed: int) -> Iterator[float]:
    """One splitmix64 draw a weight, exact in float32, in [-1, 1)."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        yield ((z >> 40) - 2**23) * 2.0**-23


def legacy_checkpoint(shape: Dict[str, int], seed: int) -> bytes:
    """A legacy float32 file. shape: the seven header integers; a negative vocab_size means a separate classifier."""
    dim, hidden, layers, heads = shape["dim"], shape["hidden_dim"], shape["n_layers"], shape["n_heads"]
    kv_dim = dim // heads * shape["n_kv_heads"]
    vocab = abs(shape["vocab_size"])
    stream = draws(seed)
    out = array("f")

    def put(count: int, scale: float, offset: float = 0.0) -> None:
        out.extend([offset + next(stream) * scale for _ in range(count)])

    def matrices(rows: int, columns: int) -> None:
        put(layers * rows * columns, 2.0 ** -(int(math.log2(columns)) // 2))

    put(vocab * dim, 0.25)
    put(layers * dim, 0.25, 1.0)
    for rows in (dim, kv_dim, kv_dim, dim):
        matrices(rows, dim)
    put(layers * dim, 0.25, 1.0)
    matrices(hidden, dim)
    matrices(dim, hidden)
    matrices(hidden, dim)
    put(dim, 0.25, 1.0)
    out.frombytes(bytes(4 * shape["seq_len"] * (dim // heads)))
    if shape["vocab_size"] < 0:
        put(vocab * dim, 0.25)
    return header(shape) + out.tobytes()


def header(shape: Dict[str, int]) -> bytes:
    names = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")
    return struct.pack("<7i", *[shape[name] for name in names])


def large_checkpoint(path: str, shape: Dict[str, int]) -> None:
    """A legacy file of any size with weights that repeat: made in no time, finite everywhere."""
    dim, hidden, layers = shape["dim"], shape["hidden_dim"], shape["n_layers"]
    head_size = dim // shape["n_heads"]
    kv_dim = head_size * shape["n_kv_heads"]
    stream = draws(7)
    block = array("f", [next(stream) / 32 for _ in range(4099)]).tobytes()

    def weights(count: int) -> Iterator[bytes]:
        left = 4 * count
        while left > 0:
            yield block[:left]
            left -= len(block)

    sizes = (
        shape["vocab_size"] * dim + layers * dim,
        layers * dim * (2 * dim + 2 * kv_dim) + layers * dim,
        layers * 3 * hidden * dim + dim + shape["seq_len"] * head_size,
    )
    with open(path, "wb") as file:
        file.write(header(shape))
        for size in sizes:
            file.writelines(weights(size))


def byte_vocabulary(count: int) -> bytes:
    """A tokenizer.bin of `count` pieces: <unk>, <s>, </s>, 256 byte pieces, " ", printable ASCII, words, then numbered ones."""
    pieces = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *[b"<0x%02X>" % byte for byte in range(256)]]
    pieces += [b" ", *[bytes([byte]) for byte in range(33, 127)], b"he", b"ll", b"hell", b"hello", b" hello"]
    pieces += ["\N{GRINNING FACE}".encode(), b"a piece that is longer than most buffers " * 20]
    pieces += [b"#%d" % number for number in range(len(pieces), count)]
    out = [struct.pack("<I", max(len(piece) for piece in pieces[:count]))]
    for number, piece in enumerate(pieces[:count]):
        score = 0.0 if number < 259 else float(len(piece))
        out.append(struct.pack("<fi", score, len(piece)) + piece)
    return b"".join(out)


SMALL: Dict[str, Any] = {
    "dim": 16,
    "hidden_dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 384,
    "seq_len": 128,
}
