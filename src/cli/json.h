// Writes JSON: commas, indentation and quoting. Text that is no UTF-8 becomes U+FFFD, so that the output always parses. One thread.
#ifndef PROOFINFER_CLI_JSON_H
#define PROOFINFER_CLI_JSON_H

#include <stdint.h>

#include <string>
#include <string_view>

namespace proofinfer::cli {

// The text between double quotes, as JSON wants it.
std::string json_quoted(std::string_view text);

class JsonWriter {
 public:
  // Inside an object every value has a key; inside an array the key is empty.
  void open_object(std::string_view key = {}) { open(key, '{'); }
  void close_object() { close('}'); }
  void open_array(std::string_view key) { open(key, '['); }
  void close_array() { close(']'); }
  void text(std::string_view key, std::string_view value) { raw(key, json_quoted(value)); }
  void integer(std::string_view key, int64_t value) { raw(key, std::to_string(value)); }
  void boolean(std::string_view key, bool value) { raw(key, value ? "true" : "false"); }
  void null(std::string_view key) { raw(key, "null"); }
  // Twelve significant digits; a value that is not finite becomes null.
  void real(std::string_view key, double value);

  // The document with a newline behind it.
  std::string finish() const { return text_ + "\n"; }

 private:
  void raw(std::string_view key, std::string_view value);
  void open(std::string_view key, char bracket);
  void close(char bracket);

  std::string text_;
  size_t depth_ = 0;
  bool first_ = true;  // nothing stands yet in the innermost object or array
};

}  // namespace proofinfer::cli

#endif
