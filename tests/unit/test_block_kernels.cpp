// The kernels of the 16-bit and block types: every ISA against the scalar ones, bit for bit, and the scalar ones against exact sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernels/kernels.h"
#include "support/kernel_cases.h"

namespace proofinfer {
namespace {

using namespace proofinfer_test;

using Halves = proofinfer_test::Block<uint16_t>;
using Packed = proofinfer_test::Block<unsigned char>;

constexpr ElementType kHalfTypes[] = {ElementType::kF16, ElementType::kBF16};
constexpr ElementType kBlockTypes[] = {ElementType::kQ8_0, ElementType::kQ4_0, ElementType::kQ4_1, ElementType::kQ5_0,
                                       ElementType::kQ5_1, ElementType::kQ4_K, ElementType::kQ5_K, ElementType::kQ6_K};
const int kCasesOfType = kCases / 20;

// Groups of a block of the type.
size_t groups_of(ElementType type) { return element_block_columns(type) / 32; }

// Where a block of a file keeps its float16 numbers.
std::vector<size_t> halves_of(ElementType type) {
  switch (type) {
    case ElementType::kQ6_K: return {208};
    case ElementType::kQ8_0:
    case ElementType::kQ4_0:
    case ElementType::kQ5_0: return {0};
    default: return {0, 2};
  }
}

uint16_t half_of(Draws &random, Values values) {
  static const uint16_t kSpecial[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfdff};
  if (values == Values::kSpecial && random.below(4) == 0) return kSpecial[random.below(sizeof kSpecial / sizeof *kSpecial)];
  uint16_t half = static_cast<uint16_t>(random.word());
  if (values == Values::kOrdinary) return static_cast<uint16_t>((half & 0x83ff) | (random.between(5, 17) << 10));
  return (half & 0x7c00) == 0x7c00 ? static_cast<uint16_t>(half & 0xbfff) : half;  // any finite number
}

Halves halves(Draws &random, size_t count, Values values, bool skew) {
  Halves all(count, skew);
  for (size_t i = 0; i < count; i++) all[i] = half_of(random, values);
  return all;
}

// Blocks of a file: any bytes, scales as drawn.
Packed file_rows(Draws &random, ElementType type, size_t block_count, Values values, bool skew) {
  size_t bytes = element_block_bytes(type);
  Packed rows(block_count * bytes, skew);
  for (size_t i = 0; i < rows.count(); i++) rows[i] = static_cast<unsigned char>(random.word());
  for (size_t b = 0; b < block_count; b++)
    for (size_t place : halves_of(type)) {
      uint16_t half = half_of(random, values);
      rows[b * bytes + place] = static_cast<unsigned char>(half & 255);
      rows[b * bytes + place + 1] = static_cast<unsigned char>(half >> 8);
    }
  return rows;
}

Packed block_panels(Draws &random, ElementType type, size_t panel_count, size_t group_count, Values values) {
  size_t panel_bytes = element_panel_bytes(type, group_count * 32);
  Packed panels(panel_count * panel_bytes, false);
  for (size_t p = 0; p < panel_count; p++) {
    Packed rows = file_rows(random, type, 16 * (group_count / groups_of(type)), values, false);
    kernels_at(0)->pack_blocks(type, rows.data(), 16, group_count, 0, panels.data() + p * panel_bytes);
  }
  return panels;
}

// The group counts that a type can have, the K types' in whole blocks.
size_t group_count_of(Draws &random, ElementType type) {
  return groups_of(type) == 1 ? random.between(0, 5) : groups_of(type) * random.between(0, 2);
}

// The digits of a quantized activation, [groups][2][32]: often one whose digits are all extreme.
Bytes quantized(Draws &random, size_t group_count, bool skew) {
  Bytes digits(group_count * 64, skew);
  bool extreme = random.below(4) == 0;
  for (size_t i = 0; i < digits.count(); i++)
    digits[i] = static_cast<int8_t>(extreme ? (random.below(8) ? 127 : -127) : int(random.below(255)) - 127);
  return digits;
}

// The number that stands in column c, counted from the activation's first.
int32_t number_at(const Bytes &digits, size_t c) {
  size_t at = c / 32 * 64 + c % 32;
  return 255 * digits[at] + digits[at + 32];
}

Ints half_sums(const Bytes &digits, size_t group_count, bool skew) {
  Ints sums(group_count * 2, skew);
  for (size_t h = 0; h < sums.count(); h++) {
    sums[h] = 0;
    for (size_t c = 0; c < 16; c++) sums[h] += number_at(digits, h * 16 + c);
  }
  return sums;
}

// An activation among those of `digits`, [blocks][groups][2][8][8][4], and their sums, [blocks][groups][2][8].
void place_row(const Bytes &one, size_t row, size_t group_count, Bytes *digits, Ints *sums) {
  Ints own = half_sums(one, group_count, false);
  for (size_t g = 0; g < group_count; g++) {
    size_t at = row / 8 * group_count + g;
    for (size_t half = 0; half < 2; half++) (*sums)[(at * 2 + half) * 8 + row % 8] = own[g * 2 + half];
    for (size_t c = 0; c < 64; c++) (*digits)[(at * 16 + c / 4) * 32 + row % 8 * 4 + c % 4] = one[g * 64 + c];
  }
}

// A weight by the definition of its type in GGUF files: column c of a block. All products but the last of Q6_K are exact.
float weight_by_definition(ElementType type, const unsigned char *block, size_t c) {
  auto half = [block](size_t at) { return widen_f16(static_cast<uint16_t>(block[at] | block[at + 1] << 8)); };
  auto nibble = [block](size_t at, bool high) { return int(block[at]) >> (high ? 4 : 0) & 15; };
  const float d = half(type == ElementType::kQ6_K ? 208 : 0);
  switch (type) {
    case ElementType::kQ8_0: return d * float(static_cast<int8_t>(block[2 + c]));
    case ElementType::kQ4_0: return d * float(nibble(2 + c % 16, c >= 16) - 8);
    case ElementType::kQ4_1: return d * float(nibble(4 + c % 16, c >= 16)) + half(2);
    case ElementType::kQ5_0: return d * float((nibble(6 + c % 16, c >= 16) | (block[2 + c / 8] >> c % 8 & 1) << 4) - 16);
    case ElementType::kQ5_1: return d * float(nibble(8 + c % 16, c >= 16) | (block[4 + c / 8] >> c % 8 & 1) << 4) + half(2);
    case ElementType::kQ6_K: {
      const size_t part = c % 128 / 32, low = c / 128 * 64 + part % 2 * 32 + c % 32, high = 128 + c / 128 * 32 + c % 32;
      const int q = (nibble(low, part >= 2) | (block[high] >> 2 * part & 3) << 4) - 32;
      return d * float(static_cast<int8_t>(block[192 + c / 16])) * float(q);
    }
    default: break;
  }
  // Q4_K and Q5_K: scales and minima of six bits, the first four of each in a byte each, the others in nibbles and upper bits.
  const size_t g = c / 32, nibbles = type == ElementType::kQ5_K ? 48 : 16;
  const unsigned char *packed = block + 4;
  const int scale = g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4;
  const int minimum = g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4;
  const int fifth = type == ElementType::kQ5_K ? (block[16 + c % 32] >> g & 1) << 4 : 0;
  return d * float(scale) * float(nibble(nibbles + g / 2 * 32 + c % 32, g % 2 != 0) | fifth) - half(2) * float(minimum);
}

// Of every set but the scalar one.
class VectorKernelsTest : public KernelsTest {};

TEST_P(VectorKernelsTest, matvec_half_equals_scalar) {
  for (ElementType type : kHalfTypes)
    for (int i = 0; i < kCases / 4; i++) {
      size_t panel_count = random_.between(0, 20), n = i % 50 == 0 ? random_.between(0, 3) : random_.between(1, 70);
      Halves panels = halves(random_, panel_count * n * 16, values(i), false);
      Floats x = inputs(random_, n, values(i), i & 1), got = outputs(panel_count * 16, i & 1), expected(got);
      scalar_->matvec_half(type, panels.data(), panel_count, n, x.data(), expected.data());
      kernels_->matvec_half(type, panels.data(), panel_count, n, x.data(), got.data());
      ASSERT_TRUE(same(got, expected)) << element_name(type) << ", " << shape({panel_count, n});
    }
}

TEST_P(VectorKernelsTest, matmul_half_equals_scalar) {
  for (ElementType type : kHalfTypes)
    for (int i = 0; i < kCases / 8; i++) {
      size_t panel_count = random_.between(0, 14), row_count = random_.between(0, 20), stride = panel_count * 16 + random_.below(3);
      size_t n = i == 100 ? 2049 : i % 50 == 0 ? random_.between(0, 3) : random_.between(1, 50);
      Halves panels = halves(random_, panel_count * n * 16, values(i), false);
      Floats x = inputs(random_, (row_count + 7) / 8 * n * 8, values(i), i & 1), got = outputs(row_count * stride, i & 1), expected(got);
      scalar_->matmul_half(type, panels.data(), panel_count, n, x.data(), row_count, expected.data(), stride);
      kernels_->matmul_half(type, panels.data(), panel_count, n, x.data(), row_count, got.data(), stride);
      ASSERT_TRUE(same(got, expected)) << element_name(type) << ", " << shape({panel_count, n, row_count, stride});
    }
}

TEST_P(KernelsTest, half_weights_are_widened_exactly) {
  for (ElementType type : kHalfTypes) {
    Halves panels(65536, false);
    for (size_t i = 0; i < 65536; i++) panels[i] = static_cast<uint16_t>(i);
    float one = 1.0f;
    Floats got(65536, false), expected(65536, false);
    kernels_->matvec_half(type, panels.data(), 4096, 1, &one, got.data());
    for (size_t i = 0; i < 65536; i++) {
      int exponent = int(i >> 10 & 31), sign = i & 0x8000 ? -1 : 1;
      float fraction = static_cast<float>(i & 1023);
      float f16 = exponent == 31  ? (i & 1023 ? NAN : INFINITY)
                  : exponent == 0 ? std::ldexp(fraction, -24)
                                  : std::ldexp(1024 + fraction, exponent - 25);
      float weight = type == ElementType::kF16 ? static_cast<float>(sign) * f16 : float_of(static_cast<uint32_t>(i) << 16);
      expected[i] = 0.0f + weight;
    }
    ASSERT_TRUE(same(got, expected)) << element_name(type);
  }
}

TEST_P(VectorKernelsTest, pack_half_equals_scalar) {
  for (int i = 0; i < kCases / 2; i++) {
    size_t row_count = i % 2 ? 16 : random_.between(1, 16), n = random_.between(1, 70), first = random_.between(0, 16 - row_count);
    Halves rows = halves(random_, row_count * n, values(i), i & 1), got = halves(random_, n * 16, values(i), false), expected(got);
    scalar_->pack_half(rows.data(), row_count, n, expected.data() + first);
    kernels_->pack_half(rows.data(), row_count, n, got.data() + first);
    ASSERT_TRUE(same_integers(got, expected)) << shape({row_count, n, first});
  }
}

TEST_P(VectorKernelsTest, quantize_blocks_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t groups = random_.between(0, 6);
    Floats x = inputs(random_, groups * 32, values(i), i & 1);
    if (i % 4 == 3)  // most groups of special values have a NaN: make some without
      for (size_t g = 0; g < groups; g += 2)
        for (size_t j = 0; j < 32; j++) x[g * 32 + j] = random_.wide();
    Bytes got(groups * 64, i & 1), expected(groups * 64, i & 1);
    Floats got_scales = outputs(groups, i & 2), expected_scales(got_scales);
    Ints got_sums(groups * 2, i & 1), expected_sums(groups * 2, i & 1);
    scalar_->quantize_blocks(x.data(), groups, expected.data(), expected_scales.data(), expected_sums.data());
    kernels_->quantize_blocks(x.data(), groups, got.data(), got_scales.data(), got_sums.data());
    ASSERT_TRUE(same_integers(got, expected)) << shape({groups});
    ASSERT_TRUE(same(got_scales, expected_scales)) << shape({groups});
    ASSERT_TRUE(same_integers(got_sums, expected_sums)) << shape({groups});
    ASSERT_TRUE(same_integers(got_sums, half_sums(got, groups, false))) << shape({groups});
  }
}

// The largest of a group being 32512, its scale is 1 and every number stands for itself; halves are rounded away from zero.
TEST_P(KernelsTest, quantize_blocks_gives_every_number_its_digits) {
  constexpr int kMost = 32512;
  for (float rest : {0.0f, 0.5f, 0.49609375f, -0.49609375f}) {
    for (int first = -kMost; first <= kMost; first += 31) {
      Floats x(32, false), scale(1, false);
      Bytes digits(64, false);
      Ints sums(2, false);
      x[0] = kMost;
      for (int c = 1; c < 32; c++) {
        int q = std::min(first + c - 1, kMost);
        x[c] = static_cast<float>(q) + (q > 0 ? rest : -rest);
        if (q == kMost || q == -kMost || q == 0) x[c] = static_cast<float>(q);
      }
      kernels_->quantize_blocks(x.data(), 1, digits.data(), scale.data(), sums.data());
      ASSERT_EQ(scale[0], 1.0f);
      for (int c = 0; c < 64; c++) ASSERT_GE(digits[c], -127);
      for (int c = 0; c < 32; c++) ASSERT_EQ(number_at(digits, c), std::lround(x[c])) << x[c];
      Ints expected = half_sums(digits, 1, false);
      ASSERT_TRUE(same_integers(sums, expected));
    }
  }
}

TEST_P(VectorKernelsTest, matvec_blocks_equals_scalar) {
  for (ElementType type : kBlockTypes)
    for (int i = 0; i < kCasesOfType; i++) {
      size_t panel_count = random_.between(0, 14), groups = group_count_of(random_, type);
      Packed panels = block_panels(random_, type, panel_count, groups, values(i));
      Bytes q = quantized(random_, groups, i & 1);
      Floats scales = inputs(random_, groups, values(i), i & 1);
      Ints sums = half_sums(q, groups, i & 1);
      Floats got = outputs(panel_count * 16, i & 1), expected(got);
      scalar_->matvec_blocks(type, panels.data(), panel_count, groups, q.data(), scales.data(), sums.data(), expected.data());
      kernels_->matvec_blocks(type, panels.data(), panel_count, groups, q.data(), scales.data(), sums.data(), got.data());
      ASSERT_TRUE(same(got, expected)) << element_name(type) << ", " << shape({panel_count, groups});
    }
}

// Any lane may be missing a row and then holds anything.
TEST_P(VectorKernelsTest, matmul_blocks_equals_scalar) {
  for (ElementType type : kBlockTypes)
    for (int i = 0; i < kCasesOfType; i++) {
      size_t panel_count = random_.between(0, 8), groups = group_count_of(random_, type);
      size_t row_count = random_.between(0, 20), blocks = (row_count + 7) / 8, stride = panel_count * 16 + random_.below(3);
      Packed panels = block_panels(random_, type, panel_count, groups, values(i));
      Bytes q(blocks * groups * 512, i & 1);
      Floats scales = inputs(random_, blocks * groups * 8, values(i), i & 1);
      Ints sums(blocks * groups * 16, i & 1);
      for (size_t row = 0; row < blocks * 8; row++) place_row(quantized(random_, groups, false), row, groups, &q, &sums);
      Floats got = outputs(row_count * stride, i & 1), expected(got);
      scalar_->matmul_blocks(type, panels.data(), panel_count, groups, q.data(), scales.data(), sums.data(), row_count, expected.data(),
                             stride);
      kernels_->matmul_blocks(type, panels.data(), panel_count, groups, q.data(), scales.data(), sums.data(), row_count, got.data(),
                              stride);
      ASSERT_TRUE(same(got, expected)) << element_name(type) << ", " << shape({panel_count, groups, row_count, stride});
    }
}

// Many rows and panels: more than a kernel keeps in its cache at a time.
TEST_P(VectorKernelsTest, matmul_blocks_equals_matvec_blocks_where_panels_are_cut) {
  constexpr size_t kPanels = 61, kGroups = 24, kRows = 37, kBlocks = 5;
  for (ElementType type : kBlockTypes) {
    Packed panels = block_panels(random_, type, kPanels, kGroups, Values::kOrdinary);
    Bytes q(kBlocks * kGroups * 512, false);
    Floats scales(kBlocks * kGroups * 8, false), got = outputs(kRows * kPanels * 16, false), expected(got);
    Ints sums(kBlocks * kGroups * 16, false);
    for (size_t row = 0; row < kRows; row++) {
      Bytes one = quantized(random_, kGroups, false);
      Ints one_sums = half_sums(one, kGroups, false);
      Floats one_scales = inputs(random_, kGroups, Values::kOrdinary, false);
      for (size_t g = 0; g < kGroups; g++) scales[(row / 8 * kGroups + g) * 8 + row % 8] = one_scales[g];
      place_row(one, row, kGroups, &q, &sums);
      kernels_->matvec_blocks(type, panels.data(), kPanels, kGroups, one.data(), one_scales.data(), one_sums.data(),
                              expected.data() + row * kPanels * 16);
    }
    kernels_->matmul_blocks(type, panels.data(), kPanels, kGroups, q.data(), scales.data(), sums.data(), kRows, got.data(), kPanels * 16);
    ASSERT_TRUE(same(got, expected)) << element_name(type);
  }
}

// With scales that are powers of two and small numbers no operation rounds: the sums are those of the dequantized rows.
TEST_P(KernelsTest, matvec_blocks_is_exact_where_nothing_rounds) {
  for (ElementType type : kBlockTypes)
    for (int i = 0; i < kCasesOfType / 4; i++) {
      size_t groups = groups_of(type) * random_.between(1, 2), bytes = element_block_bytes(type), blocks = groups / groups_of(type);
      Packed rows = file_rows(random_, type, 16 * blocks, Values::kOrdinary, i & 1), panel(element_panel_bytes(type, groups * 32), false);
      for (size_t b = 0; b < 16 * blocks; b++) {
        for (size_t place : halves_of(type)) {
          rows[b * bytes + place] = 0;
          size_t exponent = groups_of(type) == 1 ? random_.between(13, 17) : 15;
          rows[b * bytes + place + 1] = static_cast<unsigned char>((exponent << 2) | (random_.below(2) << 7));
        }
      }
      kernels_->pack_blocks(type, rows.data(), 16, groups, 0, panel.data());
      Bytes q(groups * 64, false);
      for (size_t c = 0; c < q.count(); c++) q[c] = static_cast<int8_t>(c % 64 < 32 ? 0 : int(random_.below(3)) - 1);
      for (size_t g = 0; g < groups; g++) q[g * 64 + random_.below(32)] = random_.below(2) ? 1 : -1;
      Floats scales(groups, false), got = outputs(16, false), row(groups * 32, false);
      for (size_t g = 0; g < groups; g++) scales[g] = random_.below(2) ? 1.0f : -0.5f;
      Ints sums = half_sums(q, groups, false);
      kernels_->matvec_blocks(type, panel.data(), 1, groups, q.data(), scales.data(), sums.data(), got.data());
      for (size_t r = 0; r < 16; r++) {
        dequantize_row(type, panel.data(), r, groups * 32, row.data());
        double sum = 0;
        for (size_t c = 0; c < groups * 32; c++) sum += double(row[c]) * number_at(q, c) * double(scales[c / 32]);
        ASSERT_EQ(static_cast<double>(got[r]), sum) << element_name(type) << ", row " << r << ", " << shape({groups});
      }
    }
}

TEST_P(KernelsTest, packed_weights_are_those_of_the_types_definition) {
  for (ElementType type : kBlockTypes)
    for (int i = 0; i < kCasesOfType; i++) {
      const size_t groups = groups_of(type) * random_.between(1, 2), columns = element_block_columns(type), blocks = groups * 32 / columns;
      const Packed rows = file_rows(random_, type, 16 * blocks, Values::kOrdinary, i & 1);
      Packed panel(element_panel_bytes(type, groups * 32), false);
      kernels_->pack_blocks(type, rows.data(), 16, groups, 0, panel.data());
      Floats row(groups * 32, false);
      for (size_t r = 0; r < 16; r++) {
        dequantize_row(type, panel.data(), r, groups * 32, row.data());
        for (size_t c = 0; c < groups * 32; c++) {
          const unsigned char *block = rows.data() + (r * blocks + c / columns) * element_block_bytes(type);
          ASSERT_EQ(row[c], weight_by_definition(type, block, c % columns)) << element_name(type) << ", row " << r << ", column " << c;
        }
      }
    }
}

// A panel filled a part at a time is the panel filled at once, and lanes that are not named stay as they are.
TEST_P(KernelsTest, pack_blocks_fills_the_lanes_named_alone) {
  for (ElementType type : kBlockTypes)
    for (int i = 0; i < kCasesOfType / 4; i++) {
      size_t groups = groups_of(type) * random_.between(1, 3), row_bytes = groups / groups_of(type) * element_block_bytes(type);
      size_t lane = random_.below(16), count = random_.between(1, 16 - lane);
      Packed rows = file_rows(random_, type, 16 * (groups / groups_of(type)), values(i), i & 1);
      Packed whole(element_panel_bytes(type, groups * 32), false), parts(whole.count(), false);
      for (size_t j = 0; j < parts.count(); j++) parts[j] = static_cast<unsigned char>(j * 31);
      kernels_->pack_blocks(type, rows.data(), 16, groups, 0, whole.data());
      kernels_->pack_blocks(type, rows.data() + lane * row_bytes, count, groups, lane, parts.data());
      Packed before(parts);
      for (size_t first : {size_t(0), lane + count}) {
        size_t end = first == 0 ? lane : 16;
        if (first < end) kernels_->pack_blocks(type, rows.data() + first * row_bytes, end - first, groups, first, parts.data());
      }
      ASSERT_TRUE(same_integers(parts, whole)) << element_name(type) << ", " << shape({groups, lane, count});
      Floats got(groups * 32, false), expected(groups * 32, false);
      for (size_t r = lane; r < lane + count; r++) {
        dequantize_row(type, before.data(), r, groups * 32, got.data());
        dequantize_row(type, whole.data(), r, groups * 32, expected.data());
        ASSERT_TRUE(same(got, expected)) << element_name(type) << ", " << shape({groups, lane, count, r});
      }
    }
}

// Two panels that differ in every byte of every 16-bit number, and in no other.
TEST_P(KernelsTest, halves_stand_where_a_fingerprint_takes_them_to_be) {
  for (ElementType type : kBlockTypes) {
    size_t groups = 3 * groups_of(type), block_bytes = element_block_bytes(type);
    Packed rows = file_rows(random_, type, 16 * 3, Values::kOrdinary, false);
    Packed one(element_panel_bytes(type, groups * 32), false), other(one.count(), false);
    kernels_->pack_blocks(type, rows.data(), 16, groups, 0, one.data());
    for (size_t block = 0; block < 16 * 3; block++)
      for (size_t place : halves_of(type))
        for (size_t byte : {place, place + 1}) rows[block * block_bytes + byte] ^= 0xff;
    kernels_->pack_blocks(type, rows.data(), 16, groups, 0, other.data());
    for (size_t at = 0; at < one.count(); at++)
      ASSERT_EQ(one[at] != other[at], element_halves_at(type, at / 8 * 8)) << element_name(type) << ", byte " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, KernelsTest, testing::Range(size_t(0), kernels_count()), name_of_kernels);
INSTANTIATE_TEST_SUITE_P(Isa, VectorKernelsTest, testing::Range(size_t(1), kernels_count()), name_of_kernels);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VectorKernelsTest);

// 16 rows of a panel take little more than 16 rows of a file.
TEST(ElementTypes, panels_are_of_the_size_class_of_files) {
  for (ElementType type : kBlockTypes) {
    size_t columns = 8 * element_block_columns(type), file = 16 * 8 * element_block_bytes(type);
    EXPECT_GE(element_panel_bytes(type, columns), file) << element_name(type);
    EXPECT_LE(element_panel_bytes(type, columns), file + file / 32) << element_name(type);
    EXPECT_EQ(element_panel_bytes(type, columns) % 32, 0u) << element_name(type);
  }
  for (ElementType type : kHalfTypes) EXPECT_EQ(element_panel_bytes(type, 7), 7u * 32) << element_name(type);
  EXPECT_EQ(element_panel_bytes(ElementType::kF32, 7), 7u * 64);
}

}  // namespace
}  // namespace proofinfer
