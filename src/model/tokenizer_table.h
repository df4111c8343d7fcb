// The tokenizer's hash table of numbers. Immutable once filled: any thread.
#ifndef PROOFINFER_MODEL_TOKENIZER_TABLE_H
#define PROOFINFER_MODEL_TOKENIZER_TABLE_H

#include "base/memory.h"

namespace proofinfer {

inline uint64_t pair_key(int32_t left, int32_t right) { return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right); }

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

}  // namespace proofinfer

#endif
