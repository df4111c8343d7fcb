// Text to token ids and back, as the llama2.c reference does it, in near-linear time. Immutable after create: any thread.
//
// Pieces are byte strings with explicit lengths: empty ones and ones with NUL inside are ordinary (the reference's C strings end at a NUL),
// and of equal pieces the lowest id is the one that text turns into.
#ifndef PROOFINFER_MODEL_TOKENIZER_H
#define PROOFINFER_MODEL_TOKENIZER_H

#include "base/object.h"
#include "base/source.h"
#include "format/tokenizer_bin.h"
#include "model/settings.h"

namespace proofinfer {

struct Bytes {
  const unsigned char *data;  // [count]
  size_t count;
};

// 64-bit key -> token id with the order of its score. Open addressing over a power of two, at most two thirds full. The hash is seeded by
// what the vocabulary holds, so that a file cannot be written to collide: every byte changed for it changes the seed.
class IdTable {
 public:
  struct Slot {
    uint64_t key;
    int32_t id;      // -1: free
    uint32_t order;  // ascending means descending score
  };
  Status reserve(Account *account, size_t count, uint64_t seed, const char *what, Failure *failure);
  // At most as many as reserved. A key that is already there keeps its first value.
  void insert(uint64_t key, int32_t id, uint32_t order);
  // nullptr: not there.
  const Slot *find(uint64_t key) const {
    for (size_t i = start(key);; i = (i + 1) & mask_) {
      const Slot &slot = slots_[i];
      if (slot.id < 0) return nullptr;
      if (slot.key == key) return &slot;
    }
  }

 private:
  size_t start(uint64_t key) const {
    uint64_t h = (key ^ seed_) * 0x9E3779B97F4A7C15u;
    h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
    return static_cast<size_t>(h >> 32) & mask_;
  }

  Buffer<Slot> slots_;  // [mask_ + 1]
  size_t mask_ = 0;
  uint64_t seed_ = 0;
};

class Tokenizer : public Object {
 public:
  static constexpr Kind kKind = Kind::kTokenizer;
  // Texts are shorter than this, so that a position fits 32 bits.
  static constexpr size_t kMaxTextBytes = (size_t(1) << 31) - 16;

  // vocab_size is at least 1. Errors: those of read_tokenizer_bin.
  static Status create(Source *source, int32_t vocab_size, const Settings &settings, Tokenizer **tokenizer, Failure *failure);
  Tokenizer(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  int32_t vocab_size() const { return static_cast<int32_t>(vocabulary_.count); }
  // The format's fixed ids; -1 when the vocabulary is too small to have them.
  int32_t bos() const { return vocab_size() > kBos ? kBos : -1; }
  int32_t eos() const { return vocab_size() > kEos ? kEos : -1; }
  bool has(int32_t id) const { return id >= 0 && id < vocab_size(); }

  // The piece as the file has it, and its score. id: inside the vocabulary.
  Bytes piece(int32_t id) const {
    size_t i = static_cast<size_t>(id);
    return {vocabulary_.piece(i), vocabulary_.length(i)};
  }
  float score(int32_t id) const { return vocabulary_.scores[static_cast<size_t>(id)]; }

  // ids: [*count] on success, at most text_bytes + 3. Takes at most 40 bytes of memory a byte of text, and gives all but `ids` back.
  // Errors: kArgument (text too long), kFormat (the vocabulary lacks a piece that the text or a flag needs), kMemory, kLimit.
  Status encode(const char *text, size_t text_bytes, bool with_bos, bool with_eos, Buffer<int32_t> *ids, size_t *count,
                Failure *failure) const;

  // What `token` adds to a text after `previous` (-1: none): one leading space is dropped after BOS; unless `spelled`, "<0x" two hexadecimal
  // digits ">" is the byte that they name (any other spelling, "<0x-1>" or "<0x1>", is ordinary text). Valid as long as the tokenizer.
  Bytes decode(int32_t previous, int32_t token, bool spelled) const;

 private:
  friend class Merger;
  static constexpr int32_t kBos = 1, kEos = 2, kFirstByte = 3;  // ids that the format fixes

  Status build(Failure *failure);
  Status build_units(uint64_t seed, Failure *failure);
  Status build_pairs(uint64_t seed, Failure *failure);
  // Whether the last byte of one piece and the first of the next stand side by side where some pair merges, or one is empty.
  bool may_join(int32_t left, int32_t right) const;
  Status append_units(const unsigned char *text, size_t text_bytes, int32_t *ids, size_t *count, Failure *failure) const;
  Status fail_byte(unsigned byte, size_t offset, Failure *failure) const;
  Status merge(int32_t *ids, size_t *count, Failure *failure) const;
  size_t segment_end(const int32_t *ids, size_t begin, size_t count) const;

  Vocabulary vocabulary_;
  Buffer<int32_t> canonical_;  // [vocab_size] the lowest id with the same bytes
  Buffer<uint32_t> ends_;      // [vocab_size] first byte | last byte << 8, or kEmptyPiece
  IdTable pairs_;              // left id << 32 | right id (both canonical) -> the piece that is their concatenation
  IdTable units_;              // length << 32 | bytes, of pieces of 1 to 4 bytes -> id
  int32_t single_[256];        // the id that a unit of this one byte gives; -1: none
  uint64_t joins_[256][4];     // bit [left][right]: some pair in pairs_ has a left piece ending and a right piece beginning so
};

}  // namespace proofinfer

#endif
