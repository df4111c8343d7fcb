#include "mutate.h"

using namespace proofinfer_fuzz;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  size = LLVMFuzzerMutate(data, size, max_size);
  if (random.one_in(16) || size < 2) return size;
  if (size >= 6 && data[2] == 'G' && data[3] == 'G' && data[4] == 'U' && data[5] == 'F') {
    data[0] = data[1] = 0;  // as many pieces as the file has
    return size;
  }
  uint16_t vocab_size = 0;
  repair_tokenizer(data + 2, size - 2, &vocab_size, &random);
  data[0] = uint8_t(vocab_size);
  data[1] = uint8_t(vocab_size >> 8);
  return size;
}
