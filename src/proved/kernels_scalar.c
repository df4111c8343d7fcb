#include "proved/kernels_scalar.h"

#include "proved/float_contract.h"

#define PI_ROW_BLOCK 8

/* Every row of a packed matrix times x, whose elements are x_step apart. */
/*@ requires 1 <= n && panel_count * n * PI_PANEL_ROWS <= SIZE_MAX && panel_count * PI_PANEL_ROWS <= SIZE_MAX;
    requires 1 <= x_step <= PI_ROW_BLOCK && n * PI_ROW_BLOCK <= SIZE_MAX;
    requires \valid_read(panels + (0 .. panel_count * n * PI_PANEL_ROWS - 1)) && \valid_read(x + (0 .. (n - 1) * x_step));
    requires \valid(out + (0 .. panel_count * PI_PANEL_ROWS - 1));
    requires \separated(out + (0 .. panel_count * PI_PANEL_ROWS - 1), panels + (0 .. panel_count * n * PI_PANEL_ROWS - 1));
    requires \separated(out + (0 .. panel_count * PI_PANEL_ROWS - 1), x + (0 .. (n - 1) * x_step));
    terminates \true;
    assigns out[0 .. panel_count * PI_PANEL_ROWS - 1];
    ensures rows_sums: \forall integer row; 0 <= row < panel_count * PI_PANEL_ROWS ==>
      Same(out[row], RowSum{Pre}(panels, n, row, x, x_step, n)); */
static void multiply(const float *panels, size_t panel_count, size_t n, const float *x, size_t x_step, float *out) {
  /*@ loop invariant rows_range: 0 <= row <= panel_count * PI_PANEL_ROWS;
      loop invariant rows_done: \forall integer r; 0 <= r < row ==> Same(out[r], RowSum{Pre}(panels, n, r, x, x_step, n));
      loop assigns row, out[0 .. panel_count * PI_PANEL_ROWS - 1];
      loop variant panel_count * PI_PANEL_ROWS - row; */
  for (size_t row = 0; row < panel_count * PI_PANEL_ROWS; row++) {
    //@ ghost pi_panel_below(panel_count, n, row);
    float sum = 0.0f;
    /*@ loop invariant columns_range: 0 <= j <= n;
        loop invariant columns_sum: Same(sum, RowSum{Pre}(panels, n, row, x, x_step, j));
        loop assigns j, sum;
        loop variant n - j; */
    for (size_t j = 0; j < n; j++) {
      //@ ghost pi_product_le(j, n - 1, x_step);
      //@ ghost pi_product_le(x_step, 8, n);
      size_t place = pi_packed_index(n, row, j);
      //@ assert place_in_matrix: place < panel_count * n * PI_PANEL_ROWS;
      //@ assert step_in_vector: j * x_step <= (n - 1) * x_step <= SIZE_MAX;
      //@ assert weight_kept: Same(panels[place], \at(panels[\at(place, Here)], Pre));
      //@ assert input_kept: Same(x[j * x_step], \at(x[\at(j, Here) * x_step], Pre));
      sum += panels[place] * x[j * x_step];
    }
    out[row] = sum;
    //@ assert row_before: \forall integer r; 0 <= r < row ==> Same(out[r], \at(out[r], LoopCurrent));
    //@ assert row_here: Same(out[row], RowSum{Pre}(panels, n, row, x, x_step, n));
  }
}

void pi_matvec_f32_scalar(const float *panels, size_t panel_count, size_t n, const float *x, float *out) {
  multiply(panels, panel_count, n, x, 1, out);
}

void pi_matmul_f32_scalar(const float *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count, float *out,
                          size_t out_stride) {
  /*@ loop invariant matmul_range: 0 <= i <= row_count;
      loop assigns i, out[0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1];
      loop variant row_count - i; */
  for (size_t i = 0; i < row_count; i++) {
    //@ ghost pi_product_le(i, row_count - 1, out_stride);
    //@ ghost pi_product_le(i + 1, row_count, out_stride);
    //@ ghost pi_product_le(i / 8 + 1, (row_count + 7) / 8, n);
    //@ ghost pi_product_le(1, (row_count + 7) / 8, n);
    //@ assert block_place: i / 8 * n * 8 + n * 8 <= (row_count + 7) / 8 * n * 8;
    //@ assert block_first: i / 8 * (n * 8) == i / 8 * n * 8;
    //@ assert block_bound: i / 8 * (n * 8) + n * 8 <= SIZE_MAX;
    const float *x = x_blocks + i / PI_ROW_BLOCK * (n * PI_ROW_BLOCK) + i % PI_ROW_BLOCK;
    multiply(panels, panel_count, n, x, PI_ROW_BLOCK, out + i * out_stride);
  }
}

