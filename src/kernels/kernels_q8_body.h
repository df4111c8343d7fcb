// The bodies of the vector Q8_0 kernels, included like kernels_body.h and after it.
//
// What the file must have defined before, besides what kernels_body.h needs:
//   Quads: a register of kLanes int32; quads_zero, quads_add, store_quads (aligned)
//   Weights, load_weights(p): kLanes dwords of four int8 weights, aligned like the register
//   Inputs, load_inputs(p): one dword of four int8 activations, as dot4 wants it
//   dot4(acc, w, x): acc plus the four products of each dword, possibly with 128 added to each weight;
//   dots_start(sum): what takes that addition off again, `sum` being the activations' sum: where the sum of a group starts
//   to_float(quads): exact or rounded to nearest even
//   round_away(x): float to int32, halves away from zero, |x| <= 32512; store_bytes(p, quads): the low bytes of all lanes
//   kMaxRowsQ8: rows of activations that a block takes at once
//
// No product sum leaves int32: a group has at most 65536 weights (proved/checkpoint_layout.h), and activations are within -127 to 127.

// Some panels times some quantized activations.
struct Q8Block {
  const int8_t *panels;
  size_t panel_bytes;
  size_t groups, quads, group_bytes;  // dwords of a group; bytes of its block
  const int8_t *q;                    // [groups][quads][step of the kernel][4]
  const float *scales;                // [groups][step]
  const int32_t *sums;                // [groups][step]
  float *out;
  size_t out_stride;
};

// As prefetch() of kernels_body.h.
PI_INLINE void prefetch_bytes(const int8_t *base, size_t bytes_ahead) {
  __builtin_prefetch(reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(base) + bytes_ahead));
}

// The dots of one group. block: its first byte in the first panel; q: [quads][kStep][4].
template <size_t P, size_t R, size_t kStep>
PI_INLINE void dot_group(const Q8Block &b, const int8_t *block, const int8_t *q, size_t ahead, Quads (&dots)[P][R][kPanelRegs]) {
  for (size_t c = 0; c < b.quads; c++) {
    Weights w[P][kPanelRegs];
    PI_UNROLL
    for (size_t p = 0; p < P; p++) {
      const int8_t *at = block + p * b.panel_bytes + c * (kPanelRows * 4);
      prefetch_bytes(at, ahead);
      PI_UNROLL
      for (size_t k = 0; k < kPanelRegs; k++) w[p][k] = load_weights(at + k * kLanes * 4);
    }
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      Inputs x = load_inputs(q + (c * kStep + r) * 4);
      PI_UNROLL
      for (size_t p = 0; p < P; p++) {
        PI_UNROLL
        for (size_t k = 0; k < kPanelRegs; k++) dots[p][r][k] = dot4(dots[p][r][k], w[p][k], x);
      }
    }
  }
}

// Adds one group to the sums.
template <size_t P, size_t R, size_t kStep>
PI_INLINE void add_group(const Q8Block &b, size_t g, size_t ahead, Reg (&sums)[P][R][kPanelRegs]) {
  const int8_t *block = b.panels + g * b.group_bytes;
  Quads dots[P][R][kPanelRegs];
  PI_UNROLL
  for (size_t r = 0; r < R; r++) {
    Quads start = dots_start(b.sums[g * kStep + r]);
    PI_UNROLL
    for (size_t p = 0; p < P; p++) {
      PI_UNROLL
      for (size_t k = 0; k < kPanelRegs; k++) dots[p][r][k] = start;
    }
  }
  dot_group<P, R, kStep>(b, block, b.q + g * b.quads * kStep * 4, ahead, dots);
  PI_UNROLL
  for (size_t p = 0; p < P; p++) {
    const int8_t *scales = block + p * b.panel_bytes + b.quads * (kPanelRows * 4);
    prefetch_bytes(scales, ahead);
    PI_UNROLL
    for (size_t k = 0; k < kPanelRegs; k++) {
      Reg weight_scale = load_panel(reinterpret_cast<const float *>(scales) + k * kLanes);
      PI_UNROLL
      for (size_t r = 0; r < R; r++) {
        Reg product = mul(mul(to_float(dots[p][r][k]), weight_scale), set1(b.scales[g * kStep + r]));
        sums[p][r][k] = add(sums[p][r][k], product);
      }
    }
  }
}

