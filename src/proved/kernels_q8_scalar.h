/* The scalar Q8_0 kernels: the definition of right, and the fallback. Contracts in words: kernels/kernels.h; layout: proved/pack_index.h. */
#ifndef PROOFINFER_PROVED_KERNELS_Q8_SCALAR_H
#define PROOFINFER_PROVED_KERNELS_Q8_SCALAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void pi_quantize_q8_scalar(const float *x, size_t group_count, size_t group_size, int8_t *q, float *scales, int32_t *sums);
void pi_matvec_q8_scalar(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q,
                         const float *scales, const int32_t *sums, float *out);
void pi_matmul_q8_scalar(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q_blocks,
                         const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out, size_t out_stride);
void pi_pack_q8_scalar(const int8_t *rows, const float *scales, size_t row_count, size_t group_count, size_t group_size, size_t lane,
                       int8_t *panel);

#ifdef __cplusplus
}
#endif

#endif
