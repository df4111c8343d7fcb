// The bodies of the vector kernels. Each kernels_<isa>.cpp includes this once, inside its anonymous namespace, after it has defined its
// vector type: every file so has its own copy with internal linkage, and no other file can end up calling code of the wrong ISA.
//
// What the file must have defined before (Reg: a register of kLanes floats):
//   kLanes; kAccumulators, kMaxRows: how many registers of sums, and how many rows of them, a block of matmul may hold
//   zero, set1, load, store, load_panel (64-byte aligned), add, mul, div, max, negate
//   load_part, store_part: the first n of kLanes lanes, 0 < n < kLanes, touching no other memory; other lanes are loaded as 0
//   replace_nan(x, y): y in the lanes where x is NaN
//   transpose_4x4(from, from_step, to, to_step): to[c * to_step + r] = from[r * from_step + c]
//   load_pairs(p): p[0], p[0], p[1], p[1], ...; load_pairs_part(p, n): the same of n numbers; swap_pairs, negate_even
//   exp_reg(x), sin_reg(x), cos_reg(x)
//
// Sums: a lane belongs to one row of the matrix, one position or one element, never to a part of a sum, so that each sum is the scalar
// loop's, and mul and add are two instructions (-ffp-contract=off).

// How many cache lines ahead of its use each stream of weights is asked for: measured best with 3 to 6 streams.
constexpr size_t kPrefetchLines = 24;
constexpr size_t kPanelRows = PI_PANEL_ROWS;
constexpr size_t kPanelRegs = kPanelRows / kLanes;
// More streams than this gain nothing.
constexpr size_t kMaxPanels = 6;
// Columns of a matrix that matmul takes at a time, so that the panels of a block stay in the second-level cache.
constexpr size_t kColumnChunk = 2048;
// About this much of a matrix is used for all rows before the next part is read.
constexpr size_t kGroupBytes = 256 * 1024;

// A prefetch never faults, so the address may lie behind the matrix, where the next one often is.
template <typename T>
PI_INLINE void prefetch(const T *base, size_t ahead) {
  __builtin_prefetch(reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(base) + ahead * sizeof(T)));
}

// ---- matrices ----

// An element type of weights: how it is stored, and how a register of it is read.
struct F32 {
  using Stored = float;
  static PI_INLINE_MEMBER Reg load(const float *p) { return load_panel(p); }
};

// Some panels times some activations.
template <typename E>
struct Block {
  const typename E::Stored *panels;  // the first column in question of the first panel
  size_t panel_stride;               // elements from panel to panel
  size_t columns;
  const float *x;  // [columns][step of the kernel]
  float *out;      // [rows][out_stride]
  size_t out_stride;
  bool resume;  // go on with the sums in out
};

template <size_t P, size_t R, size_t kStep, typename E>
PI_INLINE void add_column(const Block<E> &b, size_t j, size_t ahead, Reg (&sums)[P][R][kPanelRegs]) {
  const typename E::Stored *column = b.panels + j * kPanelRows;
  Reg w[P][kPanelRegs];
  PI_UNROLL
  for (size_t p = 0; p < P; p++) {
    const typename E::Stored *rows = column + p * b.panel_stride;
    prefetch(rows, ahead);
    PI_UNROLL
    for (size_t k = 0; k < kPanelRegs; k++) w[p][k] = E::load(rows + k * kLanes);
  }
  PI_UNROLL
  for (size_t r = 0; r < R; r++) {
    Reg x = set1(b.x[j * kStep + r]);
    PI_UNROLL
    for (size_t p = 0; p < P; p++) {
      PI_UNROLL
      for (size_t k = 0; k < kPanelRegs; k++) sums[p][r][k] = add(sums[p][r][k], mul(w[p][k], x));
    }
  }
}

template <size_t P, size_t R, size_t kStep, typename E>
void panel_block(const Block<E> &block) {
  const Block<E> b = block;  // a copy that no store can change
  Reg sums[P][R][kPanelRegs];
  PI_UNROLL
  for (size_t p = 0; p < P; p++) {
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      PI_UNROLL
      for (size_t k = 0; k < kPanelRegs; k++)
        sums[p][r][k] = b.resume ? load(b.out + r * b.out_stride + p * kPanelRows + k * kLanes) : zero();
    }
  }
  // the first lines of the next P panels are asked for at the end of these
  constexpr size_t kNear = kPrefetchLines * sizeof(float) / sizeof(typename E::Stored);
  size_t near = b.columns < kNear ? b.columns : kNear;
  size_t to_next = (P - 1) * b.panel_stride + near * kPanelRows;
  size_t j = 0;
  for (; j < b.columns - near; j++) add_column<P, R, kStep>(b, j, near * kPanelRows, sums);
  for (; j < b.columns; j++) add_column<P, R, kStep>(b, j, to_next, sums);
  PI_UNROLL
  for (size_t p = 0; p < P; p++) {
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      PI_UNROLL
      for (size_t k = 0; k < kPanelRegs; k++) store(b.out + r * b.out_stride + p * kPanelRows + k * kLanes, sums[p][r][k]);
    }
  }
}

