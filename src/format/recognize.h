// Says what bytes look like when they are not the format that was asked for.
#ifndef PROOFINFER_FORMAT_RECOGNIZE_H
#define PROOFINFER_FORMAT_RECOGNIZE_H

#include <stddef.h>

namespace proofinfer {

// "an HTML page", "a Git LFS pointer", "a GGUF file", "text", ... or nullptr. first: [count], the file's first bytes. *is_model: a model file of
// another format rather than the wrong kind of file.
const char *recognize(const unsigned char *first, size_t count, bool *is_model);

}  // namespace proofinfer

#endif
