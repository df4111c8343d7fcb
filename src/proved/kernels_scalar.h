/* The scalar kernels: the definition of right, and the fallback. Contracts in words: kernels/kernels.h; here they are exact, down to the
 * order of every rounding, and proved (docs/proof.md). */
#ifndef PROOFINFER_PROVED_KERNELS_SCALAR_H
#define PROOFINFER_PROVED_KERNELS_SCALAR_H

#include <stddef.h>
#include <stdint.h>

#include "proved/elementary.h"
#include "proved/kv_index.h"
#include "proved/pack_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/*@ // acc = 0; for j ascending below `count`: acc = acc + w[j] * x[j]. The row of a packed matrix of n columns; x in steps of `step`.
    logic float RowSum{L}(float *panels, integer n, integer row, float *x, integer step, integer count) =
      count <= 0 ? 0.0f
                 : \add_float(RowSum(panels, n, row, x, step, count - 1),
                              \mul_float(panels[PackedPlace(n, row, count - 1)], x[(count - 1) * step]));
    // The same with a key: lane t of a block of keys.
    logic float KeySum{L}(float *q, float *block, integer t, integer count) =
      count <= 0 ? 0.0f : \add_float(KeySum(q, block, t, count - 1), \mul_float(q[count - 1], block[(count - 1) * PI_KEY_BLOCK + t]));
    // Sum of squares, ascending.
    logic float SquareSum{L}(float *x, integer count) =
      count <= 0 ? 0.0f : \add_float(SquareSum(x, count - 1), \mul_float(x[count - 1], x[count - 1]));
    logic float RmsFactor{L}(float *x, integer n, float epsilon) =
      \div_float(1.0f, Sqrt(\add_float(\div_float(SquareSum(x, n), (float)n), epsilon)));
    logic float Normed(float weight, float factor, float x) = \mul_float(weight, \mul_float(factor, x));
    logic float Mixed(float sum, float weight, float value) = \add_float(sum, \mul_float(weight, value));
    logic float ExpOf(float x, float max) = Exp(\sub_float(x, max));
    // The sum of exponentials, ascending.
    logic float ExpSum{L}(float *x, float max, integer count) =
      count <= 0 ? 0.0f : \add_float(ExpSum(x, max, count - 1), ExpOf(x[count - 1], max));
    logic float Gated(float v, float other) =
      \mul_float(\mul_float(v, \div_float(1.0f, \add_float(1.0f, Exp(\neg_float(v))))), other); */

/*@ requires 1 <= n && n * 8 <= SIZE_MAX && panel_count * n * PI_PANEL_ROWS <= SIZE_MAX && panel_count * PI_PANEL_ROWS <= SIZE_MAX;
    requires \valid_read(panels + (0 .. panel_count * n * PI_PANEL_ROWS - 1)) && \valid_read(x + (0 .. n - 1));
    requires \valid(out + (0 .. panel_count * PI_PANEL_ROWS - 1));
    requires \separated(out + (0 .. panel_count * PI_PANEL_ROWS - 1), panels + (0 .. panel_count * n * PI_PANEL_ROWS - 1));
    requires \separated(out + (0 .. panel_count * PI_PANEL_ROWS - 1), x + (0 .. n - 1));
    terminates \true;
    assigns out[0 .. panel_count * PI_PANEL_ROWS - 1];
    ensures matvec_sums: \forall integer row; 0 <= row < panel_count * PI_PANEL_ROWS ==>
      Same(out[row], RowSum{Pre}(panels, n, row, x, 1, n)); */
void pi_matvec_f32_scalar(const float *panels, size_t panel_count, size_t n, const float *x, float *out);

