// The element types of weights: names, sizes in a file and in packed panels. Immutable, any thread.
#ifndef PROOFINFER_KERNELS_ELEMENT_TYPE_H
#define PROOFINFER_KERNELS_ELEMENT_TYPE_H

#include <stddef.h>
#include <stdint.h>

namespace proofinfer {

enum class ElementType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8Groups,  // llama2.c version 2: groups of the file's own size with float32 scales (proved/pack_index.h)
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

constexpr size_t kElementTypeCount = static_cast<size_t>(ElementType::kQ6_K) + 1;

// As GGUF spells it; kQ8Groups: "Q8".
const char *element_name(ElementType type);

// What a file stores as a unit: so many columns of a row in so many bytes. kQ8Groups has no such unit: 0 and 0.
size_t element_block_columns(ElementType type);
size_t element_block_bytes(ElementType type);

// One of the types that matvec_blocks and matmul_blocks take, or that matvec_half and matmul_half take.
bool element_is_blocks(ElementType type);
bool element_is_half(ElementType type);

// Bytes of a panel of 16 rows, a multiple of 32: columns / element_block_columns blocks, each a little more than 16 times element_block_bytes
// at most. columns: a multiple of element_block_columns, at most 2^31. Not for kQ8Groups.
size_t element_panel_bytes(ElementType type, size_t columns);

// Whether the eight bytes at a place of a panel, a multiple of 8, are 16-bit numbers, which lie there in the machine's byte order. Not for kQ8Groups.
bool element_halves_at(ElementType type, size_t place);

// The row of a panel in float32, as PyPI gguf's reference dequantization has it (docs/arithmetic.md). lane: the row, below 16; out: [columns].
// Not for kQ8Groups.
void dequantize_row(ElementType type, const unsigned char *panel, size_t lane, size_t columns, float *out);

}  // namespace proofinfer

#endif
