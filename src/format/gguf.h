// GGUF bytes -> a checked directory of keys and tensors. Knows no model. Opening and walking: one thread at a time; the directory is then immutable.
//
// Versions 2 and 3, little-endian. A file is: "GGUF", u32 version, u64 tensors, u64 keys; the keys, each a name, a type and a value; the tensors,
// each a name, dimensions, an element type and an offset into the data; the data, aligned to `general.alignment`, or else to 32. A text is a u64 length
// and bytes. Nothing is believed: counts are held to what the bytes left could hold, and memory is asked for as entries are really there, so
// that it stays within ten times the file even for one that is nothing but the smallest keys. Names occur once. Tensors are aligned, inside
// the file and apart; gaps between them have no meaning; behind the last one only the filling up to the alignment may follow.
//
// Errors: kUnrecognized (no GGUF file), kUnsupported (another version or byte order, an element type that is not read here, arrays of arrays, more
// than two dimensions), kTruncated (the bytes end inside of something; names it, its offset and what it needs), kFormat (all else).
#ifndef PROOFINFER_FORMAT_GGUF_H
#define PROOFINFER_FORMAT_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/source.h"

namespace proofinfer {

// The types of values, numbered as files do.
enum class GgufType : uint8_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kArray, kU64, kI64, kF64 };
constexpr uint32_t kGgufTypes = 13;
const char *gguf_type_name(GgufType type);
// Bytes of one value; 0 for texts and arrays.
size_t gguf_type_bytes(GgufType type);

// An element type of tensors: a row is whole blocks of block_columns weights in block_bytes bytes.
struct GgufElement {
  const char *name;  // as the format spells it: "F32", "Q4_K"
  const char *text;  // as this library does: "f32", "q4_k"
  uint32_t type;     // as files number it
  uint16_t block_columns, block_bytes;
};
// nullptr: not read here.
const GgufElement *gguf_element(uint32_t type);

struct GgufKey {
  size_t name_at;
  uint32_t name_bytes;
  GgufType type, element_type;  // element_type: of an array
  uint64_t offset;              // in the file: of a number, of a text's first byte, of an array's first element
  uint64_t value;               // a number's bits, those of signed ones extended; bytes of a text; elements of an array
};

struct GgufTensor {
  size_t name_at;
  uint32_t name_bytes;
  uint32_t type;           // one that gguf_element knows
  uint64_t columns, rows;  // at least 1 each; a vector is one row
  uint64_t offset, bytes;  // in the file
  uint64_t described_at;   // the offset of its entry, for messages
  bool is_vector;          // it has one dimension
};

// A text, or the elements of an array, in the file.
struct GgufText {
  uint64_t offset = 0, bytes = 0;
};
struct GgufArray {
  uint64_t offset = 0, count = 0;
};

enum class Need { kOptional, kRequired };

class Gguf {
 public:
  // Entries of each kind that a file may have: hundreds of times what real ones do.
  static constexpr uint64_t kMaxEntries = uint64_t(1) << 20;
  static constexpr uint64_t kMaxNameBytes = 65535;
  static constexpr uint64_t kDefaultAlignment = 32, kMaxAlignment = 65536;

  // Whether the first bytes of a file are those of a GGUF file, of whatever version.
  static bool is_gguf(const unsigned char *first, size_t count);

  // Checks the whole directory. account: must outlive this.
  Status open(Source *source, Account *account, Failure *failure);

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  uint64_t file_bytes() const { return file_bytes_; }

  // Keys and tensors in file order. Names are bytes, not NUL-terminated.
  size_t key_count() const { return key_count_; }
  const GgufKey &key(size_t index) const { return keys_[index]; }
  size_t tensor_count() const { return tensor_count_; }
  const GgufTensor &tensor(size_t index) const { return tensors_[index]; }
  template <typename Entry>
  const char *name(const Entry &entry) const {
    return reinterpret_cast<const char *>(names_.data() + entry.name_at);
  }

  // nullptr: there is none of that name.
  const GgufKey *find(const char *name) const;
  const GgufTensor *find_tensor(const char *name) const;

  // Typed getters. A value of another type is kFormat; an absent one kFormat if required, else *value stays as it is. Integers may be of any width
  // and, unless negative, signed.
  Status get_u64(const char *name, Need need, uint64_t *value, Failure *failure) const;
  Status get_f32(const char *name, Need need, float *value, Failure *failure) const;
  Status get_bool(const char *name, Need need, bool *value, Failure *failure) const;
  Status get_text(const char *name, Need need, GgufText *text, Failure *failure) const;
  // An array of elements of that type.
  Status get_array(const char *name, Need need, GgufType element_type, GgufArray *array, Failure *failure) const;

  // A text that is the name of something: to, [capacity], gets it or its beginning, and a NUL; "" if it is absent and optional. A NUL in it becomes
  // '?', so that it equals no name that it only begins with.
  Status get_name(const char *name, Need need, Source *source, char *to, size_t capacity, Failure *failure) const;

  // The failure for a value that is of the right type and cannot be.
  static Status fail_value(const GgufKey &key, const char *name, const char *found, const char *expected, Status status, Failure *failure);

 private:
  Status read_keys(uint64_t count, class GgufCursor *cursor, Account *account, Failure *failure);
  Status read_value(GgufKey *key, class GgufCursor *cursor, Failure *failure);
  Status read_array(GgufKey *key, class GgufCursor *cursor, Failure *failure);
  Status read_tensors(uint64_t count, class GgufCursor *cursor, Account *account, Failure *failure);
  Status read_dimensions(GgufTensor *tensor, class GgufCursor *cursor, Failure *failure);
  Status read_name(const char *kind, size_t index, class GgufCursor *cursor, Account *account, size_t *at, uint32_t *bytes,
                   Failure *failure);
  Status read_alignment(Failure *failure);
  Status place_tensors(uint64_t directory_end, Account *account, Failure *failure);
  Status check_type(const GgufKey *key, const char *name, Need need, GgufType expected, Failure *failure) const;

  uint32_t version_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  uint64_t file_bytes_ = 0;
  Buffer<unsigned char> names_;  // of keys and tensors, one behind the other
  size_t names_bytes_ = 0;
  Buffer<GgufKey> keys_;
  Buffer<GgufTensor> tensors_;
  size_t key_count_ = 0, tensor_count_ = 0;
  Buffer<uint32_t> keys_by_name_, tensors_by_name_;  // ascending
};

// Reads on through a part of a source: numbers, texts of arrays, in file order with bounded memory.
class GgufCursor {
 public:
  GgufCursor(Source *source, uint64_t offset) : source_(source), at_(offset) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return source_->size_bytes() - at_; }
  // The next bytes, or kTruncated. `what` names them.
  Status read(void *to, uint64_t bytes, const char *what, Failure *failure);
  Status skip(uint64_t bytes, const char *what, Failure *failure);
  Status read_u32(uint32_t *value, const char *what, Failure *failure);
  Status read_u64(uint64_t *value, const char *what, Failure *failure);
  // One value of a type that is neither text nor array: its bits, those of signed ones extended.
  Status read_number(GgufType type, uint64_t *bits, const char *what, Failure *failure);
  // The length of the text that comes next, which is there; then its bytes are read or skipped.
  Status read_text_bytes(uint64_t *bytes, const char *what, Failure *failure);

 private:
  static constexpr size_t kWindowBytes = 2048;
  Source *source_;
  uint64_t at_;
  uint64_t window_at_ = 0;
  size_t window_count_ = 0;
  unsigned char window_[kWindowBytes];  // [window_count_] bytes of the source from window_at_ on
};

}  // namespace proofinfer

#endif
