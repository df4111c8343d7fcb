// Indexes ranked by 32-bit keys, equal keys by index: what sampling sorts. One thread at a time.
#ifndef PROOFINFER_MODEL_RANKING_H
#define PROOFINFER_MODEL_RANKING_H

#include "base/memory.h"

namespace proofinfer {

// Keys that order as finite floats do; 0 and -0 have the same.
uint32_t ascending_key(float value);
inline uint32_t descending_key(float value) { return ~ascending_key(value); }
// The value with that descending key; 0 for those of 0 and -0.
float descending_value(uint32_t key);

class Ranking {
 public:
  static uint64_t entry(uint32_t key, size_t index) { return static_cast<uint64_t>(key) << 32 | index; }

  // Room for `capacity` indexes, all below 2^32. Does nothing if it is there already.
  Status reserve(Account *account, size_t capacity, Failure *failure);
  void clear() { count_ = 0; }
  // Adds an index if `keep` says so; without a branch, so that there must be room in any case. Indexes come in ascending order.
  void add_if(bool keep, uint32_t key, size_t index) {
    entries_[count_] = entry(key, index);
    count_ += keep;
  }
  // Ascending keys; equal ones stay in the order of their indexes.
  void sort();
  // Replaces the contents by the first `kept` (1 to n) of 0 .. n - 1 in the order of descending values, equal ones in the order of their indexes.
  void take_largest(const float *values, size_t n, size_t kept);

  size_t count() const { return count_; }
  size_t operator[](size_t rank) const { return static_cast<uint32_t>(entries_[rank]); }
  uint32_t key_at(size_t rank) const { return static_cast<uint32_t>(entries_[rank] >> 32); }
  uint64_t entry_at(size_t rank) const { return entries_[rank]; }

 private:
  void sort_few();
  void sort_by_digit(uint32_t shift);
  // The largest leading digit that one of the first `kept` has.
  uint32_t last_leading_digit(const float *values, size_t n, size_t kept);

  size_t count_ = 0;
  Buffer<uint64_t> entries_;  // [capacity] key << 32 | index
  Buffer<uint64_t> scratch_;  // [capacity]
  Buffer<uint32_t> places_;   // [kDigits] where the next entry with a digit goes
};

}  // namespace proofinfer

#endif
