// The keys of a GGUF file with their values as text, for people: whole numbers and texts, the beginnings of long texts and arrays. Reading: one thread
// at a time; then immutable.
#ifndef PROOFINFER_FORMAT_GGUF_METADATA_H
#define PROOFINFER_FORMAT_GGUF_METADATA_H

#include "format/gguf.h"

namespace proofinfer {

class GgufMetadata {
 public:
  // Of a text so many bytes are shown, and of an array so many elements, each a text of fewer bytes; then comes how much there is.
  static constexpr uint64_t kTextBytes = 8192, kElements = 8, kElementTextBytes = 64;

  // Memory: at most about twelve bytes for each of the file's.
  Status read(Source *source, const Gguf &gguf, Account *account, Failure *failure);

  size_t count() const { return values_.count(); }
  // Value i belongs to key i of the file: bytes as the file has them, numbers in decimal.
  const char *value(size_t i) const { return bytes_.data() + values_[i].at; }
  size_t value_bytes(size_t i) const { return values_[i].bytes; }

 private:
  struct Value {
    size_t at, bytes;
  };
  Buffer<Value> values_;
  Buffer<char> bytes_;
};

}  // namespace proofinfer

#endif
