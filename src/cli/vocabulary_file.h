// Which vocabulary a file holds, and how many pieces a tokenizer.bin has: the format does not say, so the file is walked. Any thread.
#ifndef PROOFINFER_CLI_VOCABULARY_FILE_H
#define PROOFINFER_CLI_VOCABULARY_FILE_H

#include <stdint.h>

#include <optional>
#include <string>

namespace proofinfer::cli {

// nullopt: the file cannot be read, or does not end with the end of a piece. Allocates nothing that depends on the file's contents.
std::optional<int32_t> count_pieces(const std::string &path);

// Whether the file begins as GGUF files do, which hold their vocabulary and its size.
bool is_gguf_file(const std::string &path);

}  // namespace proofinfer::cli

#endif
