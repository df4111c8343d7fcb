#include "format/gguf_metadata.h"

#include <stdio.h>
#include <string.h>

namespace proofinfer {

namespace {

// Writes what fits and counts all, so that a first run without room tells how much is needed.
struct Writer {
  char *to;
  size_t capacity, bytes;

  void put(const char *text, size_t count) {
    if (to && bytes + count <= capacity) memcpy(to + bytes, text, count);
    bytes += count;
  }
  void put(const char *text) { put(text, strlen(text)); }
};

void put_number(Writer *writer, GgufType type, uint64_t bits) {
  char text[40];
  if (type == GgufType::kBool) {
    snprintf(text, sizeof(text), "%s", bits ? "true" : "false");
  } else if (type == GgufType::kF32 || type == GgufType::kF64) {
    double value = 0;
    uint32_t low = static_cast<uint32_t>(bits);
    float single = 0;
    memcpy(&value, &bits, sizeof(value));
    memcpy(&single, &low, sizeof(single));
    if (type == GgufType::kF32)
      snprintf(text, sizeof(text), "%.9g", static_cast<double>(single));
    else
      snprintf(text, sizeof(text), "%.17g", value);
    for (char *c = text; *c; c++)  // the locale's decimal point, if it is another
      if (*c == ',') *c = '.';
  } else if (type == GgufType::kI8 || type == GgufType::kI16 || type == GgufType::kI32 || type == GgufType::kI64) {
    snprintf(text, sizeof(text), "%lld", (long long)bits);
  } else {
    snprintf(text, sizeof(text), "%llu", (unsigned long long)bits);
  }
  writer->put(text);
}

// Bytes of a text to show: no character of UTF-8 is cut.
size_t shown_bytes(const unsigned char *text, uint64_t bytes, size_t there) {
  if (bytes <= there) return static_cast<size_t>(bytes);
  size_t end = there;
  while (end > 0 && there - end < 3 && (text[end] & 0xC0) == 0x80) end--;
  return (text[end] & 0xC0) == 0x80 ? there : end;
}

// The text of `bytes` bytes at the cursor, at most `most` of them.
Status put_text(Writer *writer, GgufCursor *cursor, uint64_t bytes, uint64_t most, Failure *failure) {
  unsigned char part[GgufMetadata::kTextBytes + 1] = {0};
  uint64_t read = bytes < most + 1 ? bytes : most + 1;
  Status status = cursor->read(part, read, "text", failure);
  if (status == kOk) status = cursor->skip(bytes - read, "text", failure);
  if (status != kOk) return status;
  writer->put(reinterpret_cast<const char *>(part), shown_bytes(part, bytes, static_cast<size_t>(most < bytes ? most : bytes)));
  if (bytes > most) {
    char rest[48];
    snprintf(rest, sizeof(rest), "... (%llu bytes)", (unsigned long long)bytes);
    writer->put(rest);
  }
  return kOk;
}

Status put_array(Writer *writer, Source *source, const GgufKey &key, Failure *failure) {
  GgufCursor cursor(source, key.offset);
  Status status = kOk;
  writer->put("[");
  for (uint64_t i = 0; status == kOk && i < key.value && i < GgufMetadata::kElements; i++) {
    if (i) writer->put(", ");
    if (key.element_type == GgufType::kText) {
      uint64_t bytes = 0;
      status = cursor.read_text_bytes(&bytes, "text", failure);
      writer->put("\"");
      if (status == kOk) status = put_text(writer, &cursor, bytes, GgufMetadata::kElementTextBytes, failure);
      writer->put("\"");
    } else {
      uint64_t bits = 0;
      status = cursor.read_number(key.element_type, &bits, "number", failure);
      put_number(writer, key.element_type, bits);
    }
  }
  writer->put(key.value > GgufMetadata::kElements ? ", ...]" : "]");
  char count[64];
  snprintf(count, sizeof(count), " (%llu of %s)", (unsigned long long)key.value, gguf_type_name(key.element_type));
  if (key.value > GgufMetadata::kElements) writer->put(count);
  return status;
}

Status put_value(Writer *writer, Source *source, const GgufKey &key, Failure *failure) {
  if (key.type == GgufType::kArray) return put_array(writer, source, key, failure);
  if (key.type != GgufType::kText) return put_number(writer, key.type, key.value), kOk;
  GgufCursor cursor(source, key.offset);
  return put_text(writer, &cursor, key.value, GgufMetadata::kTextBytes, failure);
}

}  // namespace

Status GgufMetadata::read(Source *source, const Gguf &gguf, Account *account, Failure *failure) {
  Status status = values_.allocate(account, gguf.key_count(), "GGUF metadata", failure);
  Writer counter = {nullptr, 0, 0};
  for (size_t i = 0; status == kOk && i < gguf.key_count(); i++) status = put_value(&counter, source, gguf.key(i), failure);
  if (status == kOk) status = bytes_.allocate(account, counter.bytes, "GGUF metadata", failure);
  Writer writer = {bytes_.data(), bytes_.count(), 0};
  for (size_t i = 0; status == kOk && i < gguf.key_count(); i++) {
    values_[i].at = writer.bytes;
    status = put_value(&writer, source, gguf.key(i), failure);
    values_[i].bytes = writer.bytes - values_[i].at;
  }
  return status;
}

}  // namespace proofinfer