/*@ requires 1 <= n && \valid_read(x + (0 .. n - 1));
    terminates \true;
    assigns \nothing;
    ensures rms_factor: Same(\result, RmsFactor{Pre}(x, n, epsilon)); */
static float rms_factor(const float *x, size_t n, float epsilon) {
  float ss = 0.0f;
  /*@ loop invariant squares_range: 0 <= j <= n;
      loop invariant squares_sum: Same(ss, SquareSum{Pre}(x, j));
      loop assigns j, ss;
      loop variant n - j; */
  for (size_t j = 0; j < n; j++) ss += x[j] * x[j];
  ss /= (float)n;
  ss += epsilon;
  return 1.0f / pi_sqrtf(ss);
}

/*@ terminates \true;
    assigns \nothing;
    ensures normed: Same(\result, Normed(weight, factor, x)); */
static float normed(float weight, float factor, float x) { return weight * (factor * x); }

/* `to` may be `from`: the exact values are proved for separate ones. */
/*@ requires \valid_read(from + (0 .. n - 1)) && \valid_read(weight + (0 .. n - 1)) && \valid(to + (0 .. n - 1));
    requires \separated(to + (0 .. n - 1), weight + (0 .. n - 1));
    terminates \true;
    assigns to[0 .. n - 1];
    ensures normed_values: \separated(to + (0 .. n - 1), from + (0 .. n - 1)) ==>
      \forall integer j; 0 <= j < n ==> Same(to[j], Normed(\old(weight[j]), factor, \old(from[j]))); */
static void normalize_row(const float *from, const float *weight, float factor, size_t n, float *to) {
  /*@ loop invariant normed_range: 0 <= j <= n;
      loop invariant normed_weight: Kept{Pre, Here}(weight, n);
      loop invariant normed_input: \separated(to + (0 .. n - 1), from + (0 .. n - 1)) ==> Kept{Pre, Here}(from, n);
      loop invariant normed_done: \separated(to + (0 .. n - 1), from + (0 .. n - 1)) ==>
        \forall integer k; 0 <= k < j ==> Same(to[k], Normed(\at(weight[k], Pre), factor, \at(from[k], Pre)));
      loop assigns j, to[0 .. n - 1];
      loop variant n - j; */
  for (size_t j = 0; j < n; j++) {
    to[j] = normed(weight[j], factor, from[j]);
    //@ assert normed_before: \forall integer k; 0 <= k < j ==> Same(to[k], \at(to[k], LoopCurrent));
  }
}

void pi_rmsnorm_f32_scalar(const float *x, size_t row_count, size_t x_stride, const float *weight, size_t n, float epsilon, float *out,
                           size_t out_stride) {
  /*@ loop invariant rmsnorm_range: 0 <= i <= row_count;
      loop assigns i, out[0 .. row_count * out_stride - 1];
      loop variant row_count - i; */
  for (size_t i = 0; i < row_count; i++) {
    //@ ghost pi_product_le(i + 1, row_count, x_stride);
    //@ ghost pi_product_le(i + 1, row_count, out_stride);
    const float *from = x + i * x_stride;
    normalize_row(from, weight, rms_factor(from, n, epsilon), n, out + i * out_stride);
  }
}

void pi_rope_angles_f32_scalar(const float *frequencies, size_t count, float position, float *cosines, float *sines) {
  /*@ loop invariant angles_range: 0 <= i <= count;
      loop invariant angles_cosines: \forall integer k; 0 <= k < i ==> Same(cosines[k], Cos(\mul_float(position, \at(frequencies[k], Pre))));
      loop invariant angles_sines: \forall integer k; 0 <= k < i ==> Same(sines[k], Sin(\mul_float(position, \at(frequencies[k], Pre))));
      loop assigns i, cosines[0 .. count - 1], sines[0 .. count - 1];
      loop variant count - i; */
  for (size_t i = 0; i < count; i++) {
    //@ assert frequency_kept: Same(frequencies[i], \at(frequencies[\at(i, Here)], Pre));
    float angle = position * frequencies[i];
    cosines[i] = pi_cosf(angle);
    sines[i] = pi_sinf(angle);
  }
}

