"""A llama2.c checkpoint as GGUF, so that llama.cpp can run the same weights.

    python3 reference/export_gguf.py 15m.bin 15m.gguf                 # float32
    python3 reference/export_gguf.py 15m.bin 15m-q8.gguf --type q8_0

llama2.c and the GGUF architecture "llama" agree on the order of query and key rows (pairs side by side), so nothing is permuted. Needs the PyPI
package gguf (tried: 0.17.1).
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

import gguf
import numpy as np

import checkpoint

NAMES = {
    "wq": "attn_q",
    "wk": "attn_k",
    "wv": "attn_v",
    "wo": "attn_output",
    "w1": "ffn_gate",
    "w2": "ffn_down",
    "w3": "ffn_up",
    "attention_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
}
GLOBAL_NAMES = {"embedding": "token_embd", "final_norm": "output_norm", "classifier": "output"}


def pieces_of(path: Path | None, vocab_size: int) -> tuple[list[bytes], list[float]]:
    """Pieces and scores of a tokenizer.bin, or made-up ones."""
    if path is None:
        made = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{byte:02X}>".encode() for byte in range(256)]
        made += [f"t{i}".encode() for i in range(len(made), vocab_size)]
        return made[:vocab_size], [0.0] * vocab_size
    data, offset = path.read_bytes(), 4
    pieces, scores = [], []
    for _ in range(vocab_size):
        score, length = struct.unpack_from("<fi", data, offset)
        pieces.append(data[offset + 8 : offset + 8 + length].replace(b" ", "\u2581".encode()))
        scores.append(score)
        offset += 8 + length
    return pieces, scores


def token_type(index: int, piece: bytes) -> int:
    if index == 0:
        return gguf.TokenType.UNKNOWN
    if index in (1, 2):
        return gguf.TokenType.CONTROL
    return gguf.TokenType.BYTE if piece.startswith(b"<0x") and len(piece) == 6 else gguf.TokenType.NORMAL


def add_tensor(writer: gguf.GGUFWriter, name: str, values: np.ndarray, quantize: bool) -> None:
    if not quantize or values.shape[0] == 1:
        writer.add_tensor(name, np.ascontiguousarray(values if values.shape[0] > 1 else values[0]))
        return
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(values), kind), raw_dtype=kind)


def write(
    output: Path, shape: checkpoint.Shape, weights: dict[str, list[np.ndarray]], *, quantize: bool = False, tokenizer: Path | None = None
) -> None:
    """A GGUF file of these float32 weights."""
    writer = gguf.GGUFWriter(output, "llama")
    writer.add_context_length(shape.seq_len)
    writer.add_embedding_length(shape.dim)
    writer.add_feed_forward_length(shape.hidden_dim)
    writer.add_block_count(shape.n_layers)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.vocab_size)
    pieces, scores = pieces_of(tokenizer, shape.vocab_size)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores(scores)
    writer.add_token_types([token_type(i, piece) for i, piece in enumerate(pieces)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, tensors in weights.items():
        for layer, values in enumerate(tensors):
            full = f"{GLOBAL_NAMES[name]}.weight" if name in GLOBAL_NAMES else f"blk.{layer}.{NAMES[name]}.weight"
            add_tensor(writer, full, values, quantize)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--type", choices=("f32", "q8_0"), default="f32")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.bin; without it the pieces are made up")
    arguments = parser.parse_args()
    shape, weights = checkpoint.read(arguments.checkpoint)
    write(arguments.output, shape, weights, quantize=arguments.type == "q8_0", tokenizer=arguments.tokenizer)


if __name__ == "__main__":
    main()
