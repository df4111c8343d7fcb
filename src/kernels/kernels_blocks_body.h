// The bodies of the vector kernels of 16-bit and block types, included like kernels_body.h and after kernels_q8_body.h.
//
// What the file must have defined before, besides what those need:
//   load_f16(p), load_bf16(p): kLanes 16-bit numbers (aligned to 8 bytes), widened exactly; load_u8(p), load_s8(p): kLanes bytes as floats
//   Codes: a register of kLanes dwords of four unsigned numbers below 64; load_codes(p); codes_and, codes_or, codes_set1(byte);
//   codes_shift<n>(x): the bits of 16-bit lanes (or of bytes) n places up, down where n < 0
//   Products: sums of products on their way; products_zero, products_add(acc, codes, inputs), products_fold<n>(quads, products): n times the sums added,
//   n being 1 or 255; products_that_fit(most): additions of codes up to `most` that Products holds without a fold
//   quads_set1(n); quads_sub; quads_times_256
//   kPanelsAtOnce: panels that matvec_blocks takes side by side; kMaxRowsBlocks: rows of activations that matmul_blocks takes at once
//
// Integer sums are exact (docs/arithmetic.md), so their order is free; the floats' is not.

// What the kernels need to know of a type. kBits: of a code, 8: signed bytes; kOffset: what codes have too much.
enum class BlockKind { kLegacy, kMinimaK, kHalvesK };

template <int kBitsOf, int kOffsetOf, bool kMinimumOf, BlockKind kKindOf>
struct BlockType {
  static constexpr int kBits = kBitsOf, kOffset = kOffsetOf;
  static constexpr bool kMinimum = kMinimumOf;
  static constexpr BlockKind kKind = kKindOf;
  static constexpr size_t kGroups = kKind == BlockKind::kLegacy ? 1 : PI_K_GROUPS;
  static constexpr size_t kPayload = kBits == 4 ? PI_PAYLOAD_4 : kBits == 5 ? PI_PAYLOAD_5 : kBits == 6 ? PI_PAYLOAD_6 : PI_PAYLOAD_8;
  static constexpr size_t kHeader = kKind == BlockKind::kLegacy ? 0 : kKind == BlockKind::kMinimaK ? PI_K_HEADER : PI_Q6K_HEADER;
  static constexpr size_t kBytes = kKind == BlockKind::kLegacy ? kPayload + (kMinimum ? 2 : 1) * PI_HALVES : kHeader + kGroups * kPayload;
};

// Some panels times some quantized activations.
struct BlocksOfPanels {
  const unsigned char *panels;
  size_t panel_bytes;
  size_t groups;
  const int8_t *digits;  // [groups][2][8][step of the kernel][4]
  const float *scales;   // [groups][step]
  const int32_t *sums;   // [groups][2][step]
  float *out;
  size_t out_stride;
  size_t rows;  // of the activations that are wanted; the kernel's others are computed and dropped
};

template <typename T>
PI_INLINE Codes codes_of_quad(Codes nibbles, const Codes (&high)[2], size_t quad) {
  if constexpr (T::kBits == 4) return nibbles;
  Codes upper = high[0];
  if constexpr (T::kBits == 5) {
    switch (quad) {
      case 0: upper = codes_shift<4>(upper); break;
      case 1: upper = codes_shift<3>(upper); break;
      case 2: upper = codes_shift<2>(upper); break;
      case 3: upper = codes_shift<1>(upper); break;
      case 4: break;
      case 5: upper = codes_shift<-1>(upper); break;
      case 6: upper = codes_shift<-2>(upper); break;
      default: upper = codes_shift<-3>(upper); break;
    }
    return codes_or(nibbles, codes_and(upper, codes_set1(0x10)));
  }
  upper = high[quad / 4];
  switch (quad % 4) {
    case 0: upper = codes_shift<4>(upper); break;
    case 1: upper = codes_shift<2>(upper); break;
    case 2: break;
    default: upper = codes_shift<-2>(upper); break;
  }
  return codes_or(nibbles, codes_and(upper, codes_set1(0x30)));
}

PI_INLINE Quads times_base(Quads x) { return quads_sub(quads_times_256(x), x); }
static_assert(PI_DIGIT_BASE == 255, "times_base");

// Bytes from the high digits of a group to its low ones.
template <size_t kStep>
constexpr size_t kToLow = PI_GROUP_COLUMNS *kStep;