// The most panels that a block of R rows has registers for.
template <size_t R>
constexpr size_t max_panels() {
  constexpr size_t fit = kAccumulators / (R * kPanelRegs);
  return fit < 1 ? 1 : fit > kMaxPanels ? kMaxPanels : fit;
}

// panel_block for a number of panels from 1 to P.
template <size_t P, size_t R, size_t kStep, typename E>
void block_of_panels(const Block<E> &b, size_t panel_count) {
  if (panel_count == P) {
    panel_block<P, R, kStep>(b);
  } else if constexpr (P > 1) {
    block_of_panels<P - 1, R, kStep>(b, panel_count);
  }
}

// All panels of a block in nearly equal parts that R rows have registers for.
template <size_t R, size_t kStep, typename E>
void all_panels(Block<E> b, size_t panel_count) {
  constexpr size_t kMost = max_panels<R>();
  size_t parts = panel_count / kMost + (panel_count % kMost != 0);
  for (; parts > 0; parts--) {
    size_t count = panel_count / parts + (panel_count % parts != 0);
    block_of_panels<kMost, R, kStep>(b, count);
    b.panels += count * b.panel_stride;
    b.out += count * kPanelRows;
    panel_count -= count;
  }
}

void matvec_f32(const float *panels, size_t panel_count, size_t n, const float *x, float *out) {
  all_panels<1, 1>(Block<F32>{panels, n * kPanelRows, n, x, out, 0, false}, panel_count);
}

// all_panels for a number of rows from 1 to R.
template <size_t R>
void block_of_rows(const Block<F32> &b, size_t panel_count, size_t row_count) {
  if (row_count == R) {
    all_panels<R, kRowBlock>(b, panel_count);
  } else if constexpr (R > 1) {
    block_of_rows<R - 1>(b, panel_count, row_count);
  }
}

// All rows, with panels and columns that stay in the cache meanwhile. x_blocks: the first column in question of the first block.
void rows_of_group(Block<F32> b, size_t panel_count, size_t n, const float *x_blocks, size_t row_count) {
  for (size_t row = 0; row < row_count;) {
    size_t lane = row % kRowBlock;
    size_t left = row_count - row < kRowBlock - lane ? row_count - row : kRowBlock - lane;
    size_t rows = left < kMaxRows ? left : kMaxRows;
    Block<F32> part = b;
    part.x = x_blocks + (row - lane) * n + lane;
    part.out = b.out + row * b.out_stride;
    block_of_rows<kMaxRows>(part, panel_count, rows);
    row += rows;
  }
}

void matmul_f32(const float *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count, float *out, size_t out_stride) {
  if (n == 0) {
    rows_of_group(Block<F32>{panels, 0, 0, x_blocks, out, out_stride, false}, panel_count, n, x_blocks, row_count);
    return;
  }
  size_t chunk = n < kColumnChunk ? n : kColumnChunk;
  size_t fit = kGroupBytes / (chunk * kPanelRows * sizeof(float));
  size_t group = fit - fit % max_panels<kMaxRows>();
  if (row_count <= kMaxRows) group = panel_count;  // nothing is used twice
  if (group == 0) group = max_panels<kMaxRows>();
  for (size_t panel = 0; panel < panel_count; panel += group) {
    size_t count = panel_count - panel < group ? panel_count - panel : group;
    for (size_t column = 0; column < n; column += chunk) {
      size_t columns = n - column < chunk ? n - column : chunk;
      Block<F32> b = {
          panels + (panel * n + column) * kPanelRows, n * kPanelRows, columns, nullptr, out + panel * kPanelRows, out_stride, column > 0};
      rows_of_group(b, count, n, x_blocks + column * kRowBlock, row_count);
    }
  }
}

// Whole cache lines of each row at a time: where rows are a large power of two apart, their lines push each other out of the cache.
void pack_f32(const float *rows, size_t row_count, size_t n, float *panel) {
  size_t j = 0;
  if (row_count == kPanelRows) {
    constexpr size_t kLine = 16;
    for (; j + kLine <= n; j += kLine)
      for (size_t r = 0; r < kPanelRows; r += 4)
        for (size_t c = j; c < j + kLine; c += 4) transpose_4x4(rows + r * n + c, n, panel + c * kPanelRows + r, kPanelRows);
  }
  for (; j < n; j++)
    for (size_t r = 0; r < row_count; r++) panel[j * kPanelRows + r] = rows[r * n + j];
}