/*@ requires 1 <= n && n * 8 <= SIZE_MAX && panel_count * n * PI_PANEL_ROWS <= SIZE_MAX && panel_count * PI_PANEL_ROWS <= out_stride;
    requires row_count <= SIZE_MAX - 7 && (row_count + 7) / 8 * n * 8 <= SIZE_MAX && row_count * out_stride <= SIZE_MAX;
    requires \valid_read(panels + (0 .. panel_count * n * PI_PANEL_ROWS - 1)) && \valid_read(x_blocks + (0 .. (row_count + 7) / 8 * n * 8 - 1));
    requires 0 < row_count ==> \valid(out + (0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1));
    requires 0 < row_count ==> \separated(out + (0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1),
                                          panels + (0 .. panel_count * n * PI_PANEL_ROWS - 1));
    requires 0 < row_count ==> \separated(out + (0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1),
                                          x_blocks + (0 .. (row_count + 7) / 8 * n * 8 - 1));
    terminates \true;
    assigns out[0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1]; */
void pi_matmul_f32_scalar(const float *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count, float *out,
                          size_t out_stride);

/*@ requires 1 <= n <= x_stride && n <= out_stride && row_count * x_stride <= SIZE_MAX && row_count * out_stride <= SIZE_MAX;
    requires \valid_read(x + (0 .. row_count * x_stride - 1)) && \valid_read(weight + (0 .. n - 1));
    requires \valid(out + (0 .. row_count * out_stride - 1)) && \separated(out + (0 .. row_count * out_stride - 1), weight + (0 .. n - 1));
    terminates \true;
    assigns out[0 .. row_count * out_stride - 1]; */
void pi_rmsnorm_f32_scalar(const float *x, size_t row_count, size_t x_stride, const float *weight, size_t n, float epsilon, float *out,
                           size_t out_stride);

/*@ requires \valid_read(frequencies + (0 .. count - 1)) && \valid(cosines + (0 .. count - 1)) && \valid(sines + (0 .. count - 1));
    requires \separated(cosines + (0 .. count - 1), sines + (0 .. count - 1));
    requires \separated(cosines + (0 .. count - 1), frequencies + (0 .. count - 1));
    requires \separated(sines + (0 .. count - 1), frequencies + (0 .. count - 1));
    terminates \true;
    assigns cosines[0 .. count - 1], sines[0 .. count - 1];
    ensures angles_cosines: \forall integer i; 0 <= i < count ==> Same(cosines[i], Cos(\mul_float(position, \old(frequencies[i]))));
    ensures angles_sines: \forall integer i; 0 <= i < count ==> Same(sines[i], Sin(\mul_float(position, \old(frequencies[i])))); */
void pi_rope_angles_f32_scalar(const float *frequencies, size_t count, float position, float *cosines, float *sines);

/*@ requires head_size % 2 == 0 && head_count * head_size <= SIZE_MAX;
    requires \valid(vectors + (0 .. head_count * head_size - 1));
    requires \valid_read(cosines + (0 .. head_size / 2 - 1)) && \valid_read(sines + (0 .. head_size / 2 - 1));
    requires \separated(vectors + (0 .. head_count * head_size - 1), cosines + (0 .. head_size / 2 - 1));
    requires \separated(vectors + (0 .. head_count * head_size - 1), sines + (0 .. head_size / 2 - 1));
    terminates \true;
    assigns vectors[0 .. head_count * head_size - 1]; */
void pi_rope_f32_scalar(float *vectors, size_t head_count, size_t head_size, const float *cosines, const float *sines);

/*@ requires 1 <= head_size && block_count * head_size * PI_KEY_BLOCK <= SIZE_MAX && block_count * PI_KEY_BLOCK <= SIZE_MAX;
    requires \valid_read(q + (0 .. head_size - 1)) && \valid_read(keys + (0 .. block_count * head_size * PI_KEY_BLOCK - 1));
    requires \valid(scores + (0 .. block_count * PI_KEY_BLOCK - 1));
    requires \separated(scores + (0 .. block_count * PI_KEY_BLOCK - 1), q + (0 .. head_size - 1));
    requires \separated(scores + (0 .. block_count * PI_KEY_BLOCK - 1), keys + (0 .. block_count * head_size * PI_KEY_BLOCK - 1));
    terminates \true;
    assigns scores[0 .. block_count * PI_KEY_BLOCK - 1]; */