/*@ requires \valid(pair + (0 .. 1));
    terminates \true;
    assigns pair[0 .. 1];
    ensures rope_first: Same(pair[0], \sub_float(\mul_float(\old(pair[0]), c), \mul_float(\old(pair[1]), s)));
    ensures rope_second: Same(pair[1], \add_float(\mul_float(\old(pair[0]), s), \mul_float(\old(pair[1]), c))); */
static void rotate(float *pair, float c, float s) {
  float v0 = pair[0];
  float v1 = pair[1];
  pair[0] = v0 * c - v1 * s;
  pair[1] = v0 * s + v1 * c;
}

void pi_rope_f32_scalar(float *vectors, size_t head_count, size_t head_size, const float *cosines, const float *sines) {
  /*@ loop invariant rope_heads: 0 <= h <= head_count;
      loop assigns h, vectors[0 .. head_count * head_size - 1];
      loop variant head_count - h; */
  for (size_t h = 0; h < head_count; h++) {
    //@ ghost pi_product_le(h + 1, head_count, head_size);
    float *v = vectors + h * head_size;
    /*@ loop invariant rope_pairs: 0 <= i <= head_size / 2;
        loop assigns i, v[0 .. head_size - 1];
        loop variant head_size / 2 - i; */
    for (size_t i = 0; i < head_size / 2; i++) rotate(v + 2 * i, cosines[i], sines[i]);
  }
}

/* The dot product with lane t of a block of keys. */
/*@ requires head_size * PI_KEY_BLOCK <= SIZE_MAX && t < PI_KEY_BLOCK;
    requires \valid_read(q + (0 .. head_size - 1)) && \valid_read(block + (0 .. head_size * PI_KEY_BLOCK - 1));
    terminates \true;
    assigns \nothing;
    ensures key_sum: Same(\result, KeySum{Pre}(q, block, t, head_size)); */
static float key_sum(const float *q, const float *block, size_t head_size, size_t t) {
  float sum = 0.0f;
  /*@ loop invariant key_range: 0 <= i <= head_size;
      loop invariant key_sum_so_far: Same(sum, KeySum{Pre}(q, block, t, i));
      loop assigns i, sum;
      loop variant head_size - i; */
  for (size_t i = 0; i < head_size; i++) sum += q[i] * block[i * PI_KEY_BLOCK + t];
  return sum;
}

void pi_scores_f32_scalar(const float *q, const float *keys, size_t block_count, size_t head_size, float root, float *scores) {
  /*@ loop invariant scores_blocks: 0 <= b <= block_count;
      loop assigns b, scores[0 .. block_count * PI_KEY_BLOCK - 1];
      loop variant block_count - b; */
  for (size_t b = 0; b < block_count; b++) {
    //@ ghost pi_product_le(b + 1, block_count, head_size);
    //@ ghost pi_product_le(1, block_count, head_size);
    //@ assert key_block: b * head_size * PI_KEY_BLOCK + head_size * PI_KEY_BLOCK <= block_count * head_size * PI_KEY_BLOCK;
    const float *block = keys + b * head_size * PI_KEY_BLOCK;
    /*@ loop invariant scores_lanes: 0 <= t <= PI_KEY_BLOCK;
        loop assigns t, scores[b * PI_KEY_BLOCK .. b * PI_KEY_BLOCK + PI_KEY_BLOCK - 1];
        loop variant PI_KEY_BLOCK - t; */
    for (size_t t = 0; t < PI_KEY_BLOCK; t++) scores[b * PI_KEY_BLOCK + t] = key_sum(q, block, head_size, t) / root;
  }
}

/*@ requires 1 <= n && \valid_read(x + (0 .. n - 1));
    terminates \true;
    assigns \nothing;
    ensures max_is_element: \exists integer k; 0 <= k < n && Same(\result, x[k]);
    ensures max_largest: (\forall integer k; 0 <= k < n ==> \is_finite(x[k])) ==> \forall integer k; 0 <= k < n ==> \le_float(x[k], \result); */
