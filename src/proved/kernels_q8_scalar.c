#include "proved/kernels_q8_scalar.h"

#include "proved/float_contract.h"

#define PI_ROW_BLOCK 8

/* The largest magnitude of a group, or NaN if any element is NaN or infinite. */
/*@ requires \valid_read(x + (0 .. n - 1));
    terminates \true;
    assigns \nothing; */
static float group_max(const float *x, size_t n) {
  float max = 0.0f;
  float probe = 0.0f; /* stays 0 unless an element is not finite: then NaN */
  /*@ loop invariant group_max_range: 0 <= i <= n;
      loop assigns i, max, probe;
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) {
    float magnitude = x[i] < 0.0f ? -x[i] : x[i];
    probe += x[i] * 0.0f;
    if (magnitude > max) max = magnitude;
  }
  return probe == 0.0f ? max : probe;
}

/* x / scale rounded half away from zero, held within -127 to 127. Scale is > 0, x finite: the quotient is no NaN (which would give -127). */
/*@ terminates \true;
    assigns \nothing;
    ensures quantized_range: -127 <= \result <= 127; */
static int8_t quantize_one(float x, float scale) {
  float quotient = x / scale;
  if (quotient >= 127.0f) return 127;
  if (!(quotient > -127.0f)) return -127;
  //@ assert quotient_finite: \is_finite(quotient);
  //@ assert quotient_bounds: -127.0 < quotient < 127.0;
  int32_t whole = (int32_t)quotient; /* towards zero */
  //@ assert whole_range: -126 <= whole <= 126;
  float rest = quotient - (float)whole; /* exact: fewer than 24 bits remain */
  if (rest >= 0.5f) whole++;
  if (rest <= -0.5f) whole--;
  return (int8_t)whole;
}

/*@ requires n <= PI_MAX_GROUP_SIZE && \valid_read(q + (0 .. n - 1));
    terminates \true;
    assigns \nothing;
    ensures byte_sum: \result == ByteSum{Pre}(q, n); */
static int32_t byte_sum(const int8_t *q, size_t n) {
  int32_t sum = 0;
  /*@ loop invariant byte_sum_range: 0 <= i <= n;
      loop invariant byte_sum_bound: -128 * i <= sum <= 128 * i;
      loop invariant byte_sum_so_far: sum == ByteSum{Pre}(q, i);
      loop assigns i, sum;
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) sum += q[i];
  return sum;
}

/* One group, filled up with zeros. */
/*@ requires 1 <= group_size <= padded <= PI_MAX_GROUP_SIZE;
    requires \valid_read(from + (0 .. group_size - 1)) && \valid(to + (0 .. padded - 1));
    terminates \true;
    assigns to[0 .. padded - 1];
    ensures quantized_values: \forall integer i; 0 <= i < padded ==> -127 <= to[i] <= 127;
    ensures quantized_padding: \forall integer i; group_size <= i < padded ==> to[i] == 0; */
static void quantize_group(const float *from, size_t group_size, size_t padded, float scale, int8_t *to) {
  /*@ loop invariant quantized_count: 0 <= i <= padded;
      loop invariant quantized_values: \forall integer k; 0 <= k < i ==> -127 <= to[k] <= 127;
      loop invariant quantized_padding: \forall integer k; group_size <= k < i ==> to[k] == 0;
      loop assigns i, to[0 .. padded - 1];
      loop variant padded - i; */
  for (size_t i = 0; i < padded; i++) {
    to[i] = 0;
    if (i < group_size && scale > 0.0f) to[i] = quantize_one(from[i], scale);
  }
}

void pi_quantize_q8_scalar(const float *x, size_t group_count, size_t group_size, int8_t *q, float *scales, int32_t *sums) {
  size_t padded = pi_q8_padded(group_size);
  /*@ loop invariant quantize_groups: 0 <= g <= group_count;
      loop assigns g, q[0 .. group_count * padded - 1], scales[0 .. group_count - 1], sums[0 .. group_count - 1];
      loop variant group_count - g; */
  for (size_t g = 0; g < group_count; g++) {
    //@ ghost pi_product_le(g + 1, group_count, group_size);
    //@ ghost pi_product_le(g + 1, group_count, padded);
    //@ ghost pi_product_le(padded, group_size + 3, group_count);
    const float *from = x + g * group_size;
    int8_t *to = q + g * padded;
    float scale = group_max(from, group_size) / 127.0f;
    scales[g] = scale;
    quantize_group(from, group_size, padded, scale, to);
    sums[g] = byte_sum(to, padded);
  }
}

/*@ ghost
  /@ requires -128 <= a <= 127 && -128 <= b <= 127;
     terminates \true;
     assigns \nothing;
     ensures byte_product: -16384 <= a * b <= 16384; @/
  static void byte_product(int a, int b) {} */

/*@ requires \valid_read(w + (0 .. 3)) && \valid_read(x + (0 .. 3));
    terminates \true;
    assigns \nothing;
    ensures dot4: \result == Dot4{Pre}(w, x);
    ensures dot4_bound: -65536 <= \result <= 65536; */
static int32_t dot4(const int8_t *w, const int8_t *x) {
  //@ ghost byte_product(w[0], x[0]);
  //@ ghost byte_product(w[1], x[1]);
  //@ ghost byte_product(w[2], x[2]);
  //@ ghost byte_product(w[3], x[3]);
  return (int32_t)w[0] * (int32_t)x[0] + (int32_t)w[1] * (int32_t)x[1] + (int32_t)w[2] * (int32_t)x[2] + (int32_t)w[3] * (int32_t)x[3];
}

/* The exact dot of one row of a block with a quantized group, whose dwords of four are `q_step` bytes apart. */
/*@ requires row < PI_PANEL_ROWS && 4 <= padded <= PI_MAX_GROUP_SIZE && padded % 4 == 0 && 4 <= q_step <= 32;
    requires \valid_read(block + (0 .. padded * PI_PANEL_ROWS - 1)) && \valid_read(q + (0 .. (padded / 4 - 1) * q_step + 3));
    terminates \true;
    assigns \nothing;
    ensures group_dot: \result == GroupDot{Pre}(block, row, q, q_step, padded / 4); */
static int32_t group_dot(const int8_t *block, size_t row, size_t padded, const int8_t *q, size_t q_step) {
  size_t count = padded / 4;
  int32_t sum = 0;
  /*@ loop invariant group_dot_range: 0 <= d <= count;
      loop invariant group_dot_bound: -65536 * d <= sum <= 65536 * d;
      loop invariant group_dot_so_far: sum == GroupDot{Pre}(block, row, q, q_step, d);
      loop assigns d, sum;
      loop variant count - d; */
  for (size_t d = 0; d < count; d++) {
    //@ ghost pi_product_le(d, count - 1, q_step);
    //@ ghost pi_product_le(q_step, 32, count - 1);
    //@ assert dword_fits: d * q_step <= (count - 1) * 32 <= 524288;
    size_t place = pi_q8_weight(row, 4 * d);
    //@ assert dword_in_block: place + 3 < padded * PI_PANEL_ROWS;
    sum += dot4(block + place, q + d * q_step);
  }
  return sum;
}

/* The sum of row r of one panel over all groups in ascending order; q_step: 4, or 4 * 8 where eight activations stand side by side, scale_step
 * likewise 1 or 8. */
/*@ requires 1 <= group_size <= PI_MAX_GROUP_SIZE && r < PI_PANEL_ROWS && 4 <= q_step <= 32 && 1 <= scale_step <= 8 && 1 <= group_count;
    requires group_count * Q8BlockBytes(group_size) <= SIZE_MAX && group_count * (Q8Padded(group_size) / 4) * q_step <= SIZE_MAX;
    requires \valid_read(panel + (0 .. group_count * Q8BlockBytes(group_size) - 1));
    requires \valid_read(q + (0 .. (group_count * (Q8Padded(group_size) / 4) - 1) * q_step + 3));
    requires \valid_read(scales + (0 .. (group_count - 1) * scale_step));
    terminates \true;
    assigns \nothing;
    ensures row_sum_q8: Same(\result, RowSumQ8{Pre}(panel, group_size, r, q, q_step, scales, scale_step, group_count)); */
static float row_sum_q8(const int8_t *panel, size_t group_count, size_t group_size, size_t r, const int8_t *q, size_t q_step,
                        const float *scales, size_t scale_step) {
  size_t dwords = pi_q8_padded(group_size) / 4;
  size_t block_bytes = pi_q8_block_bytes(group_size);
  float sum = 0.0f;
  //@ ghost pi_product_le(dwords, block_bytes, group_count);
  //@ ghost pi_product_le(scale_step, block_bytes, group_count);
  //@ assert dwords_fit: group_count * dwords <= SIZE_MAX;
  //@ assert scales_fit: group_count * scale_step <= SIZE_MAX;
  /*@ loop invariant row_sum_groups: 0 <= g <= group_count;
      loop invariant row_sum_so_far: Same(sum, RowSumQ8{Pre}(panel, group_size, r, q, q_step, scales, scale_step, g));
      loop assigns g, sum;
      loop variant group_count - g; */
  for (size_t g = 0; g < group_count; g++) {
    //@ ghost pi_product_le(g + 1, group_count, block_bytes);
    //@ ghost pi_product_le(g + 1, group_count, dwords);
    //@ ghost pi_product_le((g + 1) * dwords, group_count * dwords, q_step);
    //@ ghost pi_product_le(g * dwords, (g + 1) * dwords, q_step);
    //@ ghost pi_product_le(g, group_count, scale_step);
    //@ ghost pi_product_le(g, group_count - 1, scale_step);
    const int8_t *block = panel + g * block_bytes;
    int32_t dot = group_dot(block, r, 4 * dwords, q + g * dwords * q_step, q_step);
    sum += (float)dot * pi_load_float(block + pi_q8_scale(group_size, r)) * scales[g * scale_step];
  }
  return sum;
}

void pi_matvec_q8_scalar(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q,
                         const float *scales, const int32_t *sums, float *out) {
  (void)sums; /* for kernels that add 128 to the weights */
  size_t panel_bytes = group_count * pi_q8_block_bytes(group_size);
  /*@ loop invariant matvec_q8_panels: 0 <= p <= panel_count;
      loop assigns p, out[0 .. panel_count * PI_PANEL_ROWS - 1];
      loop variant panel_count - p; */
  for (size_t p = 0; p < panel_count; p++) {
    //@ ghost pi_product_le(p + 1, panel_count, panel_bytes);
    const int8_t *panel = panels + p * panel_bytes;
    float *to = out + p * PI_PANEL_ROWS;
    /*@ loop invariant matvec_q8_rows: 0 <= r <= PI_PANEL_ROWS;
        loop assigns r, to[0 .. PI_PANEL_ROWS - 1];
        loop variant PI_PANEL_ROWS - r; */
    for (size_t r = 0; r < PI_PANEL_ROWS; r++) to[r] = row_sum_q8(panel, group_count, group_size, r, q, 4, scales, 1);
  }
}

void pi_matmul_q8_scalar(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q_blocks,
                         const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out, size_t out_stride) {
  (void)sums_blocks;
  size_t panel_bytes = group_count * pi_q8_block_bytes(group_size);
  size_t q_block = group_count * pi_q8_padded(group_size) * PI_ROW_BLOCK;
  size_t scales_block = group_count * PI_ROW_BLOCK;
  /*@ loop invariant matmul_q8_range: 0 <= i <= row_count;
      loop assigns i, out[0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1];
      loop variant row_count - i; */
  for (size_t i = 0; i < row_count; i++) {
    //@ ghost pi_product_le(i / 8 + 1, (row_count + 7) / 8, q_block);
    //@ ghost pi_product_le(i / 8 + 1, (row_count + 7) / 8, scales_block);
    //@ ghost pi_product_le(i, row_count - 1, out_stride);
    const int8_t *q = q_blocks + i / PI_ROW_BLOCK * q_block + i % PI_ROW_BLOCK * 4;
    const float *scales = scales_blocks + i / PI_ROW_BLOCK * scales_block + i % PI_ROW_BLOCK;
    float *to = out + i * out_stride;
    /*@ loop invariant matmul_q8_panels: 0 <= p <= panel_count;
        loop assigns p, to[0 .. panel_count * PI_PANEL_ROWS - 1];
        loop variant panel_count - p; */
    for (size_t p = 0; p < panel_count; p++) {
      //@ ghost pi_product_le(p + 1, panel_count, panel_bytes);
      const int8_t *panel = panels + p * panel_bytes;
      /*@ loop invariant matmul_q8_rows: 0 <= r <= PI_PANEL_ROWS;
          loop assigns r, to[p * PI_PANEL_ROWS .. p * PI_PANEL_ROWS + PI_PANEL_ROWS - 1];
          loop variant PI_PANEL_ROWS - r; */
      for (size_t r = 0; r < PI_PANEL_ROWS; r++)
        to[p * PI_PANEL_ROWS + r] = row_sum_q8(panel, group_count, group_size, r, q, 4 * PI_ROW_BLOCK, scales, PI_ROW_BLOCK);
    }
  }
}

/*@ lemma Q8WeightGrows: \forall integer row, c, d; 0 <= c < d ==> Q8Weight(row, c) < Q8Weight(row, d); */

/* One row's group into its lane of a block. */
/*@ requires 1 <= group_size <= PI_MAX_GROUP_SIZE && row < PI_PANEL_ROWS;
    requires \valid_read(weights + (0 .. group_size - 1)) && \valid(block + (0 .. Q8BlockBytes(group_size) - 1));
    requires \separated(block + (0 .. Q8BlockBytes(group_size) - 1), weights + (0 .. group_size - 1));
    terminates \true;
    assigns block[0 .. Q8BlockBytes(group_size) - 1];
    ensures packed_weights: \forall integer c; 0 <= c < group_size ==> block[Q8Weight(row, c)] == \old(weights[c]);
    ensures packed_padding: \forall integer c; group_size <= c < Q8Padded(group_size) ==> block[Q8Weight(row, c)] == 0; */
static void pack_group(const int8_t *weights, float scale, size_t group_size, size_t row, int8_t *block) {
  size_t padded = pi_q8_padded(group_size);
  /*@ loop invariant packed_range: 0 <= c <= padded;
      loop invariant packed_input: \forall integer k; 0 <= k < group_size ==> weights[k] == \at(weights[k], Pre);
      loop invariant packed_weights: \forall integer k; 0 <= k < c && k < group_size ==> block[Q8Weight(row, k)] == \at(weights[k], Pre);
      loop invariant packed_padding: \forall integer k; group_size <= k < c ==> block[Q8Weight(row, k)] == 0;
      loop assigns c, block[0 .. padded * PI_PANEL_ROWS - 1];
      loop variant padded - c; */
  for (size_t c = 0; c < padded; c++) block[pi_q8_weight(row, c)] = c < group_size ? weights[c] : 0;
  pi_store_float(block + pi_q8_scale(group_size, row), scale);
}

void pi_pack_q8_scalar(const int8_t *rows, const float *scales, size_t row_count, size_t group_count, size_t group_size, size_t lane,
                       int8_t *panel) {
  size_t block_bytes = pi_q8_block_bytes(group_size);
  /*@ loop invariant pack_q8_groups: 0 <= g <= group_count;
      loop assigns g, panel[0 .. group_count * block_bytes - 1];
      loop variant group_count - g; */
  for (size_t g = 0; g < group_count; g++) {
    //@ ghost pi_product_le(g + 1, group_count, block_bytes);
    int8_t *block = panel + g * block_bytes;
    /*@ loop invariant pack_q8_rows: 0 <= r <= row_count;
        loop assigns r, block[0 .. block_bytes - 1];
        loop variant row_count - r; */
    for (size_t r = 0; r < row_count; r++) {
      //@ ghost pi_product_le(r + 1, row_count, group_count);
      //@ ghost pi_product_le(r * group_count + g + 1, row_count * group_count, group_size);
      pack_group(rows + (r * group_count + g) * group_size, scales[r * group_count + g], group_size, lane + r, block);
    }
  }
}
