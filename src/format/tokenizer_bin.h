// llama2.c's tokenizer.bin: bytes -> a validated vocabulary. Reading: one thread at a time; the vocabulary is then immutable.
//
// The file: u32 longest piece (advisory, not believed), then per piece float32 score, i32 length, bytes; little-endian. There is no count:
// the caller says how many pieces to read; bytes after them are allowed and ignored.
#ifndef PROOFINFER_FORMAT_TOKENIZER_BIN_H
#define PROOFINFER_FORMAT_TOKENIZER_BIN_H

#include "base/source.h"
#include "format/vocabulary.h"

namespace proofinfer {

// Reads `wanted` pieces, at least 1. The first pass over the file checks everything and allocates nothing, so that memory is only asked for
// bytes that exist. Errors: kUnrecognized, kTruncated, kFormat, kIo, kMemory, kLimit; the message names piece, offset, expected and found.
Status read_tokenizer_bin(Source *source, size_t wanted, Account *account, Vocabulary *vocabulary, Failure *failure);

}  // namespace proofinfer

#endif