// The dots of one register of a group's rows: of the whole group in dots[0], or of its halves in both. payload: the register's first byte.
template <typename T, size_t R, size_t kStep>
PI_INLINE void dots_of_codes(const unsigned char *payload, const int8_t *digits, Quads (&dots)[2][R]) {
  constexpr size_t kChains = T::kKind == BlockKind::kHalvesK ? 2 : 1, kQuads = PI_GROUP_COLUMNS / 4;
  constexpr size_t kFit = products_that_fit((1 << T::kBits) - 1), kAdded = 2 / kChains;  // additions to a chain in a turn of the loop
  static_assert(kFit >= kAdded, "one turn fits");
  Codes high[2] = {};
  if constexpr (T::kBits > 4) high[0] = high[1] = load_codes(payload + PI_HIGH_BITS);
  if constexpr (T::kBits > 5) high[1] = load_codes(payload + PI_HIGH_BITS + kPanelRows * 4);
  Products highs[2][R], lows[2][R];
  PI_UNROLL
  for (size_t r = 0; r < R; r++) highs[0][r] = highs[1][r] = lows[0][r] = lows[1][r] = products_zero();
  PI_UNROLL
  for (size_t v = 0; v < kQuads / 2; v++) {
    Codes both = load_codes(payload + v * (kPanelRows * 4));
    Codes low = codes_of_quad<T>(codes_and(both, codes_set1(0x0f)), high, v);
    Codes up = codes_of_quad<T>(codes_and(codes_shift<-4>(both), codes_set1(0x0f)), high, v + kQuads / 2);
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      const int8_t *first = digits + (v * kStep + r) * 4, *second = first + kQuads / 2 * kStep * 4;
      highs[0][r] = products_add(highs[0][r], low, load_inputs(first));
      lows[0][r] = products_add(lows[0][r], low, load_inputs(first + kToLow<kStep>));
      highs[kChains - 1][r] = products_add(highs[kChains - 1][r], up, load_inputs(second));
      lows[kChains - 1][r] = products_add(lows[kChains - 1][r], up, load_inputs(second + kToLow<kStep>));
    }
    if ((v + 1) * kAdded % (kFit - kFit % kAdded) != 0 && v + 1 < kQuads / 2) continue;
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      PI_UNROLL
      for (size_t chain = 0; chain < kChains; chain++) {
        dots[chain][r] = products_fold<PI_DIGIT_BASE>(products_fold<1>(dots[chain][r], lows[chain][r]), highs[chain][r]);
        highs[chain][r] = lows[chain][r] = products_zero();
      }
    }
  }
}

template <size_t R, size_t kStep>
PI_INLINE void dots_of_bytes(const unsigned char *payload, const int8_t *digits, Quads (&dots)[2][R]) {
  Quads highs[R];
  PI_UNROLL
  for (size_t r = 0; r < R; r++) highs[r] = quads_zero();
  PI_UNROLL
  for (size_t c = 0; c < PI_GROUP_COLUMNS / 4; c++) {
    Weights w = load_weights(reinterpret_cast<const int8_t *>(payload) + c * (kPanelRows * 4));
    PI_UNROLL
    for (size_t r = 0; r < R; r++) {
      const int8_t *at = digits + (c * kStep + r) * 4;
      highs[r] = dot4(highs[r], w, load_inputs(at));
      dots[0][r] = dot4(dots[0][r], w, load_inputs(at + kToLow<kStep>));
    }
  }
  PI_UNROLL
  for (size_t r = 0; r < R; r++) dots[0][r] = quads_add(dots[0][r], times_base(highs[r]));
}

// The float scales of one register of rows.
struct BlockScales {
  Reg d[2], minimum;
};

// lane: the first one of the register.
template <typename T>
PI_INLINE BlockScales scales_of_group(const unsigned char *block, size_t group, size_t lane) {
  BlockScales s;
  if constexpr (T::kKind == BlockKind::kLegacy) {
    s.d[0] = s.d[1] = load_f16(block + T::kPayload + 2 * lane);
    s.minimum = T::kMinimum ? load_f16(block + T::kPayload + PI_HALVES + 2 * lane) : s.d[0];
  } else if constexpr (T::kKind == BlockKind::kMinimaK) {
    s.d[0] = s.d[1] = mul(load_f16(block + 2 * lane), load_u8(block + PI_K_SCALES + group * PI_BYTES + lane));
    s.minimum = mul(load_f16(block + PI_HALVES + 2 * lane), load_u8(block + PI_K_MINIMA + group * PI_BYTES + lane));
  } else {
    Reg d = load_f16(block + 2 * lane);
    s.d[0] = mul(d, load_s8(block + PI_Q6K_SCALES + 2 * group * PI_BYTES + lane));
    s.d[1] = mul(d, load_s8(block + PI_Q6K_SCALES + (2 * group + 1) * PI_BYTES + lane));
    s.minimum = d;
  }
  return s;
}

