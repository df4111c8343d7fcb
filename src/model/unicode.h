// What a byte of text begins: one code point of UTF-8 and its class, or a byte that begins none. Any thread.
#ifndef PROOFINFER_MODEL_UNICODE_H
#define PROOFINFER_MODEL_UNICODE_H

#include <stddef.h>
#include <stdint.h>

namespace proofinfer {

enum class CharClass : uint8_t { kOther = 0, kLetter = 1, kNumber = 2, kSpace = 3, kPunctuation = 4, kEnd = 5 };

struct Char {
  uint32_t code;  // U+FFFD for a byte that begins no character
  CharClass kind;
  uint8_t bytes;  // 1 to 4; 0 at the end of the text
};

// The first character of text[0, bytes). A byte that begins no valid character (overlong forms, surrogates and what is above U+10FFFF are
// none) is one of class kOther by itself.
Char first_char(const unsigned char *text, size_t bytes);

// unicode_table.cpp
constexpr size_t kUnicodeBlock = 128, kUnicodeBlockCount = 1608;
extern const uint8_t kUnicodeBlockOf[kUnicodeBlockCount];
extern const uint8_t kUnicodeClasses[];  // one block after another

inline CharClass class_of(uint32_t code) {
  size_t block = code / kUnicodeBlock;
  if (block >= kUnicodeBlockCount) return CharClass::kOther;
  unsigned pair = kUnicodeClasses[kUnicodeBlockOf[block] * (kUnicodeBlock / 2) + code % kUnicodeBlock / 2];
  return static_cast<CharClass>(code & 1 ? pair >> 4 : pair & 15);
}

// The bytes of a character that begins with `lead`; 0: none does.
inline size_t character_bytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;  // continuation bytes, and the overlong C0 and C1
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;  // nothing above U+10FFFF
}

// Whether `byte` can be the second byte after `lead`: no overlong forms, no surrogates, nothing above U+10FFFF.
inline bool may_be_second(unsigned char lead, unsigned char byte) {
  unsigned char lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return byte >= lowest && byte <= highest;
}

}  // namespace proofinfer

#endif
