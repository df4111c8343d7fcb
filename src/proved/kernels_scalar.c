#include "proved/kernels_scalar.h"

#include <stdint.h>

#include "proved/elementary.h"
#include "proved/float_contract.h"
#include "proved/kv_index.h"
#include "proved/pack_index.h"

#define PI_ROW_BLOCK 8

/* The sum of row r of one panel [n][16] with x, x_step elements apart. */
static float row_sum(const float *panel, size_t n, size_t r, const float *x, size_t x_step) {
  float sum = 0.0f;
  for (size_t j = 0; j < n; j++) sum += panel[pi_packed_index(n, r, j)] * x[j * x_step];
  return sum;
}

void pi_matvec_f32_scalar(const float *panels, size_t panel_count, size_t n, const float *x, float *out) {
  for (size_t row = 0; row < panel_count * PI_PANEL_ROWS; row++) {
    const float *panel = panels + pi_packed_index(n, row - row % PI_PANEL_ROWS, 0);
    out[row] = row_sum(panel, n, row % PI_PANEL_ROWS, x, 1);
  }
}

void pi_matmul_f32_scalar(const float *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count, float *out,
                          size_t out_stride) {
  for (size_t i = 0; i < row_count; i++) {
    const float *x = x_blocks + i / PI_ROW_BLOCK * (n * PI_ROW_BLOCK) + i % PI_ROW_BLOCK;
    for (size_t row = 0; row < panel_count * PI_PANEL_ROWS; row++) {
      const float *panel = panels + pi_packed_index(n, row - row % PI_PANEL_ROWS, 0);
      out[i * out_stride + row] = row_sum(panel, n, row % PI_PANEL_ROWS, x, PI_ROW_BLOCK);
    }
  }
}

static float rms_factor(const float *x, size_t n) {
  float ss = 0.0f;
  for (size_t j = 0; j < n; j++) ss += x[j] * x[j];
  ss /= (float)n;
  ss += 1e-5f;
  return 1.0f / pi_sqrtf(ss);
}

void pi_rmsnorm_f32_scalar(const float *x, size_t row_count, size_t x_stride, const float *weight, size_t n, float *out,
                           size_t out_stride) {
  for (size_t i = 0; i < row_count; i++) {
    const float *from = x + i * x_stride;
    float *to = out + i * out_stride;
    float factor = rms_factor(from, n);
    for (size_t j = 0; j < n; j++) to[j] = weight[j] * (factor * from[j]);
  }
}

void pi_rope_angles_f32_scalar(const float *frequencies, size_t count, float position, float *cosines, float *sines) {
  for (size_t i = 0; i < count; i++) {
    float angle = position * frequencies[i];
    cosines[i] = pi_cosf(angle);
    sines[i] = pi_sinf(angle);
  }
}

void pi_rope_f32_scalar(float *vectors, size_t head_count, size_t head_size, const float *cosines, const float *sines) {
  for (size_t h = 0; h < head_count; h++) {
    float *v = vectors + h * head_size;
    for (size_t i = 0; i < head_size / 2; i++) {
      float v0 = v[2 * i];
      float v1 = v[2 * i + 1];
      v[2 * i] = v0 * cosines[i] - v1 * sines[i];
      v[2 * i + 1] = v0 * sines[i] + v1 * cosines[i];
    }
  }
}

void pi_scores_f32_scalar(const float *q, const float *keys, size_t block_count, size_t head_size, float root, float *scores) {
  for (size_t b = 0; b < block_count; b++) {
    const float *block = keys + b * head_size * PI_KEY_BLOCK;
    for (size_t t = 0; t < PI_KEY_BLOCK; t++) {
      float sum = 0.0f;
      for (size_t i = 0; i < head_size; i++) sum += q[i] * block[i * PI_KEY_BLOCK + t];
      scores[b * PI_KEY_BLOCK + t] = sum / root;
    }
  }
}

static void softmax_row(float *x, size_t n) {
  float max = x[0];
  for (size_t i = 1; i < n; i++)
    if (x[i] > max) max = x[i];
  float sum = 0.0f;
  for (size_t i = 0; i < n; i++) {
    x[i] = pi_expf(x[i] - max);
    sum += x[i];
  }
  for (size_t i = 0; i < n; i++) x[i] /= sum;
}

void pi_softmax_f32_scalar(float *x, size_t row_count, size_t stride, size_t n) {
  for (size_t i = 0; i < row_count; i++) softmax_row(x + i * stride, n);
}

void pi_mix_f32_scalar(const float *weights, const float *values, size_t n, size_t head_size, float *out) {
  for (size_t t = 0; t < n; t++)
    for (size_t i = 0; i < head_size; i++) out[i] += weights[t] * values[t * head_size + i];
}

void pi_swiglu_f32_scalar(float *h1, const float *h3, size_t n) {
  for (size_t i = 0; i < n; i++) {
    float v = h1[i];
    v *= 1.0f / (1.0f + pi_expf(-v));
    v *= h3[i];
    h1[i] = v;
  }
}

void pi_add_f32_scalar(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] += y[i];
}

void pi_divide_f32_scalar(float *x, size_t n, float divisor) {
  for (size_t i = 0; i < n; i++) x[i] /= divisor;
}

void pi_canonical_nan_f32_scalar(float *x, size_t n) {
  union {
    uint32_t bits;
    float value;
  } nan = {0x7fc00000u};
  for (size_t i = 0; i < n; i++)
    if (x[i] != x[i]) x[i] = nan.value;
}

void pi_pack_f32_scalar(const float *rows, size_t row_count, size_t n, float *panel) {
  for (size_t j = 0; j < n; j++)
    for (size_t r = 0; r < row_count; r++) panel[j * PI_PANEL_ROWS + r] = rows[r * n + j];
}
