#include "mutate.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return proofinfer_fuzz::mutate_with_checkpoint(data, size, max_size, seed, 0);
}
