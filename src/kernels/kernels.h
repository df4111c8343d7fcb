// The table of kernels and the contract of each; every table gives the same bits. Knows no model. Immutable, any thread.
//
// Common to all: no pointer may be NULL unless its count is 0, outputs alias inputs only where stated, pointers are aligned to 4 bytes
// unless stated, and the floating-point environment is the contract's (base/fp_environment.h). "Row sum" means: acc = 0; for j ascending
// acc = acc + w[j] * x[j], multiply and add rounded separately.
#ifndef PROOFINFER_KERNELS_KERNELS_H
#define PROOFINFER_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/element_type.h"

namespace proofinfer {

// Rows of activations that a block kernel takes side by side.
constexpr size_t kRowBlock = 8;

struct Kernels {
  const char *name;

  // out[16 p + r] = row sum of row r of panel p with x.
  // panels: [panel_count][n][16], 64-byte aligned; x: [n]; out: [panel_count * 16].
  void (*matvec_f32)(const float *panels, size_t panel_count, size_t n, const float *x, float *out);

  // The same for row_count activations: out[i * out_stride + 16 p + r] = row sum with activation i.
  // x_blocks: [ceil(row_count / 8)][n][8], activation i in block i / 8, lane i % 8, missing lanes any value;
  // out: [row_count][out_stride], out_stride >= panel_count * 16.
  void (*matmul_f32)(const float *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count, float *out,
                     size_t out_stride);

  // For each of row_count rows: ss = sum of x[j] * x[j] ascending; ss = 1 / sqrt(ss / n + epsilon); out[j] = weight[j] * (ss * x[j]).
  // x: [row_count][x_stride]; weight: [n]; out: [row_count][out_stride]; out may be x when the strides are equal.
  void (*rmsnorm_f32)(const float *x, size_t row_count, size_t x_stride, const float *weight, size_t n, float epsilon, float *out,
                      size_t out_stride);

  // cosines[i] = cosf(position * frequencies[i]), sines[i] = sinf(the same); all [count].
  void (*rope_angles_f32)(const float *frequencies, size_t count, float position, float *cosines, float *sines);

  // Rotates each pair (2 i, 2 i + 1) of each head in place: (v0 * c - v1 * s, v0 * s + v1 * c).
  // vectors: [head_count][head_size], head_size even; cosines, sines: [head_size / 2].
  void (*rope_f32)(float *vectors, size_t head_count, size_t head_size, const float *cosines, const float *sines);

  // scores[16 b + t] = (sum over i ascending of q[i] * keys[b][i][t]) / root.
  // q: [head_size]; keys: [block_count][head_size][16], 64-byte aligned; scores: [block_count * 16].
  void (*scores_f32)(const float *q, const float *keys, size_t block_count, size_t head_size, float root, float *scores);

  // For each of row_count rows in place: m = max; x[i] = expf(x[i] - m); sum ascending; x[i] /= sum. A row with a NaN or an infinite
  // maximum becomes all NaN. x: [row_count][stride]; n >= 1 elements of each row.
  void (*softmax_f32)(float *x, size_t row_count, size_t stride, size_t n);

  // for t ascending: out[i] = out[i] + weights[t] * values[t][i]. weights: [n]; values: [n][head_size]; out: [head_size].
  void (*mix_f32)(const float *weights, const float *values, size_t n, size_t head_size, float *out);

  // h1[i] = (h1[i] * (1 / (1 + expf(-h1[i])))) * h3[i]. h1, h3: [n].
  void (*swiglu_f32)(float *h1, const float *h3, size_t n);

  // x[i] = x[i] + y[i]. x, y: [n].
  void (*add_f32)(float *x, const float *y, size_t n);

  // x[i] = x[i] / divisor. x: [n].
  void (*divide_f32)(float *x, size_t n, float divisor);

  // Every NaN becomes the quiet NaN 0x7fc00000. x: [n].
  void (*canonical_nan_f32)(float *x, size_t n);

  // Rows as a file has them into lanes of a panel: panel[j * 16 + r] = rows[r * n + j], r < row_count, row_count in [1, 16].
  // rows: [row_count][n]; panel: the place of (first row, column 0), not aligned unless that row is a panel's first; only the lanes named are written.
  void (*pack_f32)(const float *rows, size_t row_count, size_t n, float *panel);

  // Q8_0. A panel is [group_count] blocks of pi_q8_block_bytes(group_size) bytes (proved/pack_index.h), 64-byte aligned; gs4 below is the padded
  // group size pi_q8_padded(group_size). group_size in [1, 65536].

