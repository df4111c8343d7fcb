// Mutations that know the formats: most of what they make gets past the loader. Only with libFuzzer.
#ifndef PROOFINFER_FUZZ_MUTATE_H
#define PROOFINFER_FUZZ_MUTATE_H

#include "harness.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

namespace proofinfer_fuzz {

// Repairs a checkpoint in place so that its header is valid and its size is what the header asks for; now and then leaves one mistake.
// file: [size], with room for max_size bytes. The new size.
size_t repair_checkpoint(uint8_t *file, size_t size, size_t max_size, Random *random);
// The same of a tokenizer.bin; *vocab_size receives how many pieces it has. The size stays.
void repair_tokenizer(uint8_t *file, size_t size, uint16_t *vocab_size, Random *random);

// What a target's LLVMFuzzerCustomMutator does: libFuzzer's own mutation, then the repair of the checkpoint behind `prefix` bytes.
size_t mutate_with_checkpoint(uint8_t *data, size_t size, size_t max_size, unsigned seed, size_t prefix);

}  // namespace proofinfer_fuzz

#endif
