"""Compares the tokenizers of GGUF files with other implementations, id by id, on drawn and on hand-written texts.

    pip install gguf==0.17.1 tokenizers==0.23.3
    PROOFINFER_LIBRARY=build/release/src/libproofinfer.so python3 reference/tokenizer_test.py --node build/oracles/node \
        --smollm2 "$(tests/tools/smollm2.sh)" --tokenizer-bin tokenizer.bin

It prints the seed (--seed replays it) and what was compared, and fails on the first difference of a comparison.

- llama.cpp (npm node-llama-cpp 3.21.1): SmolLM2; vocabularies trained here, under each pre-tokenizer; and llama2.c's tokenizer.bin as a
  `llama` vocabulary. Each text is given once with and once without special pieces recognised.
- tokenizers (Hugging Face's, PyPI): the vocabularies trained here, with the pre-tokenizers of Llama 3, SmolLM and GPT-2 as its own files have them,
  on texts without code points that are newer than this Python's Unicode.

Texts are valid UTF-8: llama.cpp and tokenizers replace what is not, proofinfer keeps the bytes. Characters with a byte that the vocabulary has no
piece for are left out: llama.cpp drops such bytes, proofinfer says so.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, trainers

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bindings/python/src"))
import proofinfer

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTE_LEVEL = {"add_prefix_space": False}
PRE_TOKENIZERS = {
    "llama-bpe": [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(use_regex=False, **BYTE_LEVEL)],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(**BYTE_LEVEL)],
    "gpt-2": [pre_tokenizers.ByteLevel(**BYTE_LEVEL)],
}
SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>"]

HAND_WRITTEN = [
    "",
    " ",
    "  ",
    "\n",
    "\n\n\n",
    "\t",
    " \n ",
    "\r\n",
    "Hello",
    " Hello",
    "  Hello",
    "Hello world",
    "Hello\n\nworld",
    "Hello   world  ",
    "don't you'LL we'Ve I'M he's it'S they'RE 'tis ''s 's 'x",
    "1",
    "12",
    "123",
    "1234",
    "12345678901",
    "3.14159",
    "-42",
    "1,000,000",
    "٣٤٥ ²³ Ⅷ½",
    "for (int i = 0; i < n; i++) {\n\t\tsum += a[i];\n\t}\n",
    "def f(x):\n    return x ** 2  # square\n\n\n",
    '<html>\r\n<body class="a">&nbsp;</body>',
    "日本語のテキスト。",
    "中文，标点！",
    "한국어 텍스트",
    "Привет, мир",
    "שלום עולם",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "ภาษาไทย",
    "🦙",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪",
    "é é",
    "ﬁ ﬀ",
    "naïve café — “quotes” … ‘x’",
    "a\u00a0b\u3000c\u2028d\u0085e",
    "\u200b\u200d\ufeff",
    "x\u0000y",
    "▁a▁▁b",
    "ĠHello",
    "<|im_start|>user\nHi<|im_end|>\n",
    "<|im_end|",
    "<|im_start|><|im_start|>",
    " <|im_end|> ",
    "<|IM_END|>",
    "<|endoftext|>",
    "<s>",
    "</s>",
    "<unk>",
    "<0x0A>",
    "<repo_name>x",
    "_" * 40,
    "=" * 100,
    " " * 200,
    "\n" * 200,
    "a" * 300,
    "ab" * 150,
    "!" * 150,
    "1" * 100,
    " \t" * 50,
    "\n \n  \n   x",
    "x \n",
    "ſ'ſ 'ſ K",
    "İstanbul ıI",
    "ǅ ǈ",
    "𝔘𝔫𝔦 𝟘𝟙",
    "\U0001f9ff\U0010fffd",
]
WORDS = ["the", "of", "and", "a", "to", "in", "he", "have", "it", "that", "for", "they", "with", "as", "not", "on", "she", "at", "by", "this", "we", "you", "do", "but", "from", "or", "which", "one", "would", "all", "will", "there", "say", "who", "make", "when", "can", "more", "if", "no", "man", "out"]
CODE = [
    "if (x == y) {",
    "}",
    "return -1;",
    "#include <stdio.h>",
    "self.x = None",
    "=> {",
    "//",
    "/* */",
    "&&",
    "||",
    "!=",
    "->",
    "::",
    "0x1F",
    "1e-5f",
    '"str\\n"',
    "a_b_c",
    "camelCase",
]
SPACES = [" ", "  ", "    ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n", "\u00a0", "\u3000", "\u2003", "\v", "\f"]
MARKS = list(".,;:!?'\"`~@#$%^&*()-_=+[]{}\\|/<>") + ["...", "--", "’", "“", "”", "、", "。", "！", "·", "§", "€", "±", "'s", "'ll", "'RE", "'d"]
EMOJI = ["🦙", "😀", "👍🏽", "👩‍💻", "🇫🇷", "❤️", "✨", "🏳️‍🌈", "1️⃣"]
ALIKE = [*SPECIAL, "<|im_", "end|>", "<|", "|>", "<s>", "</s>", "<unk>", "<|endoftext|>", "[INST]", "<0x20>"]
BLOCKS = [
    (0x20, 0x7F),
    (0xA0, 0x24F),
    (0x250, 0x36F),
    (0x370, 0x5FF),
    (0x600, 0x7FF),
    (0x900, 0xDFF),
    (0xE00, 0x10FF),
    (0x2000, 0x2BFF),
    (0x3000, 0x30FF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFFFD),
    (0x10000, 0x107FF),
    (0x1D400, 0x1D7FF),
    (0x1F300, 0x1FAFF),
    (0x20000, 0x2FFFF),
    (0x0, 0x10FFFF),
]


def code_point(draw: random.Random) -> str:
    while True:
        code = draw.randint(*draw.choice(BLOCKS))
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def drawn_text(draw: random.Random) -> str:
    kinds = [
        lambda: draw.choice(WORDS),
        lambda: draw.choice(WORDS).capitalize(),
        lambda: draw.choice(CODE),
        lambda: draw.choice(MARKS),
        lambda: str(draw.randint(0, 10 ** draw.randint(1, 9))),
        lambda: draw.choice(EMOJI),
        lambda: draw.choice(ALIKE),
        lambda: "".join(code_point(draw) for _ in range(draw.randint(1, 6))),
    ]
    weights = [draw.random() ** 2 for _ in kinds]
    parts = []
    for _ in range(draw.randint(1, 40)):
        parts.append(draw.choices(kinds, weights)[0]())
        parts.append(draw.choice(SPACES) * draw.choice([1, 1, 1, 2, 9]) if draw.random() < 0.3 else " " if draw.random() < 0.6 else "")
    return "".join(parts)


def assigned(text: str) -> str:
    """The text without what this Python's Unicode does not know: tokenizers' Unicode is another version."""
    return "".join(c for c in text if unicodedata.category(c) != "Cn")


def trained(kind: str, texts: list[str], whole_words: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=whole_words))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(PRE_TOKENIZERS[kind])
    trainer = trainers.BpeTrainer(vocab_size=2000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    return tokenizer


def write_shape(writer: gguf.GGUFWriter) -> None:
    """What llama.cpp wants of a model whose vocabulary alone is looked at."""
    writer.add_context_length(512)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def write_gpt2(path: Path, pre: str, tokenizer: Tokenizer) -> None:
    description = json.loads(tokenizer.to_str())
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    writer = gguf.GGUFWriter(str(path), "llama")
    write_shape(writer)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([piece for piece, _ in pieces])
    writer.add_token_types([3 if piece in SPECIAL else 1 for piece, _ in pieces])
    writer.add_token_merges([" ".join(merge) if isinstance(merge, list) else merge for merge in description["model"]["merges"]])
    writer.add_bos_token_id(tokenizer.token_to_id(SPECIAL[0]))
    writer.add_eos_token_id(tokenizer.token_to_id(SPECIAL[1]))
    finish(writer)


def write_llama(path: Path, tokenizer_bin: Path) -> None:
    data = tokenizer_bin.read_bytes()
    pieces, scores, at = [], [], 4
    while at < len(data):
        score, length = struct.unpack_from("<fi", data, at)
        pieces.append(data[at + 8 : at + 8 + length].replace(b" ", "▁".encode()))
        scores.append(score)
        at += 8 + length
    pieces[:3] = [b"<unk>", b"<s>", b"</s>"]
    writer = gguf.GGUFWriter(str(path), "llama")
    write_shape(writer)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores(scores)
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (len(pieces) - 259))
    finish(writer)


def spelled(tokenizer: proofinfer.Tokenizer, text: str) -> str:
    """The text without the characters that have a byte for which there is no piece."""

    def has_pieces(part: str) -> bool:
        try:
            tokenizer.encode(part, bos=False, eos=False)
        except proofinfer.FormatError:
            return False
        return True

    return text if has_pieces(text) else "".join(c for c in text if has_pieces(c))


class Comparison:
    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.node, self.folder = arguments.node, folder

    def llama_cpp(self, name: str, path: Path, texts: list[str]) -> None:
        with proofinfer.Tokenizer(path) as tokenizer:
            known = [spelled(tokenizer, text) for text in texts]
        asked = [[text, special] for special in (False, True) for text in known]
        inputs, outputs = self.folder / "texts.json", self.folder / "ids.json"
        inputs.write_text(json.dumps(asked))
        command = ["node", str(HERE / "llama_cpp_tokens.mjs"), str(path.resolve()), str(inputs), str(outputs)]
        subprocess.run(command, cwd=self.node, check=True)
        expected = json.loads(outputs.read_text())
        with proofinfer.Tokenizer(path) as tokenizer:
            self.compare(f"{name}: llama.cpp", tokenizer, asked, expected)

    def compare(self, name: str, tokenizer: proofinfer.Tokenizer, asked: list, expected: list[list[int]]) -> None:
        back = 0
        for (text, special), ids in zip(asked, expected):
            found = tokenizer.encode(text, bos=False, eos=False, special=special)
            if found != ids:
                sys.exit(f"{name}: {text!r} (special: {special})\nproofinfer {found}\nthe other  {ids}")
            if tokenizer.model == "gpt2" and not special:
                decoded = b"".join(tokenizer.decode_bytes(token) for token in found)
                if decoded != text.encode():
                    sys.exit(f"{name}: {text!r} comes back as {decoded!r}")
                back += 1
        tokens = sum(len(ids) for ids in expected)
        print(f"{name}: {len(asked)} texts equal, {tokens} tokens; {back} decoded to themselves", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node", type=Path, help="the folder where node-llama-cpp is installed; without it llama.cpp is not asked")
    parser.add_argument("--smollm2", type=Path, help="SmolLM2's GGUF file")
    parser.add_argument("--tokenizer-bin", type=Path, help="llama2.c's tokenizer.bin of 32000 pieces")
    parser.add_argument("--texts", type=int, default=3000, help="drawn texts a comparison")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--write-llama", type=Path, help="write --tokenizer-bin there as a `llama` vocabulary, and that is all")
    arguments = parser.parse_args()
    if arguments.write_llama:
        write_llama(arguments.write_llama, arguments.tokenizer_bin)
        return
    print(f"seed {arguments.seed}, Unicode of this Python {unicodedata.unidata_version}")
    draw = random.Random(arguments.seed)
    texts = HAND_WRITTEN + [drawn_text(draw) for _ in range(arguments.texts)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        comparison = Comparison(arguments, folder)
        for kind in PRE_TOKENIZERS:
            tokenizer = trained(kind, texts[: len(texts) // 2], kind == "llama-bpe")
            path = folder / f"{kind}.gguf"
            write_gpt2(path, kind, tokenizer)
            # Its special pieces are always recognised.
            known = [assigned(text) for text in texts]
            with proofinfer.Tokenizer(path) as ours:
                expected = [tokenizer.encode(text, add_special_tokens=False).ids for text in known]
                comparison.compare(f"{kind}: tokenizers", ours, [[text, True] for text in known], expected)
            if arguments.node:
                for pre in (kind, "default") if kind == "gpt-2" else (kind,):
                    write_gpt2(path, pre, tokenizer)
                    comparison.llama_cpp(f"{pre} trained here", path, texts)
        if arguments.node and arguments.tokenizer_bin:
            write_llama(folder / "llama.gguf", arguments.tokenizer_bin)
            comparison.llama_cpp("tokenizer.bin as `llama`", folder / "llama.gguf", texts)
        if arguments.node and arguments.smollm2:
            comparison.llama_cpp("SmolLM2", arguments.smollm2, texts)


if __name__ == "__main__":
    main()
