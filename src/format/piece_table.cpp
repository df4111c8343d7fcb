#include "format/piece_table.h"

#include <string.h>

namespace proofinfer {

uint64_t digest(const Pieces &pieces, size_t count) {
  uint64_t h = count;
  for (size_t i = 0; i < count; i++) {
    Bytes piece = pieces.at(i);
    h = (h ^ piece.count) * 0x9E3779B97F4A7C15u;
    for (size_t k = 0; k < piece.count; k++) h = (h ^ piece.data[k]) * 0x100000001B3u;
    h ^= h >> 29;
  }
  return h;
}

Status PieceTable::reserve(Account *account, const Pieces *pieces, size_t count, uint64_t seed, Failure *failure) {
  size_t slots = 2;
  while (slots - slots / 3 <= count) slots *= 2;  // count pieces are in memory: twice as many fit a size_t
  if (Status status = slots_.allocate(account, slots, "the tokenizer's table of pieces", failure)) return status;
  for (size_t i = 0; i < slots; i++) slots_[i] = {-1, 0};
  pieces_ = pieces;
  mask_ = slots - 1;
  seed_ = seed;
  return kOk;
}

uint32_t PieceTable::hash(Bytes bytes) const {
  uint64_t h = seed_ ^ bytes.count;
  for (size_t i = 0; i < bytes.count; i++) h = (h ^ bytes.data[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 32;
  return static_cast<uint32_t>(h * 0xD6E8FEB86659FD93u >> 32);
}

size_t PieceTable::slot_of(Bytes bytes, uint32_t hash) const {
  for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
    const Slot &slot = slots_[i];
    if (slot.id < 0) return i;
    if (slot.hash != hash) continue;
    Bytes piece = pieces_->at(static_cast<size_t>(slot.id));
    if (piece.count == bytes.count && (bytes.count == 0 || memcmp(piece.data, bytes.data, bytes.count) == 0)) return i;
  }
}

void PieceTable::insert(int32_t id) {
  Bytes bytes = pieces_->at(static_cast<size_t>(id));
  uint32_t h = hash(bytes);
  Slot &slot = slots_[slot_of(bytes, h)];
  if (slot.id < 0) slot = {id, h};
}

}  // namespace proofinfer
