/* The scalar kernels: the definition of right, and the fallback. Contracts in words: kernels/kernels.h. */
#ifndef PROOFINFER_PROVED_KERNELS_SCALAR_H
#define PROOFINFER_PROVED_KERNELS_SCALAR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void pi_matvec_f32_scalar(const float *panels, size_t panel_count, size_t n, const float *x, float *out);
void pi_matmul_f32_scalar(const float *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count, float *out,
                          size_t out_stride);
void pi_rmsnorm_f32_scalar(const float *x, size_t row_count, size_t x_stride, const float *weight, size_t n, float *out, size_t out_stride);
void pi_rope_angles_f32_scalar(const float *frequencies, size_t count, float position, float *cosines, float *sines);
void pi_rope_f32_scalar(float *vectors, size_t head_count, size_t head_size, const float *cosines, const float *sines);
void pi_scores_f32_scalar(const float *q, const float *keys, size_t block_count, size_t head_size, float root, float *scores);
void pi_softmax_f32_scalar(float *x, size_t row_count, size_t stride, size_t n);
void pi_mix_f32_scalar(const float *weights, const float *values, size_t n, size_t head_size, float *out);
void pi_swiglu_f32_scalar(float *h1, const float *h3, size_t n);
void pi_add_f32_scalar(float *x, const float *y, size_t n);
void pi_divide_f32_scalar(float *x, size_t n, float divisor);
void pi_canonical_nan_f32_scalar(float *x, size_t n);
void pi_pack_f32_scalar(const float *rows, size_t row_count, size_t n, float *panel);

#ifdef __cplusplus
}
#endif

#endif