  // Quantizes activations: per group m = max |x|; scale = m / 127; q = x / scale rounded half away from zero and held within -127 to 127, zeros
  // behind the group's end; scale 0 gives zeros. A group with a NaN or an infinity gets the scale NaN and zeros. sums[g] = sum of the group's q.
  // x: [group_count * group_size]; q: [group_count][gs4]; scales, sums: [group_count].
  void (*quantize_q8)(const float *x, size_t group_count, size_t group_size, int8_t *q, float *scales, int32_t *sums);

  // out[16 p + r] = acc over groups ascending: acc = acc + ((float)dot * weight scale) * scales[g], dot the exact int32 dot of the group.
  // q: [group_count][gs4]; scales, sums: [group_count]; out: [panel_count * 16].
  void (*matvec_q8)(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q, const float *scales,
                    const int32_t *sums, float *out);

  // The same for row_count activations, activation i in block i / 8, lane i % 8, missing lanes any value.
  // q_blocks: [blocks][group_count][gs4 / 4][8][4]; scales_blocks, sums_blocks: [blocks][group_count][8]; out: [row_count][out_stride].
  void (*matmul_q8)(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q_blocks,
                    const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out, size_t out_stride);

  // Rows as a file has them into lanes lane .. lane + row_count - 1 of a panel, row_count in [1, 16 - lane]; zeros behind each group's end.
  // rows: [row_count][group_count * group_size]; scales: [row_count][group_count]; panel: one panel, 64-byte aligned; other lanes stay.
  void (*pack_q8)(const int8_t *rows, const float *scales, size_t row_count, size_t group_count, size_t group_size, size_t lane,
                  int8_t *panel);

  // 16-bit weights, type kF16 or kBF16, widened exactly (a NaN stays one): otherwise as matvec_f32, matmul_f32 and pack_f32. A panel is [n][16],
  // panels are aligned to 32 bytes.
  void (*matvec_half)(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x, float *out);
  void (*matmul_half)(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count,
                      float *out, size_t out_stride);
  void (*pack_half)(const uint16_t *rows, size_t row_count, size_t n, uint16_t *panel);

  // Block types: those of element_is_blocks. A panel is element_panel_bytes(type, 32 * group_count) bytes (layout: kernels/block_layout.h), aligned
  // to 32 bytes; group_count is a multiple of the groups of a block, 1 or 8.

  // As quantize_q8 with groups of 32, but finer: scale = m / 32512, and q is held within -32512 to 32512. It is kept as two digits, q = 255 * high + low,
  // each within -127 to 127: of each group the high ones, then the low ones. sums: of the q of each half of the group, columns 0 to 15 and 16 to 31.
  // x: [group_count][32]; digits: [group_count][2][32]; scales: [group_count]; sums: [group_count][2].
  void (*quantize_blocks)(const float *x, size_t group_count, int8_t *digits, float *scales, int32_t *sums);

  // out[16 p + r] = acc over groups ascending: acc = acc + (what docs/arithmetic.md says of the type) * scales[g].
  // digits, scales, sums as quantize_blocks gives them; out: [panel_count * 16].
  void (*matvec_blocks)(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count, const int8_t *digits,
                        const float *scales, const int32_t *sums, float *out);

  // The same for row_count activations, activation i in block i / 8, lane i % 8, missing lanes any value.
  // digits_blocks: [blocks][group_count][2][8][8][4]; scales_blocks: [blocks][group_count][8]; sums_blocks: [blocks][group_count][2][8];
  // out: [row_count][out_stride].
  void (*matmul_blocks)(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count, const int8_t *digits_blocks,
                        const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out, size_t out_stride);

  // Rows as a file has them into lanes lane .. lane + row_count - 1 of a panel, row_count in [1, 16 - lane].
  // rows: [row_count][blocks of a row][element_block_bytes(type)], not aligned; other lanes stay.
  void (*pack_blocks)(ElementType type, const unsigned char *rows, size_t row_count, size_t group_count, size_t lane, unsigned char *panel);
};

// The tables compiled in, slowest first: index in [0, kernels_count()). kernels_available tells whether this CPU can run it.
size_t kernels_count();
const Kernels *kernels_at(size_t index);
bool kernels_available(size_t index);
// The fastest available one.
const Kernels *kernels_best();
// The table of that name (nullptr: not compiled in), available or not.
const Kernels *kernels_named(const char *name, size_t name_bytes, bool *available);

}  // namespace proofinfer

#endif