void pi_scores_f32_scalar(const float *q, const float *keys, size_t block_count, size_t head_size, float root, float *scores);

/*@ requires 1 <= n <= stride && row_count * stride <= SIZE_MAX;
    requires \valid(x + (0 .. row_count * stride - 1));
    terminates \true;
    assigns x[0 .. row_count * stride - 1]; */
void pi_softmax_f32_scalar(float *x, size_t row_count, size_t stride, size_t n);

/*@ requires n * head_size <= SIZE_MAX;
    requires \valid_read(weights + (0 .. n - 1)) && \valid_read(values + (0 .. n * head_size - 1)) && \valid(out + (0 .. head_size - 1));
    requires \separated(out + (0 .. head_size - 1), weights + (0 .. n - 1));
    requires \separated(out + (0 .. head_size - 1), values + (0 .. n * head_size - 1));
    terminates \true;
    assigns out[0 .. head_size - 1]; */
void pi_mix_f32_scalar(const float *weights, const float *values, size_t n, size_t head_size, float *out);

/*@ requires \valid(h1 + (0 .. n - 1)) && \valid_read(h3 + (0 .. n - 1)) && \separated(h1 + (0 .. n - 1), h3 + (0 .. n - 1));
    terminates \true;
    assigns h1[0 .. n - 1];
    ensures swiglu_values: \forall integer i; 0 <= i < n ==> Same(h1[i], Gated(\old(h1[i]), \old(h3[i]))); */
void pi_swiglu_f32_scalar(float *h1, const float *h3, size_t n);

/*@ requires \valid(x + (0 .. n - 1)) && \valid_read(y + (0 .. n - 1)) && \separated(x + (0 .. n - 1), y + (0 .. n - 1));
    terminates \true;
    assigns x[0 .. n - 1];
    ensures add_values: \forall integer i; 0 <= i < n ==> Same(x[i], \add_float(\old(x[i]), \old(y[i]))); */
void pi_add_f32_scalar(float *x, const float *y, size_t n);

/*@ requires \valid(x + (0 .. n - 1));
    terminates \true;
    assigns x[0 .. n - 1];
    ensures divide_values: \forall integer i; 0 <= i < n ==> Same(x[i], \div_float(\old(x[i]), divisor)); */
void pi_divide_f32_scalar(float *x, size_t n, float divisor);

/*@ requires \valid(x + (0 .. n - 1));
    terminates \true;
    assigns x[0 .. n - 1];
    ensures nan_replaced: \forall integer i; 0 <= i < n && \is_NaN(\old(x[i])) ==> Same(x[i], FloatOfBits(0x7fc00000));
    ensures others_kept: \forall integer i; 0 <= i < n && !\is_NaN(\old(x[i])) ==> Same(x[i], \old(x[i])); */
void pi_canonical_nan_f32_scalar(float *x, size_t n);

/*@ requires 1 <= row_count <= PI_PANEL_ROWS && 1 <= n && n * PI_PANEL_ROWS <= SIZE_MAX;
    requires \valid_read(rows + (0 .. row_count * n - 1)) && \valid(panel + (0 .. (n - 1) * PI_PANEL_ROWS + row_count - 1));
    requires \separated(panel + (0 .. (n - 1) * PI_PANEL_ROWS + row_count - 1), rows + (0 .. row_count * n - 1));
    terminates \true;
    assigns panel[0 .. (n - 1) * PI_PANEL_ROWS + row_count - 1]; */
void pi_pack_f32_scalar(const float *rows, size_t row_count, size_t n, float *panel);

#ifdef __cplusplus
}
#endif

#endif