// What a group adds to the sums, before the activation's scale. sum: of the activation's group.
template <typename T>
PI_INLINE Reg product_of_group(const BlockScales &s, Quads first, Quads second, float sum) {
  Reg product = mul(to_float(first), s.d[0]);
  if constexpr (T::kKind == BlockKind::kHalvesK) return add(product, mul(to_float(second), s.d[1]));
  if constexpr (!T::kMinimum) return product;
  Reg lowest = mul(set1(sum), s.minimum);
  return T::kKind == BlockKind::kMinimaK ? sub(product, lowest) : add(product, lowest);  // the K types store what is taken off
}

// What group g adds to R sums of one register of a panel's rows. block: the group's block in the panel; reg: the register's number.
template <typename T, size_t R, size_t kStep>
PI_INLINE void products_of_register(const BlocksOfPanels &b, size_t g, const unsigned char *block, size_t reg, Reg (&products)[R]) {
  size_t group = g % T::kGroups;
  const unsigned char *payload = block + T::kHeader + group * T::kPayload + reg * kLanes * 4;
  const int8_t *digits = b.digits + g * (PI_GROUP_DIGITS * kStep);
  const int32_t *sums = b.sums + g * 2 * kStep;
  Quads dots[2][R];
  // Not unrolled: compilers make vectors of these loops.
  float sum[R];
  int32_t starts[2][R];
  for (size_t r = 0; r < R; r++) {
    // unsigned: a missing row's sums may be anything
    constexpr uint32_t kOffset = static_cast<uint32_t>(T::kOffset);
    uint32_t first = static_cast<uint32_t>(sums[r]), second = static_cast<uint32_t>(sums[kStep + r]), both = first + second;
    sum[r] = static_cast<float>(static_cast<int32_t>(both));
    starts[0][r] = static_cast<int32_t>(T::kBits == 8 ? both : 0u - kOffset * (T::kKind == BlockKind::kHalvesK ? first : both));
    starts[1][r] = static_cast<int32_t>(0u - kOffset * second);
  }
  PI_UNROLL
  for (size_t r = 0; r < R; r++) {
    dots[0][r] = T::kBits == 8 ? dots_start(starts[0][r]) : quads_set1(starts[0][r]);
    dots[1][r] = quads_set1(starts[1][r]);
  }
  if constexpr (T::kBits == 8) {
    dots_of_bytes<R, kStep>(payload, digits, dots);
  } else {
    dots_of_codes<T, R, kStep>(payload, digits, dots);
  }
  BlockScales s = scales_of_group<T>(block, group, reg * kLanes);
  PI_UNROLL
  for (size_t r = 0; r < R; r++) products[r] = mul(product_of_group<T>(s, dots[0][r], dots[1][r], sum[r]), set1(b.scales[g * kStep + r]));
}

// Panels side by side, each read as a stream of its own, times one activation.
template <typename T>
void streams_of_type(const BlocksOfPanels &blocks, size_t panel_count) {
  const BlocksOfPanels b = blocks;  // a copy that no store can change
  Reg acc[kPanelsAtOnce][kPanelRegs];
  for (size_t p = 0; p < panel_count; p++)
    for (size_t k = 0; k < kPanelRegs; k++) acc[p][k] = zero();
  // the first lines of the next panels are asked for at the end of these
  constexpr size_t kShare = T::kBytes / T::kGroups, kNear = kPrefetchLines * 64 / kShare + 1;
  for (size_t g = 0; g < b.groups; g++) {
    const unsigned char *block = b.panels + g / T::kGroups * T::kBytes;
    size_t ahead = kNear * kShare + (b.groups - g > kNear ? 0 : (panel_count - 1) * b.panel_bytes);
    for (size_t p = 0; p < panel_count; p++, block += b.panel_bytes) {
      const int8_t *share = reinterpret_cast<const int8_t *>(block) + g % T::kGroups * kShare;
      PI_UNROLL
      for (size_t line = 0; line < kShare; line += 64) prefetch_bytes(share + line, ahead);
      for (size_t k = 0; k < kPanelRegs; k++) {
        Reg products[1];
        products_of_register<T, 1, 1>(b, g, block, k, products);
        acc[p][k] = add(acc[p][k], products[0]);
      }
    }
  }
  for (size_t p = 0; p < panel_count; p++)
    for (size_t k = 0; k < kPanelRegs; k++) store(b.out + p * kPanelRows + k * kLanes, acc[p][k]);
}