// ---- elementwise ----

// Applies f to [n] elements of x and y in place of x; f must not let a lane reach another.
template <typename F>
PI_INLINE void each_f32(float *to, const float *x, const float *y, size_t n, F f) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, f(load(x + i), load(y + i)));
  if (i < n) store_part(to + i, f(load_part(x + i, n - i), load_part(y + i, n - i)), n - i);
}

void add_f32(float *x, const float *y, size_t n) {
  each_f32(x, x, y, n, [](Reg a, Reg b) PI_LAMBDA_INLINE { return add(a, b); });
}

void divide_f32(float *x, size_t n, float divisor) {
  Reg d = set1(divisor);
  each_f32(x, x, x, n, [d](Reg a, Reg) PI_LAMBDA_INLINE { return div(a, d); });
}

void canonical_nan_f32(float *x, size_t n) {
  union {
    uint32_t bits;
    float value;
  } nan = {0x7fc00000u};
  Reg quiet = set1(nan.value);
  each_f32(x, x, x, n, [quiet](Reg a, Reg) PI_LAMBDA_INLINE { return replace_nan(a, quiet); });
}

void swiglu_f32(float *h1, const float *h3, size_t n) {
  Reg one = set1(1.0f);
  each_f32(h1, h1, h3, n, [one](Reg v, Reg up) PI_LAMBDA_INLINE {
    Reg gate = div(one, add(one, exp_reg(negate(v))));
    return mul(mul(v, gate), up);
  });
}

void exp_f32(const float *x, float *y, size_t n) {
  each_f32(y, x, x, n, [](Reg v, Reg) PI_LAMBDA_INLINE { return exp_reg(v); });
}

void sin_f32(const float *x, float *y, size_t n) {
  each_f32(y, x, x, n, [](Reg v, Reg) PI_LAMBDA_INLINE { return sin_reg(v); });
}

void cos_f32(const float *x, float *y, size_t n) {
  each_f32(y, x, x, n, [](Reg v, Reg) PI_LAMBDA_INLINE { return cos_reg(v); });
}

// ---- rotary embedding ----

void rope_angles_f32(const float *frequencies, size_t count, float position, float *cosines, float *sines) {
  Reg p = set1(position);
  each_f32(cosines, frequencies, frequencies, count, [p](Reg f, Reg) PI_LAMBDA_INLINE { return cos_reg(mul(p, f)); });
  each_f32(sines, frequencies, frequencies, count, [p](Reg f, Reg) PI_LAMBDA_INLINE { return sin_reg(mul(p, f)); });
}

// a - b and a + (-b) are the same number, and so are a + b and b + a.
PI_INLINE Reg rotate(Reg v, Reg c, Reg s) { return add(mul(v, c), negate_even(mul(swap_pairs(v), s))); }

void rope_f32(float *vectors, size_t head_count, size_t head_size, const float *cosines, const float *sines) {
  size_t i = 0;
  for (; i + kLanes <= head_size; i += kLanes) {
    Reg c = load_pairs(cosines + i / 2);
    Reg s = load_pairs(sines + i / 2);
    for (size_t h = 0; h < head_count; h++) {
      float *v = vectors + h * head_size + i;
      store(v, rotate(load(v), c, s));
    }
  }
  size_t left = head_size - i;
  if (left == 0) return;
  Reg c = load_pairs_part(cosines + i / 2, left / 2);
  Reg s = load_pairs_part(sines + i / 2, left / 2);
  for (size_t h = 0; h < head_count; h++) {
    float *v = vectors + h * head_size + i;
    store_part(v, rotate(load_part(v, left), c, s), left);
  }
}

// ---- sums along rows ----

// Adds up to kRowBlock rows side by side: each row's own sum is sequential, and the others hide the latency of its additions.
template <size_t R, bool kSquares>
PI_INLINE void sum_rows(const float *x, size_t stride, size_t n, float *sums) {
  float acc[R];
  PI_UNROLL
  for (size_t r = 0; r < R; r++) acc[r] = 0.0f;
  for (size_t j = 0; j < n; j++) {
    __asm__ volatile("");  // compilers would sum a row lane after lane of a register, which gives the same bits later
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      float v = x[r * stride + j];
      acc[r] += kSquares ? v * v : v;
    }
  }
  PI_UNROLL
  for (size_t r = 0; r < R; r++) sums[r] = acc[r];
}

// sum_rows for a number of rows from 1 to R.
template <size_t R, bool kSquares>
void sums_of_rows(const float *x, size_t row_count, size_t stride, size_t n, float *sums) {
  if (row_count == R) {
    sum_rows<R, kSquares>(x, stride, n, sums);
  } else if constexpr (R > 1) {
    sums_of_rows<R - 1, kSquares>(x, row_count, stride, n, sums);
  }
}

