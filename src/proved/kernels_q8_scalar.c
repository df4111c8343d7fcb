#include "proved/kernels_q8_scalar.h"

#include <string.h>

#include "proved/float_contract.h"
#include "proved/pack_index.h"

#define PI_ROW_BLOCK 8

/* The largest magnitude of a group, or NaN if any element is NaN or infinite. */
static float group_max(const float *x, size_t n) {
  float max = 0.0f;
  float probe = 0.0f; /* stays 0 unless an element is not finite: then NaN */
  for (size_t i = 0; i < n; i++) {
    float magnitude = x[i] < 0.0f ? -x[i] : x[i];
    probe += x[i] * 0.0f;
    if (magnitude > max) max = magnitude;
  }
  return probe == 0.0f ? max : probe;
}

/* x / scale rounded half away from zero, held within -127 to 127. Scale is > 0, x finite. */
static int8_t quantize_one(float x, float scale) {
  float quotient = x / scale;
  if (quotient >= 127.0f) return 127;
  if (quotient <= -127.0f) return -127;
  int32_t whole = (int32_t)quotient;    /* towards zero */
  float rest = quotient - (float)whole; /* exact: fewer than 24 bits remain */
  if (rest >= 0.5f) whole++;
  if (rest <= -0.5f) whole--;
  return (int8_t)whole;
}

void pi_quantize_q8_scalar(const float *x, size_t group_count, size_t group_size, int8_t *q, float *scales, int32_t *sums) {
  size_t padded = pi_q8_padded(group_size);
  for (size_t g = 0; g < group_count; g++) {
    const float *from = x + g * group_size;
    int8_t *to = q + g * padded;
    float scale = group_max(from, group_size) / 127.0f;
    int32_t sum = 0;
    scales[g] = scale;
    for (size_t i = 0; i < padded; i++) {
      to[i] = 0;
      if (i < group_size && scale > 0.0f) to[i] = quantize_one(from[i], scale);
      sum += to[i];
    }
    sums[g] = sum;
  }
}

/* The exact dot of one row of a block with a quantized group, whose dwords of four are `q_step` bytes apart. */
static int32_t group_dot(const int8_t *block, size_t row, size_t padded, const int8_t *q, size_t q_step) {
  int32_t sum = 0;
  for (size_t c = 0; c < padded; c += 4) {
    const int8_t *w = block + pi_q8_weight(row, c);
    const int8_t *x = q + c / 4 * q_step;
    sum += (int32_t)w[0] * (int32_t)x[0] + (int32_t)w[1] * (int32_t)x[1] + (int32_t)w[2] * (int32_t)x[2] + (int32_t)w[3] * (int32_t)x[3];
  }
  return sum;
}

static float load_scale(const int8_t *block, size_t group_size, size_t row) {
  float scale;
  memcpy(&scale, block + pi_q8_scale(group_size, row), sizeof(scale));
  return scale;
}

/* The sum of row r of one panel over all groups in ascending order; q_step: 4, or 4 * 8 where eight activations stand side by side, scale_step likewise 1 or 8. */
static float row_sum_q8(const int8_t *panel, size_t group_count, size_t group_size, size_t r, const int8_t *q, size_t q_step,
                        const float *scales, size_t scale_step) {
  size_t padded = pi_q8_padded(group_size);
  float sum = 0.0f;
  for (size_t g = 0; g < group_count; g++) {
    const int8_t *block = panel + g * pi_q8_block_bytes(group_size);
    int32_t dot = group_dot(block, r, padded, q + g * (padded / 4) * q_step, q_step);
    sum += (float)dot * load_scale(block, group_size, r) * scales[g * scale_step];
  }
  return sum;
}

void pi_matvec_q8_scalar(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q,
                         const float *scales, const int32_t *sums, float *out) {
  (void)sums; /* for kernels that add 128 to the weights */
  for (size_t p = 0; p < panel_count; p++) {
    const int8_t *panel = panels + p * group_count * pi_q8_block_bytes(group_size);
    for (size_t r = 0; r < PI_PANEL_ROWS; r++) out[p * PI_PANEL_ROWS + r] = row_sum_q8(panel, group_count, group_size, r, q, 4, scales, 1);
  }
}

void pi_matmul_q8_scalar(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q_blocks,
                         const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out, size_t out_stride) {
  (void)sums_blocks;
  size_t q_block = group_count * pi_q8_padded(group_size) * PI_ROW_BLOCK;
  for (size_t i = 0; i < row_count; i++) {
    const int8_t *q = q_blocks + i / PI_ROW_BLOCK * q_block + i % PI_ROW_BLOCK * 4;
    const float *scales = scales_blocks + i / PI_ROW_BLOCK * group_count * PI_ROW_BLOCK + i % PI_ROW_BLOCK;
    for (size_t p = 0; p < panel_count; p++) {
      const int8_t *panel = panels + p * group_count * pi_q8_block_bytes(group_size);
      for (size_t r = 0; r < PI_PANEL_ROWS; r++)
        out[i * out_stride + p * PI_PANEL_ROWS + r] =
            row_sum_q8(panel, group_count, group_size, r, q, 4 * PI_ROW_BLOCK, scales, PI_ROW_BLOCK);
    }
  }
}

/* One row's group into its lane of a block. */
static void pack_group(const int8_t *weights, const float *scale, size_t group_size, size_t row, int8_t *block) {
  for (size_t c = 0; c < pi_q8_padded(group_size); c++) block[pi_q8_weight(row, c)] = c < group_size ? weights[c] : 0;
  memcpy(block + pi_q8_scale(group_size, row), scale, sizeof(*scale));
}

void pi_pack_q8_scalar(const int8_t *rows, const float *scales, size_t row_count, size_t group_count, size_t group_size, size_t lane,
                       int8_t *panel) {
  for (size_t g = 0; g < group_count; g++) {
    int8_t *block = panel + g * pi_q8_block_bytes(group_size);
    for (size_t r = 0; r < row_count; r++)
      pack_group(rows + (r * group_count + g) * group_size, scales + r * group_count + g, group_size, lane + r, block);
  }
}
