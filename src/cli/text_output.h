// Token ids to the standard output: as whole UTF-8 characters, or byte for byte as the llama2.c program prints them. One thread.
#ifndef PROOFINFER_CLI_TEXT_OUTPUT_H
#define PROOFINFER_CLI_TEXT_OUTPUT_H

#include <stdint.h>

#include <string>
#include <string_view>

#include "handles.h"

namespace proofinfer::cli {

class TextOutput {
 public:
  // tokenizer: outlives this object. raw: the reference's bytes.
  TextOutput(const proofinfer_tokenizer *tokenizer, bool raw) : tokenizer_(tokenizer), raw_(raw) {}

  bool raw() const { return raw_; }
  // The next token follows `previous`; what was held back is given up.
  void begin(int32_t previous);
  // Prints the text that the token completes.
  void token(int32_t token);
  // Prints the held-back rest of a character, as U+FFFD.
  void flush();
  // Text of the program's own, such as a question.
  void text(std::string_view text);
  bool at_line_start() const { return at_line_start_; }

 private:
  void raw_token(int32_t token);

  const proofinfer_tokenizer *tokenizer_;
  bool raw_;
  bool at_line_start_ = true;
  int32_t previous_ = -1;
  Stream stream_;
  std::string piece_;
};

}  // namespace proofinfer::cli

#endif
