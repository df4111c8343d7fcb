// The tokenizer.* keys of a GGUF file -> a validated vocabulary. Reading: one thread at a time.
//
// tokenizer.ggml.model `llama` and `gpt2` are read; the latter with the pre-tokenizers of kPreTokenizers (gguf_vocabulary.cpp, listed in
// docs/tokenizers.md). Any other is kUnsupported, with what it is and what is supported. tokens are required, and merges for `gpt2`; scores,
// token_type, the special ids, the flags add_bos_token, add_eos_token and add_space_prefix, and tokenizer.chat_template may be absent.
#ifndef PROOFINFER_FORMAT_GGUF_VOCABULARY_H
#define PROOFINFER_FORMAT_GGUF_VOCABULARY_H

#include "base/source.h"
#include "format/vocabulary.h"

namespace proofinfer {

// Whether the source begins as GGUF files do.
Status looks_like_gguf(Source *source, bool *is_gguf, Failure *failure);

// wanted: 0, or at least as many pieces as the file has; those that it does not have are empty control pieces.
// Errors: those of Gguf; kFormat names the key, what was found and what was expected; kArgument (wanted); kUnsupported; kMemory, kLimit.
Status read_gguf_vocabulary(Source *source, size_t wanted, Account *account, Vocabulary *vocabulary, Failure *failure);

}  // namespace proofinfer

#endif
