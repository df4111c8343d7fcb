#include "model/tokenizer_table.h"

namespace proofinfer {

Status IdTable::reserve(Account *account, size_t count, uint64_t seed, const char *what, Failure *failure) {
  size_t slots = 2;
  while (slots - slots / 3 <= count) {
    if (slots > SIZE_MAX / 4) return fail(failure, kMemory, "%s: %zu entries are more than this machine can address", what, count);
    slots *= 2;
  }
  if (Status status = slots_.allocate(account, slots, what, failure)) return status;
  for (size_t i = 0; i < slots; i++) slots_[i] = {0, -1, 0};
  mask_ = slots - 1;
  seed_ = seed;
  return kOk;
}

void IdTable::insert(uint64_t key, int32_t id, uint32_t order) {
  size_t i = start(key);
  while (slots_[i].id >= 0) {
    if (slots_[i].key == key) return;
    i = (i + 1) & mask_;
  }
  slots_[i] = {key, id, order};
}

}  // namespace proofinfer