void rmsnorm_row(const float *x, const float *weight, size_t n, float epsilon, float ss, float *out) {
  ss /= static_cast<float>(n);
  ss += epsilon;
  Reg factor = set1(1.0f / pi_sqrtf(ss));
  each_f32(out, x, weight, n, [factor](Reg v, Reg w) PI_LAMBDA_INLINE { return mul(w, mul(factor, v)); });
}

void rmsnorm_f32(const float *x, size_t row_count, size_t x_stride, const float *weight, size_t n, float epsilon, float *out,
                 size_t out_stride) {
  float ss[kRowBlock];
  for (size_t row = 0; row < row_count; row += kRowBlock) {
    size_t rows = row_count - row < kRowBlock ? row_count - row : kRowBlock;
    sums_of_rows<kRowBlock, true>(x + row * x_stride, rows, x_stride, n, ss);
    for (size_t r = 0; r < rows; r++) rmsnorm_row(x + (row + r) * x_stride, weight, n, epsilon, ss[r], out + (row + r) * out_stride);
  }
}

// ---- attention ----

void scores_f32(const float *q, const float *keys, size_t block_count, size_t head_size, float root, float *scores) {
  static_assert(PI_KEY_BLOCK == PI_PANEL_ROWS, "a block of keys is laid out like a panel");
  matvec_f32(keys, block_count, head_size, q, scores);
  divide_f32(scores, block_count * PI_KEY_BLOCK, root);
}

// The largest of n >= 1 elements; any of them where one is NaN, as all then become NaN.
PI_INLINE float max_of_row(const float *x, size_t n) {
  float most = x[0];
  if (n < kLanes) {
    for (size_t i = 1; i < n; i++)
      if (x[i] > most) most = x[i];
    return most;
  }
  Reg lanes = load(x + n - kLanes);  // may overlap the others: a maximum does not mind
  for (size_t i = 0; i + kLanes <= n; i += kLanes) lanes = max(lanes, load(x + i));
  float each[kLanes];
  store(each, lanes);
  for (size_t i = 0; i < kLanes; i++)
    if (each[i] > most) most = each[i];
  return most;
}

void softmax_f32(float *x, size_t row_count, size_t stride, size_t n) {
  float sums[kRowBlock];
  for (size_t row = 0; row < row_count; row += kRowBlock) {
    size_t rows = row_count - row < kRowBlock ? row_count - row : kRowBlock;
    float *first = x + row * stride;
    for (size_t r = 0; r < rows; r++) {
      float *v = first + r * stride;
      Reg most = set1(max_of_row(v, n));
      each_f32(v, v, v, n, [most](Reg a, Reg) PI_LAMBDA_INLINE { return exp_reg(sub(a, most)); });
    }
    sums_of_rows<kRowBlock, false>(first, rows, stride, n, sums);
    for (size_t r = 0; r < rows; r++) divide_f32(first + r * stride, n, sums[r]);
  }
}

// R registers of elements of out.
template <size_t R>
PI_INLINE void mix_columns(const float *weights, const float *values, size_t n, size_t head_size, float *out) {
  Reg acc[R];
  PI_UNROLL
  for (size_t r = 0; r < R; r++) acc[r] = load(out + r * kLanes);
  for (size_t t = 0; t < n; t++) {
    Reg w = set1(weights[t]);
    const float *value = values + t * head_size;
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      if (r * kLanes % 16 == 0) prefetch(value + r * kLanes, kPrefetchLines * 16);
      acc[r] = add(acc[r], mul(w, load(value + r * kLanes)));
    }
  }
  PI_UNROLL
  for (size_t r = 0; r < R; r++) store(out + r * kLanes, acc[r]);
}

// mix_columns for a number of registers from 1 to R.
template <size_t R>
void mix_registers(const float *weights, const float *values, size_t n, size_t head_size, float *out, size_t registers) {
  if (registers == R) {
    mix_columns<R>(weights, values, n, head_size, out);
  } else if constexpr (R > 1) {
    mix_registers<R - 1>(weights, values, n, head_size, out, registers);
  }
}

void mix_f32(const float *weights, const float *values, size_t n, size_t head_size, float *out) {
  constexpr size_t kMost = 8;
  size_t i = 0;
  while (head_size - i >= kLanes) {
    size_t registers = (head_size - i) / kLanes < kMost ? (head_size - i) / kLanes : kMost;
    mix_registers<kMost>(weights, values + i, n, head_size, out + i, registers);
    i += registers * kLanes;
  }
  size_t left = head_size - i;
  if (left == 0) return;
  Reg acc = load_part(out + i, left);
  for (size_t t = 0; t < n; t++) acc = add(acc, mul(set1(weights[t]), load_part(values + t * head_size + i, left)));
  store_part(out + i, acc, left);
}