template <typename T>
void matvec_of_type(BlocksOfPanels b, size_t panel_count) {
  for (size_t count; panel_count > 0; panel_count -= count) {
    count = panel_count < kPanelsAtOnce ? panel_count : kPanelsAtOnce;
    streams_of_type<T>(b, count);
    b.panels += count * b.panel_bytes;
    b.out += count * kPanelRows;
  }
}

// Up to R activations, of a block of kRowBlock, times one register of a panel's rows.
template <typename T, size_t R>
PI_INLINE void rows_of_register(const BlocksOfPanels &b, size_t reg) {
  Reg acc[R];
  PI_UNROLL
  for (size_t r = 0; r < R; r++) acc[r] = zero();
  for (size_t g = 0; g < b.groups; g++) {
    Reg products[R];
    products_of_register<T, R, kRowBlock>(b, g, b.panels + g / T::kGroups * T::kBytes, reg, products);
    PI_UNROLL
    for (size_t r = 0; r < R; r++) acc[r] = add(acc[r], products[r]);
  }
  PI_UNROLL
  for (size_t r = 0; r < R; r++)
    if (r < b.rows) store(b.out + r * b.out_stride + reg * kLanes, acc[r]);
}

template <typename T, size_t R>
void rows_of_type(const BlocksOfPanels &blocks, size_t panel_count) {
  BlocksOfPanels b = blocks;
  for (; panel_count > 0; panel_count--) {
    for (size_t reg = 0; reg < kPanelRegs; reg++) rows_of_register<T, R>(b, reg);
    b.panels += b.panel_bytes;
    b.out += kPanelRows;
  }
}

// b: the shape, with all rows, whose digits, scales and sums are in blocks of kRowBlock.
template <typename T>
void matmul_of_type(const BlocksOfPanels &b, size_t panel_count) {
  constexpr size_t kRows = kMaxRowsBlocks;
  static_assert(kRowBlock % kRows == 0, "no part of rows lies in two blocks");
  // a panel without groups has no bytes: one more does not matter
  size_t fit = kGroupBytes / (b.panel_bytes + 1), most = fit < 1 ? 1 : fit;
  for (size_t panel = 0, count; panel < panel_count; panel += count) {
    count = panel_count - panel < most ? panel_count - panel : most;
    for (size_t row = 0; row < b.rows; row += kRows) {
      size_t lane = row % kRowBlock, block = row / kRowBlock;
      BlocksOfPanels part = b;
      part.panels = b.panels + panel * b.panel_bytes;
      part.digits = b.digits + (block * b.groups * (PI_GROUP_DIGITS / 4) * kRowBlock + lane) * 4;
      part.scales = b.scales + block * b.groups * kRowBlock + lane;
      part.sums = b.sums + block * b.groups * 2 * kRowBlock + lane;
      part.out = b.out + row * b.out_stride + panel * kPanelRows;
      part.rows = b.rows - row;
      rows_of_type<T, kRows>(part, count);
    }
  }
}

// One matrix times one activation, or times some.
template <typename T>
void multiply_of_type(BlocksOfPanels b, size_t panel_count, bool one) {
  b.panel_bytes = b.groups / T::kGroups * T::kBytes;
  if (one) {
    matvec_of_type<T>(b, panel_count);
  } else {
    matmul_of_type<T>(b, panel_count);
  }
}

void multiply_blocks(ElementType type, const BlocksOfPanels &b, size_t panel_count, bool one) {
  switch (type) {
    case ElementType::kQ4_0: return multiply_of_type<BlockType<4, 8, false, BlockKind::kLegacy>>(b, panel_count, one);
    case ElementType::kQ4_1: return multiply_of_type<BlockType<4, 0, true, BlockKind::kLegacy>>(b, panel_count, one);
    case ElementType::kQ5_0: return multiply_of_type<BlockType<5, 16, false, BlockKind::kLegacy>>(b, panel_count, one);
    case ElementType::kQ5_1: return multiply_of_type<BlockType<5, 0, true, BlockKind::kLegacy>>(b, panel_count, one);
    case ElementType::kQ4_K: return multiply_of_type<BlockType<4, 0, true, BlockKind::kMinimaK>>(b, panel_count, one);
    case ElementType::kQ5_K: return multiply_of_type<BlockType<5, 0, true, BlockKind::kMinimaK>>(b, panel_count, one);
    case ElementType::kQ6_K: return multiply_of_type<BlockType<6, 32, false, BlockKind::kHalvesK>>(b, panel_count, one);
    default: return multiply_of_type<BlockType<8, 0, false, BlockKind::kLegacy>>(b, panel_count, one);
  }
}

