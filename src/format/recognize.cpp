#include "format/recognize.h"

#include <string.h>

namespace proofinfer {

namespace {

struct Magic {
  const char *bytes;
  size_t count;
  bool is_model;
  const char *what;
};

constexpr Magic kMagics[] = {
    {"GGUF", 4, true, "a GGUF file"},
    {"FUGG", 4, true, "a big-endian GGUF file"},
    {"lmgg", 4, true, "a GGML file"},
    {"tjgg", 4, true, "a GGJT file"},
    {"fmgg", 4, true, "a GGMF file"},
    {"ak42", 4, true, "a byte-swapped llama2.c checkpoint with a version header"},
    {"PK\x03\x04", 4, true, "a ZIP archive (PyTorch checkpoints are)"},
    {"\x80\x02", 2, true, "a Python pickle (old PyTorch checkpoints are)"},
    {"\x1f\x8b", 2, false, "a gzip file"},
    {"\x7f"
     "ELF",
     4, false, "an ELF program or library"},
    {"%PDF", 4, false, "a PDF document"},
    {"\x89PNG", 4, false, "a PNG picture"},
    {"version https://git-lfs", 23, false, "a Git LFS pointer (the file itself was not fetched)"},
};

bool is_space(unsigned char c) { return c == ' ' || (c >= 9 && c <= 13); }

// At least this many bytes must look like text before they are called so: seven small int32 never do.
constexpr size_t kTextBytes = 16;

bool looks_like_text(const unsigned char *first, size_t count) {
  if (count < kTextBytes) return false;
  for (size_t i = 0; i < count; i++)
    if (first[i] < 0x20 && !is_space(first[i])) return false;
  return true;
}

bool starts_with_word(const unsigned char *first, size_t count, const char *lower) {
  size_t length = strlen(lower);
  if (count < length) return false;
  for (size_t i = 0; i < length; i++)
    if ((first[i] | (first[i] >= 'A' && first[i] <= 'Z' ? 0x20 : 0)) != (unsigned char)lower[i]) return false;
  return true;
}

}  // namespace

const char *recognize(const unsigned char *first, size_t count, bool *is_model) {
  *is_model = false;
  for (const Magic &magic : kMagics) {
    if (count < magic.count || memcmp(first, magic.bytes, magic.count) != 0) continue;
    *is_model = magic.is_model;
    return magic.what;
  }
  if (count >= 10 && memcmp(first + 8, "{\"", 2) == 0) return *is_model = true, "a safetensors file";
  const bool text = looks_like_text(first, count);
  while (count > 0 && is_space(*first)) first++, count--;
  if (starts_with_word(first, count, "<!doctype html") || starts_with_word(first, count, "<html")) return "an HTML page";
  if (starts_with_word(first, count, "<?xml")) return "an XML document";
  return text ? "text" : nullptr;
}

}  // namespace proofinfer
