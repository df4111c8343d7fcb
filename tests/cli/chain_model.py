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


def _vocabulary_keys(add_bos, without, extra):
    table = pieces([b"\xe2\x96\x81", *extra])
    kinds = [2, 3, 3] + [6] * 256 + [1] * (1 + len(extra))
    if without is not None:
        table[byte_token(without)], kinds[byte_token(without)], kinds[0] = b"<none>", 5, 3
    return [
        (b"general.architecture", 8, _gguf_text(b"llama")),
        (b"tokenizer.ggml.model", 8, _gguf_text(b"llama")),
        (b"tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, len(table)) + b"".join(map(_gguf_text, table))),
        (b"tokenizer.ggml.token_type", 9, struct.pack("<IQ%di" % len(kinds), 5, len(kinds), *kinds)),
        (b"tokenizer.ggml.add_bos_token", 7, bytes([add_bos])),
    ]


def _write_gguf(path, keys, tensors=()):
    """tensors: name, columns, rows (0: a vector) and float32 values."""
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)))
        for name, kind, value in keys:
            file.write(_gguf_text(name) + struct.pack("<I", kind) + value)
        offset = 0
        for name, columns, rows, values in tensors:
            sizes = [columns, rows] if rows else [columns]
            file.write(_gguf_text(name) + struct.pack("<I%dQIQ" % len(sizes), len(sizes), *sizes, 0, offset))
            offset += -(-4 * len(values) // 32) * 32
        for _, _, _, values in tensors:
            file.write(bytes(-file.tell() % 32) + struct.pack("<%df" % len(values), *values))
        file.write(bytes(-file.tell() % 32))


def write_gguf_vocabulary(path, add_bos=True, without=None, extra=()):
    """A GGUF file of these pieces, U+2581 for a space and `extra`. without: a byte that has no piece and becomes <unk>, a control piece then."""
    _write_gguf(path, _vocabulary_keys(add_bos, without, extra))


def write_gguf_model(path, successors, keys=(), seq_len=256):
    """The same model and vocabulary as a GGUF file. keys: name, number of the type and bytes of more metadata."""
    vocab_size, hidden_dim = 260, 2
    dim, embedding, classifier = _tables(successors, vocab_size)
    numbers = (("block_count", 1), ("context_length", seq_len), ("embedding_length", dim), ("feed_forward_length", hidden_dim),
               ("attention.head_count", 1), ("attention.head_count_kv", 1))
    shape = [(b"llama." + name.encode(), 4, struct.pack("<I", value)) for name, value in numbers]
    shape.append((b"llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)))
    ones, nothing = [1.0] * dim, [0.0] * (dim * dim)
    tensors = [(b"token_embd.weight", dim, vocab_size, embedding), (b"blk.0.attn_norm.weight", dim, 0, ones)]
    tensors += [(b"blk.0.attn_%s.weight" % name, dim, dim, nothing) for name in (b"q", b"k", b"v", b"output")]
    tensors.append((b"blk.0.ffn_norm.weight", dim, 0, ones))
    tensors += [(b"blk.0.ffn_%s.weight" % name, dim, hidden_dim, [0.0] * (dim * hidden_dim)) for name in (b"gate", b"up")]
    tensors += [(b"blk.0.ffn_down.weight", hidden_dim, dim, [0.0] * (dim * hidden_dim)), (b"output_norm.weight", dim, 0, ones),
                (b"output.weight", dim, vocab_size, classifier)]
    _write_gguf(path, [*_vocabulary_keys(True, None, ()), *shape, *keys], tensors)


def _tables(successors, vocab_size):
    """The dimension, the embedding and the classifier."""
    tokens = sorted(set(successors))
    dim = max(2, len(tokens) + len(tokens) % 2)
    embedding = [0.0] * (vocab_size * dim)
    classifier = [0.0] * (vocab_size * dim)
    for unit, token in enumerate(tokens):
        embedding[token * dim + unit] = 1.0
        classifier[successors[token] * dim + unit] = 1.0
    return dim, embedding, classifier


def write_model(path, successors, vocab_size=260, seq_len=256):
    dim, embedding, classifier = _tables(successors, vocab_size)
    hidden_dim = 2
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