template <size_t P, size_t R, size_t kStep>
void q8_block(const Q8Block &block) {
  const Q8Block b = block;  // a copy that no store can change
  Reg sums[P][R][kPanelRegs];
  PI_UNROLL
  for (size_t p = 0; p < P; p++) {
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      PI_UNROLL
      for (size_t k = 0; k < kPanelRegs; k++) sums[p][r][k] = zero();
    }
  }
  // whole groups of at least kPrefetchLines; the first ones of the next P panels are asked for at the end of these
  size_t near = b.groups == 0 ? 0 : kPrefetchLines * 64 / b.group_bytes + 1;
  if (near > b.groups) near = b.groups;
  size_t in_panel = near * b.group_bytes, to_next = (P - 1) * b.panel_bytes + in_panel;
  size_t g = 0;
  for (; g < b.groups - near; g++) add_group<P, R, kStep>(b, g, in_panel, sums);
  for (; g < b.groups; g++) add_group<P, R, kStep>(b, g, to_next, sums);
  PI_UNROLL
  for (size_t p = 0; p < P; p++) {
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      PI_UNROLL
      for (size_t k = 0; k < kPanelRegs; k++) store(b.out + r * b.out_stride + p * kPanelRows + k * kLanes, sums[p][r][k]);
    }
  }
}

// The most panels that a block of R rows has registers for: each sum has a register of int32 beside it.
template <size_t R>
constexpr size_t max_panels_q8() {
  constexpr size_t fit = kAccumulators / (2 * R * kPanelRegs);
  return fit < 1 ? 1 : fit > kMaxPanels ? kMaxPanels : fit;
}

// q8_block for a number of panels from 1 to P.
template <size_t P, size_t R, size_t kStep>
void q8_block_of_panels(const Q8Block &b, size_t panel_count) {
  if (panel_count == P) {
    q8_block<P, R, kStep>(b);
  } else if constexpr (P > 1) {
    q8_block_of_panels<P - 1, R, kStep>(b, panel_count);
  }
}

// All panels of a block in nearly equal parts that R rows have registers for.
template <size_t R, size_t kStep>
void q8_all_panels(Q8Block b, size_t panel_count) {
  constexpr size_t kMost = max_panels_q8<R>();
  size_t parts = panel_count / kMost + (panel_count % kMost != 0);
  for (; parts > 0; parts--) {
    size_t count = panel_count / parts + (panel_count % parts != 0);
    q8_block_of_panels<kMost, R, kStep>(b, count);
    b.panels += count * b.panel_bytes;
    b.out += count * kPanelRows;
    panel_count -= count;
  }
}

PI_INLINE Q8Block q8_shape(const int8_t *panels, size_t group_count, size_t group_size, float *out, size_t out_stride) {
  size_t group_bytes = pi_q8_block_bytes(group_size);
  return Q8Block{
      panels,    group_count * group_bytes, group_count, pi_q8_padded(group_size) / 4, group_bytes, nullptr, nullptr, nullptr, out,
      out_stride};
}

void matvec_q8(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q, const float *scales,
               const int32_t *sums, float *out) {
  Q8Block b = q8_shape(panels, group_count, group_size, out, 0);
  b.q = q;
  b.scales = scales;
  b.sums = sums;
  q8_all_panels<1, 1>(b, panel_count);
}

// q8_all_panels for a number of rows from 1 to R.
template <size_t R>
void q8_block_of_rows(const Q8Block &b, size_t panel_count, size_t row_count) {
  if (row_count == R) {
    q8_all_panels<R, kRowBlock>(b, panel_count);
  } else if constexpr (R > 1) {
    q8_block_of_rows<R - 1>(b, panel_count, row_count);
  }
}

