#include "json.h"

#include <math.h>
#include <stdio.h>

namespace proofinfer::cli {
namespace {

// The length of the valid UTF-8 character that `text` begins with, or 0. No overlong forms, no surrogates, nothing above U+10FFFF.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  const auto continues = [&](size_t at, unsigned lowest, unsigned highest) { return byte(at) >= lowest && byte(at) <= highest; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = continues(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF);
    return second && continues(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = continues(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && continues(2, 0x80, 0xBF) && continues(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

void append_escaped(std::string &to, char character) {
  switch (character) {
    case '"': to += "\\\""; return;
    case '\\': to += "\\\\"; return;
    case '\n': to += "\\n"; return;
    case '\r': to += "\\r"; return;
    case '\t': to += "\\t"; return;
    default: break;
  }
  const unsigned char byte = static_cast<unsigned char>(character);
  if (byte >= 32 && byte != 127) {
    to += character;
    return;
  }
  char text[8];
  snprintf(text, sizeof(text), "\\u%04x", static_cast<unsigned>(byte));
  to += text;
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    if (bytes == 0) quoted += "\xEF\xBF\xBD";
    if (bytes == 1) append_escaped(quoted, text[0]);
    if (bytes > 1) quoted.append(text.data(), bytes);
    text.remove_prefix(bytes ? bytes : 1);
  }
  return quoted + "\"";
}

void JsonWriter::real(std::string_view key, double value) {
  char text[64];
  snprintf(text, sizeof(text), "%.12g", value);
  raw(key, isfinite(value) ? text : "null");
}

void JsonWriter::raw(std::string_view key, std::string_view value) {
  if (depth_ > 0) {
    if (!first_) text_ += ',';
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }
  if (!key.empty()) text_ += json_quoted(key) + ": ";
  text_ += value;
  first_ = false;
}

void JsonWriter::open(std::string_view key, char bracket) {
  raw(key, std::string(1, bracket));
  depth_++;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  depth_--;
  if (!first_) {
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }
  text_ += bracket;
  first_ = false;
}

}  // namespace proofinfer::cli
