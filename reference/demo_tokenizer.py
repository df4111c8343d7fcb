#!/usr/bin/env python3
"""The demo model's tokenizer: byte pair encoding trained on a text, and llama2.c's tokenizer file and encoder.

File (little-endian): u32 longest piece in bytes, then for every piece float32 score, i32 length, bytes. The file holds no
count: the checkpoint's vocab_size says how many pieces there are. Pieces 0..2 are `<unk>`, `\\n<s>\\n`, `\\n</s>\\n`;
3..258 the bytes `<0x00>`..`<0xFF>`; then the merges in the order in which training found them (scores 0, -1, -2, ...) and
the single characters (scores after the merges'). A character that the corpus lacks falls back to its bytes.

Training counts pairs inside words only (letters with at most one space before them; runs of other characters alike), so that
no piece crosses from one word into the next: the greedy encoder, which knows no words, then finds exactly training's pieces.
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
from collections import Counter
from pathlib import Path

BOS, EOS, BYTE_OFFSET, FIXED = 1, 2, 3, 259
SPECIAL = (b"<unk>", b"\n<s>\n", b"\n</s>\n")
WORD = re.compile(r" ?[A-Za-z']+| ?[^A-Za-z'\s]+|\s")
Piece = tuple[bytes, float]


def train(text: str, vocab_size: int) -> list[Piece]:
    """Byte pair encoding of `text`: vocab_size pieces with their scores, in file order."""
    chars = sorted(set(text) | {" "})
    words = Counter(WORD.findall(text))
    split = {word: list(word) for word in words}
    merges: list[str] = []
    while FIXED + len(chars) + len(merges) < vocab_size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in zip(split[word], split[word][1:]):
                pairs[pair] += count
        if not pairs:
            raise ValueError(f"the text is too small for {vocab_size} pieces")
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best[0] + best[1])
        for word in words:
            split[word] = merge(split[word], best)
    pieces = [(piece, 0.0) for piece in SPECIAL] + [(b"<0x%02X>" % byte, 0.0) for byte in range(256)]
    return pieces + [(piece.encode(), -float(rank)) for rank, piece in enumerate(merges + chars)]


def merge(units: list[str], pair: tuple[str, str]) -> list[str]:
    """Join every occurrence of `pair` in `units`, from the left."""
    out: list[str] = []
    for unit in units:
        if out and (out[-1], unit) == pair:
            out[-1] += unit
        else:
            out.append(unit)
    return out


def write(path: Path, pieces: list[Piece]) -> None:
    """Write a tokenizer file."""
    body = b"".join(struct.pack("<fi", score, len(piece)) + piece for piece, score in pieces)
    path.write_bytes(struct.pack("<I", max(len(piece) for piece, _ in pieces)) + body)


def read(path: Path) -> list[Piece]:
    """Read a tokenizer file to its end."""
    data = path.read_bytes()
    pieces, at = [], 4
    while at < len(data):
        score, size = struct.unpack_from("<fi", data, at)
        pieces.append((data[at + 8 : at + 8 + size], score))
        at += 8 + size
    return pieces


class Tokenizer:
    """llama2.c's encoder and decoder over a list of pieces."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = [piece for piece, _ in pieces]
        self.scores = [score for _, score in pieces]
        self.ids: dict[bytes, int] = {}
        for index, piece in enumerate(self.pieces):
            self.ids.setdefault(piece, index)
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: bytes, bos: bool = True) -> list[int]:
        """The ids of `text`, as the reference finds them: greedy merging of the adjacent pair whose piece scores highest."""
        ids = self._units(b" ") + self._units(text) if text else []
        while True:
            best_score, best_at, best_id = -1e10, -1, -1
            for at in range(len(ids) - 1):
                joined = self.ids.get(self.pieces[ids[at]] + self.pieces[ids[at + 1]])
                if joined is not None and self.scores[joined] > best_score:
                    best_score, best_at, best_id = self.scores[joined], at, joined
            if best_at < 0:
                return ([BOS] if bos else []) + ids
            ids[best_at : best_at + 2] = [best_id]

    def encode_corpus(self, story: str) -> list[int]:
        """The ids of `story` behind BOS, word by word: equal to encode() for a vocabulary made by train(), and fast."""
        ids = [BOS]
        for word in WORD.findall(" " + story):
            if word not in self._cache:
                self._cache[word] = self.encode(word[1:].encode(), False) if word[0] == " " and len(word) > 1 else self._bare(word)
            ids += self._cache[word]
        return ids

    def _bare(self, word: str) -> list[int]:
        """The ids of a word that has no space before it: merged behind a newline, which joins with nothing."""
        marked = self.encode(b"\n" + word.encode(), False)
        head = self.encode(b"\n", False)
        return marked[len(head) :]

    def _units(self, text: bytes) -> list[int]:
        """One id for every UTF-8 unit (a byte and at most three continuation bytes), or one for each of its bytes."""
        ids: list[int] = []
        for unit in re.findall(rb"(?s).[\x80-\xbf]{0,3}", text):
            ids += [self.ids[unit]] if unit in self.ids else [byte + BYTE_OFFSET for byte in unit]
        return ids

    def decode(self, ids: list[int]) -> bytes:
        """The text of `ids`: after BOS one leading space is dropped, `<0xNN>` stands for a byte, BOS and EOS for nothing."""
        out, previous = b"", -1
        for token in ids:
            piece = self.pieces[token]
            if previous == BOS and piece.startswith(b" "):
                piece = piece[1:]
            if re.fullmatch(rb"<0x[0-9A-F]{2}>", piece):
                piece = bytes([int(piece[3:5], 16)])
            out += b"" if token in (BOS, EOS) else piece
            previous = token
        return out


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Train the demo tokenizer on a corpus, or encode a text with a tokenizer file.")
    parser.add_argument("file", type=Path, help="tokenizer file to write (with --corpus) or to read")
    parser.add_argument("--corpus", type=Path, help="text to train on")
    parser.add_argument("--vocab-size", type=int, default=640, help="number of pieces (default %(default)s)")
    parser.add_argument("--encode", metavar="TEXT", help="print the ids of TEXT")
    args = parser.parse_args()
    if args.corpus:
        write(args.file, train(args.corpus.read_text(encoding="utf-8"), args.vocab_size))
    if args.encode is not None:
        print(*Tokenizer(read(args.file)).encode(args.encode.encode()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