void matmul_q8(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q_blocks,
               const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out, size_t out_stride) {
  Q8Block shape = q8_shape(panels, group_count, group_size, out, out_stride);
  // a panel without groups has no bytes: one more does not matter
  size_t fit = kGroupBytes / (shape.panel_bytes + 1), unit = max_panels_q8<kMaxRowsQ8>();
  size_t group = row_count <= kMaxRowsQ8 ? panel_count : fit < unit ? unit : fit - fit % unit;
  for (size_t panel = 0; panel < panel_count; panel += group) {
    size_t count = panel_count - panel < group ? panel_count - panel : group;
    for (size_t row = 0, rows; row < row_count; row += rows) {
      size_t lane = row % kRowBlock, block = row / kRowBlock;
      rows = row_count - row < kRowBlock - lane ? row_count - row : kRowBlock - lane;
      if (rows > kMaxRowsQ8) rows = kMaxRowsQ8;
      Q8Block b = shape;
      b.panels = panels + panel * shape.panel_bytes;
      b.q = q_blocks + (block * group_count * shape.quads * kRowBlock + lane) * 4;
      b.scales = scales_blocks + block * group_count * kRowBlock + lane;
      b.sums = sums_blocks + block * group_count * kRowBlock + lane;
      b.out = out + row * out_stride + panel * kPanelRows;
      q8_block_of_rows<kMaxRowsQ8>(b, count, rows);
    }
  }
}

// The largest magnitude of a group of whole registers, or NaN if an element is not finite.
PI_INLINE float largest_magnitude(const float *x, size_t n) {
  Reg most = zero(), probe = zero();  // the probe's lanes stay 0 unless an element is not finite: then NaN
  for (size_t i = 0; i < n; i += kLanes) {
    Reg v = load(x + i);
    most = max(most, absolute(v));
    probe = add(probe, mul(v, zero()));
  }
  float lanes[kLanes], probes[kLanes], result = 0.0f;
  store(lanes, most);
  store(probes, probe);
  for (size_t i = 0; i < kLanes; i++) {
    if (probes[i] != probes[i]) return probes[i];
    if (lanes[i] > result) result = lanes[i];
  }
  return result;
}

// One register of x / divisor, held within the limits, -lowest being the upper one, and rounded half away from zero. Quotients pass the limits only
// where the divisor is subnormal.
PI_INLINE Quads quantize_register(const float *x, Reg divisor, Reg lowest) {
  return round_away(max(negate(max(negate(div(load(x), divisor)), lowest)), lowest));
}

PI_INLINE int32_t sum_of_lanes(Quads quads) {
  alignas(64) int32_t lanes[kLanes];
  store_quads(lanes, quads);
  int32_t total = 0;
  for (size_t i = 0; i < kLanes; i++) total += lanes[i];
  return total;
}

// Quantizes a group of whole registers; returns the sum of the q.
PI_INLINE int32_t quantize_group(const float *x, size_t n, float scale, int8_t *q) {
  if (!(scale > 0.0f)) {
    for (size_t i = 0; i < n; i++) q[i] = 0;
    return 0;
  }
  Quads sum = quads_zero();
  for (size_t i = 0; i < n; i += kLanes) {
    Quads whole = quantize_register(x + i, set1(scale), set1(-127.0f));
    store_bytes(q + i, whole);
    sum = quads_add(sum, whole);
  }
  return sum_of_lanes(sum);
}

void quantize_q8(const float *x, size_t group_count, size_t group_size, int8_t *q, float *scales, int32_t *sums) {
  if (group_size % kLanes != 0) {
    pi_quantize_q8_scalar(x, group_count, group_size, q, scales, sums);
    return;
  }
  for (size_t g = 0; g < group_count; g++, x += group_size, q += group_size) {
    scales[g] = largest_magnitude(x, group_size) / 127.0f;
    sums[g] = quantize_group(x, group_size, scales[g], q);
  }
}

void pack_q8(const int8_t *rows, const float *scales, size_t row_count, size_t group_count, size_t group_size, size_t lane, int8_t *panel) {
  if (group_size % 4 != 0) {
    pi_pack_q8_scalar(rows, scales, row_count, group_count, group_size, lane, panel);
    return;
  }
  for (size_t g = 0; g < group_count; g++) {
    int8_t *block = panel + g * pi_q8_block_bytes(group_size);
    for (size_t r = 0; r < row_count; r++) {
      const int8_t *from = rows + (r * group_count + g) * group_size;
      for (size_t c = 0; c < group_size; c += 4) __builtin_memcpy(block + pi_q8_weight(lane + r, c), from + c, 4);
      __builtin_memcpy(block + pi_q8_scale(group_size, lane + r), scales + r * group_count + g, 4);
    }
  }
}
