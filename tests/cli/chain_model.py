"""A model that says what a test wants: its next token depends on the last one alone, by a table.

The matrices of its only layer are zero, so that a token's embedding reaches the classifier as it is; the embedding of the token number
i in the table is the unit vector i, and the classifier's row of its successor is that vector again. Tokens outside the table are followed
by token 0. Written in the legacy checkpoint format, with a tokenizer of the three special pieces, the 256 byte pieces, and `extra`.
"""

import struct

BOS = 1
EOS = 2


def byte_token(value):
    return value + 3


def pieces(extra):
    spelled = [b"<0x%02X>" % value for value in range(256)]
    return [b"<unk>", b"\n<s>\n", b"\n</s>\n"] + spelled + list(extra)


def write_tokenizer(path, extra=(b" ",)):
    """Returns the ids of the extra pieces."""
    table = pieces(extra)
    with open(path, "wb") as file:
        file.write(struct.pack("<I", max(len(piece) for piece in table)))
        for number, piece in enumerate(table):
            file.write(struct.pack("<fi", -float(number), len(piece)) + piece)
    return {piece: 259 + number for number, piece in enumerate(extra)}


def _gguf_text(text):
    return struct.pack("<Q", len(text)) + text


def write_gguf_vocabulary(path, add_bos=True, without=None, extra=()):
    """A GGUF file of these pieces, U+2581 for a space and `extra`. without: a byte that has no piece and becomes <unk>, a control piece then."""
    table = pieces([b"\xe2\x96\x81", *extra])
    kinds = [2, 3, 3] + [6] * 256 + [1] * (1 + len(extra))
    if without is not None:
        table[byte_token(without)], kinds[byte_token(without)], kinds[0] = b"<none>", 5, 3
    keys = [
        (b"general.architecture", 8, _gguf_text(b"llama")),
        (b"tokenizer.ggml.model", 8, _gguf_text(b"llama")),
        (b"tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, len(table)) + b"".join(map(_gguf_text, table))),
        (b"tokenizer.ggml.token_type", 9, struct.pack("<IQ%di" % len(kinds), 5, len(kinds), *kinds)),
        (b"tokenizer.ggml.add_bos_token", 7, bytes([add_bos])),
    ]
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)))
        for name, kind, value in keys:
            file.write(_gguf_text(name) + struct.pack("<I", kind) + value)


def write_model(path, successors, vocab_size=260, seq_len=256):
    tokens = sorted(set(successors))
    dim = max(2, len(tokens) + len(tokens) % 2)
    hidden_dim = 2
    embedding = [0.0] * (vocab_size * dim)
    classifier = [0.0] * (vocab_size * dim)
    for unit, token in enumerate(tokens):
        embedding[token * dim + unit] = 1.0
        classifier[successors[token] * dim + unit] = 1.0
    with open(path, "wb") as file:
        # A negative vocabulary says that the classifier is separate.
        file.write(struct.pack("<7i", dim, hidden_dim, 1, 1, 1, -vocab_size, seq_len))
        file.write(struct.pack("<%df" % len(embedding), *embedding))
        file.write(struct.pack("<%df" % dim, *[1.0] * dim))  # attention norm
        file.write(bytes(4 * 4 * dim * dim))  # wq, wk, wv, wo
        file.write(struct.pack("<%df" % dim, *[1.0] * dim))  # ffn norm
        file.write(bytes(4 * 3 * dim * hidden_dim))  # w1, w2, w3
        file.write(struct.pack("<%df" % dim, *[1.0] * dim))  # final norm
        file.write(bytes(4 * seq_len * dim))  # the format's unused tables
        file.write(struct.pack("<%df" % len(classifier), *classifier))


def cycle(tokens):
    """BOS, then the tokens over and over; each may occur once."""
    successors = {BOS: tokens[0]}
    for number, token in enumerate(tokens):
        successors[token] = tokens[(number + 1) % len(tokens)]
    return successors
