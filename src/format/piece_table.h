// Byte strings -> ids: which piece some bytes are. Immutable once built: any thread.
#ifndef PROOFINFER_FORMAT_PIECE_TABLE_H
#define PROOFINFER_FORMAT_PIECE_TABLE_H

#include "format/vocabulary.h"

namespace proofinfer {

// A number that depends on every byte of the pieces: a seed for hash tables, so that a file cannot be written to collide (every byte changed
// for it changes the seed).
uint64_t digest(const Pieces &pieces, size_t count);

// Open addressing over a power of two, at most two thirds full.
class PieceTable {
 public:
  // Room for `count` of `pieces`, which must outlive the table.
  Status reserve(Account *account, const Pieces *pieces, size_t count, uint64_t seed, Failure *failure);
  // At most as many as reserved. Where the same bytes are already there, the first id stays.
  void insert(int32_t id);
  // -1: not there.
  int32_t find(Bytes bytes) const {
    if (slots_.count() == 0) return -1;
    return slots_[slot_of(bytes, hash(bytes))].id;
  }

 private:
  struct Slot {
    int32_t id;  // -1: free
    uint32_t hash;
  };
  uint32_t hash(Bytes bytes) const;
  // Where the bytes are, or the free slot where they would be.
  size_t slot_of(Bytes bytes, uint32_t hash) const;

  const Pieces *pieces_ = nullptr;
  Buffer<Slot> slots_;  // [mask_ + 1]
  size_t mask_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace proofinfer

#endif
