#include "text_output.h"

#include <algorithm>

#include "terminal.h"

namespace proofinfer::cli {

void TextOutput::begin(int32_t previous) {
  previous_ = previous;
  stream_ = make<Stream>(proofinfer_stream_create, tokenizer_, previous);
}

void TextOutput::token(int32_t token) {
  if (raw_) return raw_token(token);
  read_text(piece_, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
    return proofinfer_stream_push(stream_.get(), token, buffer, capacity, needed, error);
  });
  text(without_controls(piece_));
}

// A piece ends at a NUL, and one that is a single byte is printed only if it is printable ASCII or white space.
void TextOutput::raw_token(int32_t token) {
  read_text(piece_, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
    return proofinfer_tokenizer_decode(tokenizer_, previous_, token, 0, buffer, capacity, needed, error);
  });
  previous_ = token;
  piece_.resize(std::min(piece_.size(), piece_.find('\0')));
  if (piece_.size() == 1) {
    const unsigned char byte = static_cast<unsigned char>(piece_[0]);
    const bool printed = (byte >= 32 && byte <= 126) || (byte >= 9 && byte <= 13);
    if (!printed) return;
  }
  text(piece_);
}

void TextOutput::flush() {
  if (raw_ || !stream_) return;
  read_text(piece_, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
    return proofinfer_stream_flush(stream_.get(), buffer, capacity, needed, error);
  });
  text(piece_);
}

void TextOutput::text(std::string_view text) {
  if (text.empty()) return;
  print(text);
  at_line_start_ = text.back() == '\n';
}

}  // namespace proofinfer::cli