static float row_max(const float *x, size_t n) {
  float max = x[0];
  /*@ loop invariant max_range: 1 <= i <= n;
      loop invariant max_is_element: \exists integer k; 0 <= k < i && Same(max, x[k]);
      loop invariant max_largest: (\forall integer k; 0 <= k < n ==> \is_finite(x[k])) ==>
        \is_finite(max) && \forall integer k; 0 <= k < i ==> \le_float(x[k], max);
      loop assigns i, max;
      loop variant n - i; */
  for (size_t i = 1; i < n; i++)
    if (x[i] > max) max = x[i];
  return max;
}

/* x[i] = exp(x[i] - max); the sum of them in ascending order. */
/*@ requires \valid(x + (0 .. n - 1));
    terminates \true;
    assigns x[0 .. n - 1];
    ensures exp_values: \forall integer i; 0 <= i < n ==> Same(x[i], ExpOf(\old(x[i]), max));
    ensures exp_sum: Same(\result, ExpSum{Pre}(x, max, n)); */
static float exponentials(float *x, size_t n, float max) {
  float sum = 0.0f;
  /*@ loop invariant exp_range: 0 <= i <= n;
      loop invariant exp_sum_so_far: Same(sum, ExpSum{Pre}(x, max, i));
      loop invariant exp_done: \forall integer k; 0 <= k < i ==> Same(x[k], ExpOf(\at(x[k], Pre), max));
      loop invariant exp_rest: \forall integer k; i <= k < n ==> Same(x[k], \at(x[k], Pre));
      loop assigns i, sum, x[0 .. n - 1];
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) {
    //@ assert exp_argument: Same(x[i], \at(x[\at(i, Here)], Pre));
    x[i] = pi_expf(x[i] - max);
    //@ assert exp_before: \forall integer k; 0 <= k < i ==> Same(x[k], \at(x[k], LoopCurrent));
    //@ assert exp_here: Same(x[i], ExpOf(\at(x[\at(i, Here)], Pre), max));
    sum += x[i];
  }
  return sum;
}

void pi_softmax_f32_scalar(float *x, size_t row_count, size_t stride, size_t n) {
  /*@ loop invariant softmax_rows: 0 <= i <= row_count;
      loop assigns i, x[0 .. row_count * stride - 1];
      loop variant row_count - i; */
  for (size_t i = 0; i < row_count; i++) {
    //@ ghost pi_product_le(i + 1, row_count, stride);
    float *row = x + i * stride;
    float sum = exponentials(row, n, row_max(row, n));
    pi_divide_f32_scalar(row, n, sum);
  }
}

/*@ requires \valid_read(value + (0 .. n - 1)) && \valid(out + (0 .. n - 1)) && \separated(out + (0 .. n - 1), value + (0 .. n - 1));
    terminates \true;
    assigns out[0 .. n - 1];
    ensures mix_values: \forall integer i; 0 <= i < n ==> Same(out[i], Mixed(\old(out[i]), weight, \old(value[i]))); */
static void add_weighted(float weight, const float *value, size_t n, float *out) {
  /*@ loop invariant mix_range: 0 <= i <= n;
      loop invariant mix_value: Kept{Pre, Here}(value, n);
      loop invariant mix_rest: \forall integer k; i <= k < n ==> Same(out[k], \at(out[k], Pre));
      loop invariant mix_done: \forall integer k; 0 <= k < i ==> Same(out[k], Mixed(\at(out[k], Pre), weight, \at(value[k], Pre)));
      loop assigns i, out[0 .. n - 1];
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) out[i] += weight * value[i];
}

void pi_mix_f32_scalar(const float *weights, const float *values, size_t n, size_t head_size, float *out) {
  /*@ loop invariant mix_positions: 0 <= t <= n;
      loop assigns t, out[0 .. head_size - 1];
      loop variant n - t; */
  for (size_t t = 0; t < n; t++) {
    //@ ghost pi_product_le(t + 1, n, head_size);
    //@ assert value_place: t * head_size + head_size <= n * head_size;
    add_weighted(weights[t], values + t * head_size, head_size, out);
  }
}

/*@ terminates \true;
    assigns \nothing;
    ensures gated: Same(\result, Gated(h1, h3)); */
static float gated(float h1, float h3) {
  float v = h1;
  v *= 1.0f / (1.0f + pi_expf(-v));
  v *= h3;
  return v;
}

