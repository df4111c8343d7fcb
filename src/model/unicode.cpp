#include "model/unicode.h"

namespace proofinfer {

Char first_char(const unsigned char *text, size_t bytes) {
  if (bytes == 0) return {0, CharClass::kEnd, 0};
  if (text[0] < 0x80) return {text[0], class_of(text[0]), 1};
  constexpr Char kNone = {0xFFFD, CharClass::kOther, 1};
  size_t count = character_bytes(text[0]);
  if (count == 0 || count > bytes || !may_be_second(text[0], text[1])) return kNone;
  uint32_t code = text[0] & (0x7Fu >> count);
  for (size_t i = 1; i < count; i++) {
    if ((text[i] & 0xC0) != 0x80) return kNone;
    code = code << 6 | (text[i] & 0x3Fu);
  }
  return {code, class_of(code), static_cast<uint8_t>(count)};
}

}  // namespace proofinfer