void matvec_blocks(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count, const int8_t *digits,
                   const float *scales, const int32_t *sums, float *out) {
  multiply_blocks(type, BlocksOfPanels{panels, 0, group_count, digits, scales, sums, out, 0, 1}, panel_count, true);
}

void matmul_blocks(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count, const int8_t *digits_blocks,
                   const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out, size_t out_stride) {
  multiply_blocks(type, BlocksOfPanels{panels, 0, group_count, digits_blocks, scales_blocks, sums_blocks, out, out_stride, row_count},
                  panel_count, false);
}

// Quantizes half a group; returns the sum of the q.
PI_INLINE int32_t quantize_half(const float *x, float scale, int8_t *high, int8_t *low) {
  constexpr size_t kHalf = PI_GROUP_COLUMNS / 2;
  if (!(scale > 0.0f)) {
    for (size_t i = 0; i < kHalf; i++) high[i] = low[i] = 0;
    return 0;
  }
  Quads sum = quads_zero();
  for (size_t i = 0; i < kHalf; i += kLanes) {
    Quads whole = quantize_register(x + i, set1(scale), set1(-float{PI_MOST_Q}));
    // A low digit of 127 leaves the quotient 1/510 from a half: its rounding cannot reach that.
    Quads upper = round_away(mul(to_float(whole), set1(1.0f / PI_DIGIT_BASE)));
    store_bytes(high + i, upper);
    store_bytes(low + i, quads_sub(whole, times_base(upper)));
    sum = quads_add(sum, whole);
  }
  return sum_of_lanes(sum);
}

void quantize_blocks(const float *x, size_t group_count, int8_t *digits, float *scales, int32_t *sums) {
  constexpr size_t kHalf = PI_GROUP_COLUMNS / 2;
  for (size_t g = 0; g < group_count; g++, x += 2 * kHalf, digits += PI_GROUP_DIGITS, sums += 2) {
    int8_t *low = digits + PI_GROUP_COLUMNS;
    scales[g] = largest_magnitude(x, 2 * kHalf) / float{PI_MOST_Q};
    sums[0] = quantize_half(x, scales[g], digits, low);
    sums[1] = quantize_half(x + kHalf, scales[g], digits + kHalf, low + kHalf);
  }
}

// ---- 16-bit weights ----

struct F16 {
  using Stored = uint16_t;
  static PI_INLINE_MEMBER Reg load(const uint16_t *p) { return load_f16(reinterpret_cast<const unsigned char *>(p)); }
};

struct BF16 {
  using Stored = uint16_t;
  static PI_INLINE_MEMBER Reg load(const uint16_t *p) { return load_bf16(reinterpret_cast<const unsigned char *>(p)); }
};

void matvec_half(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x, float *out) {
  if (type == ElementType::kF16) {
    all_panels<1, 1>(Block<F16>{panels, n * kPanelRows, n, x, out, 0, false}, panel_count);
  } else {
    all_panels<1, 1>(Block<BF16>{panels, n * kPanelRows, n, x, out, 0, false}, panel_count);
  }
}

// Many rows use a weight: it is widened once for all of them, some columns at a time.
template <typename E>
void matmul_widened(const uint16_t *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count, float *out,
                    size_t out_stride) {
  constexpr size_t kColumns = 128;
  alignas(64) float wide[kColumns * kPanelRows];
  for (size_t panel = 0; panel < panel_count; panel++) {
    size_t column = 0;
    do {  // once even for matrices without columns, whose sums are 0
      size_t columns = n - column < kColumns ? n - column : kColumns;
      const uint16_t *from = panels + (panel * n + column) * kPanelRows;
      for (size_t i = 0; i < columns * kPanelRows; i += kLanes) store(wide + i, E::load(from + i));
      Block<F32> b = {wide, 0, columns, nullptr, out + panel * kPanelRows, out_stride, column > 0};
      rows_of_group(b, 1, n, x_blocks + column * kRowBlock, row_count);
      column += columns;
    } while (column < n);
  }
}

void matmul_half(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count,
                 float *out, size_t out_stride) {
  if (type == ElementType::kF16) {
    matmul_widened<F16>(panels, panel_count, n, x_blocks, row_count, out, out_stride);
  } else {
    matmul_widened<BF16>(panels, panel_count, n, x_blocks, row_count, out, out_stride);
  }
}