void pi_swiglu_f32_scalar(float *h1, const float *h3, size_t n) {
  /*@ loop invariant swiglu_range: 0 <= i <= n;
      loop invariant swiglu_other: Kept{Pre, Here}(h3, n);
      loop invariant swiglu_rest: \forall integer k; i <= k < n ==> Same(h1[k], \at(h1[k], Pre));
      loop invariant swiglu_done: \forall integer k; 0 <= k < i ==> Same(h1[k], Gated(\at(h1[k], Pre), \at(h3[k], Pre)));
      loop assigns i, h1[0 .. n - 1];
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) h1[i] = gated(h1[i], h3[i]);
}

void pi_add_f32_scalar(float *x, const float *y, size_t n) {
  /*@ loop invariant add_range: 0 <= i <= n;
      loop invariant add_other: Kept{Pre, Here}(y, n);
      loop invariant add_rest: \forall integer k; i <= k < n ==> Same(x[k], \at(x[k], Pre));
      loop invariant add_done: \forall integer k; 0 <= k < i ==> Same(x[k], \add_float(\at(x[k], Pre), \at(y[k], Pre)));
      loop assigns i, x[0 .. n - 1];
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) x[i] += y[i];
}

void pi_divide_f32_scalar(float *x, size_t n, float divisor) {
  /*@ loop invariant divide_range: 0 <= i <= n;
      loop invariant divide_rest: \forall integer k; i <= k < n ==> Same(x[k], \at(x[k], Pre));
      loop invariant divide_done: \forall integer k; 0 <= k < i ==> Same(x[k], \div_float(\at(x[k], Pre), divisor));
      loop assigns i, x[0 .. n - 1];
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) x[i] /= divisor;
}

void pi_canonical_nan_f32_scalar(float *x, size_t n) {
  float nan = pi_float_of_bits(0x7fc00000u);
  /*@ loop invariant nan_range: 0 <= i <= n;
      loop invariant nan_rest: \forall integer k; i <= k < n ==> Same(x[k], \at(x[k], Pre));
      loop invariant nan_replaced: \forall integer k; 0 <= k < i && \is_NaN(\at(x[k], Pre)) ==> Same(x[k], nan);
      loop invariant others_kept: \forall integer k; 0 <= k < i && !\is_NaN(\at(x[k], Pre)) ==> Same(x[k], \at(x[k], Pre));
      loop assigns i, x[0 .. n - 1];
      loop variant n - i; */
  for (size_t i = 0; i < n; i++)
    if (x[i] != x[i]) x[i] = nan;
}

/* Column j of rows side by side. */
/*@ requires row_count <= PI_PANEL_ROWS && j < n && row_count * n <= SIZE_MAX;
    requires \valid_read(rows + (0 .. row_count * n - 1)) && \valid(lanes + (0 .. row_count - 1));
    requires \separated(lanes + (0 .. row_count - 1), rows + (0 .. row_count * n - 1));
    terminates \true;
    assigns lanes[0 .. row_count - 1];
    ensures pack_lanes: \forall integer r; 0 <= r < row_count ==> Same(lanes[r], \old(rows[r * n + j])); */
static void pack_column(const float *rows, size_t row_count, size_t n, size_t j, float *lanes) {
  /*@ loop invariant pack_rows: 0 <= r <= row_count;
      loop invariant pack_done: \forall integer k; 0 <= k < r ==> Same(lanes[k], \at(rows[k * n + j], Pre));
      loop assigns r, lanes[0 .. row_count - 1];
      loop variant row_count - r; */
  for (size_t r = 0; r < row_count; r++) {
    //@ ghost pi_product_le(r + 1, row_count, n);
    //@ assert pack_place: r * n + j < row_count * n;
    //@ assert pack_input_kept: Same(rows[r * n + j], \at(rows[\at(r, Here) * n + j], Pre));
    lanes[r] = rows[r * n + j];
    //@ assert pack_before: \forall integer k; 0 <= k < r ==> Same(lanes[k], \at(lanes[k], LoopCurrent));
    //@ assert pack_here: Same(lanes[r], \at(rows[\at(r, Here) * n + j], Pre));
  }
}

void pi_pack_f32_scalar(const float *rows, size_t row_count, size_t n, float *panel) {
  /*@ loop invariant pack_columns: 0 <= j <= n;
      loop assigns j, panel[0 .. (n - 1) * PI_PANEL_ROWS + row_count - 1];
      loop variant n - j; */
  for (size_t j = 0; j < n; j++) pack_column(rows, row_count, n, j, panel + j * PI_PANEL_ROWS);
}
