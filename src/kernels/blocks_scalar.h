// The scalar kernels of the 16-bit and block types: the definition of right, and the fallback. Contracts: kernels.h.
#ifndef PROOFINFER_KERNELS_BLOCKS_SCALAR_H
#define PROOFINFER_KERNELS_BLOCKS_SCALAR_H

#include "kernels/element_type.h"

namespace proofinfer {

void matvec_half_scalar(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x, float *out);
void matmul_half_scalar(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count,
                        float *out, size_t out_stride);
void pack_half_scalar(const uint16_t *rows, size_t row_count, size_t n, uint16_t *panel);
void quantize_blocks_scalar(const float *x, size_t group_count, int8_t *digits, float *scales, int32_t *sums);
void matvec_blocks_scalar(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count, const int8_t *digits,
                          const float *scales, const int32_t *sums, float *out);
void matmul_blocks_scalar(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count,
                          const int8_t *digits_blocks, const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out,
                          size_t out_stride);
// The one of every table.
void pack_blocks(ElementType type, const unsigned char *rows, size_t row_count, size_t group_count, size_t lane, unsigned char *panel);

}  // namespace proofinfer

#endif
