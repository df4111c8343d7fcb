// Every kernel of every ISA against the scalar kernel, bit for bit, over random shapes and hostile values, in allocations of the exact size.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "proved/pack_index.h"
#include "support/kernel_cases.h"

namespace proofinfer {
namespace {

using namespace proofinfer_test;

TEST_P(KernelsTest, matvec_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t panel_count = random_.between(0, 20), n = i % 50 == 0 ? random_.between(0, 3) : random_.between(1, 70);
    Floats panels = inputs(random_, panel_count * n * 16, values(i), false), x = inputs(random_, n, values(i), i & 1);
    Floats got = outputs(panel_count * 16, i & 1), expected(got);
    scalar_->matvec_f32(panels.data(), panel_count, n, x.data(), expected.data());
    kernels_->matvec_f32(panels.data(), panel_count, n, x.data(), got.data());
    ASSERT_TRUE(same(got, expected)) << shape({panel_count, n});
  }
}

void compare_matmul(const Kernels *kernels, const Kernels *scalar, Draws &random, size_t panel_count, size_t n, size_t row_count,
                    Values values, bool skew) {
  size_t stride = panel_count * 16 + random.below(3);
  Floats panels = inputs(random, panel_count * n * 16, values, false);
  Floats x = inputs(random, (row_count + 7) / 8 * n * 8, values, skew);
  Floats got = outputs(row_count * stride, skew), expected(got);
  scalar->matmul_f32(panels.data(), panel_count, n, x.data(), row_count, expected.data(), stride);
  kernels->matmul_f32(panels.data(), panel_count, n, x.data(), row_count, got.data(), stride);
  ASSERT_TRUE(same(got, expected)) << shape({panel_count, n, row_count, stride});
}

TEST_P(KernelsTest, matmul_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t panel_count = random_.between(0, 14), n = i % 50 == 0 ? random_.between(0, 3) : random_.between(1, 50);
    compare_matmul(kernels_, scalar_, random_, panel_count, n, random_.between(0, 27), values(i), i & 1);
    if (HasFatalFailure()) return;
  }
}

TEST_P(KernelsTest, matmul_equals_scalar_where_columns_are_cut) {
  for (size_t n : {2047u, 2048u, 2049u, 4097u, 5000u}) {
    compare_matmul(kernels_, scalar_, random_, 7, n, 19, Values::kOrdinary, false);
    compare_matmul(kernels_, scalar_, random_, 4, n, 2, Values::kSpecial, true);
    if (HasFatalFailure()) return;
  }
}

TEST_P(KernelsTest, pack_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t row_count = i % 2 ? 16 : random_.between(1, 16), n = random_.between(1, 70), first = random_.between(0, 16 - row_count);
    Floats rows = inputs(random_, row_count * n, values(i), i & 1);
    Floats got = outputs(n * 16, false), expected(got);
    scalar_->pack_f32(rows.data(), row_count, n, expected.data() + first);
    kernels_->pack_f32(rows.data(), row_count, n, got.data() + first);
    ASSERT_TRUE(same(got, expected)) << shape({row_count, n, first});
  }
}

TEST_P(KernelsTest, rmsnorm_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t row_count = random_.between(0, 19), n = random_.between(1, 70), stride = n + random_.below(5);
    Floats x = inputs(random_, row_count * stride, values(i), i & 1), weight = inputs(random_, n, values(i), i & 1);
    float epsilon = i % 2 ? 1e-5f : random_.draw(values(i));
    Floats got = outputs(row_count * stride, i & 2), expected(got);
    scalar_->rmsnorm_f32(x.data(), row_count, stride, weight.data(), n, epsilon, expected.data(), stride);
    kernels_->rmsnorm_f32(x.data(), row_count, stride, weight.data(), n, epsilon, got.data(), stride);
    ASSERT_TRUE(same(got, expected)) << shape({row_count, n, stride});
    kernels_->rmsnorm_f32(x.data(), row_count, stride, weight.data(), n, epsilon, x.data(), stride);  // in place
    for (size_t row = 0; row < row_count; row++)
      for (size_t j = n; j < stride; j++) x[row * stride + j] = got[row * stride + j];
    ASSERT_TRUE(same(x, expected)) << "in place, " << shape({row_count, n, stride});
  }
}

TEST_P(KernelsTest, rope_angles_equal_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t count = random_.between(0, 70);
    Floats frequencies = inputs(random_, count, values(i), i & 1);
    float position = i % 8 == 7 ? random_.special() : static_cast<float>(random_.below(i % 2 ? 100 : 100000));
    Floats got_c = outputs(count, i & 1), got_s = outputs(count, i & 2), expected_c(got_c), expected_s(got_s);
    scalar_->rope_angles_f32(frequencies.data(), count, position, expected_c.data(), expected_s.data());
    kernels_->rope_angles_f32(frequencies.data(), count, position, got_c.data(), got_s.data());
    ASSERT_TRUE(same(got_c, expected_c)) << "cosines, position " << position << ", " << shape({count});
    ASSERT_TRUE(same(got_s, expected_s)) << "sines, position " << position << ", " << shape({count});
  }
}

TEST_P(KernelsTest, rope_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t head_count = random_.between(0, 9), half = random_.between(1, 40);
    Floats cosines = inputs(random_, half, values(i), i & 1), sines = inputs(random_, half, values(i), i & 2);
    Floats got = inputs(random_, head_count * half * 2, values(i), i & 1), expected(got);
    scalar_->rope_f32(expected.data(), head_count, half * 2, cosines.data(), sines.data());
    kernels_->rope_f32(got.data(), head_count, half * 2, cosines.data(), sines.data());
    ASSERT_TRUE(same(got, expected)) << shape({head_count, half * 2});
  }
}

TEST_P(KernelsTest, scores_equal_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t block_count = random_.between(0, 13), head_size = random_.between(1, 70) * 2;
    Floats q = inputs(random_, head_size, values(i), i & 1), keys = inputs(random_, block_count * head_size * 16, values(i), false);
    float root = i % 8 == 7 ? random_.special() : std::sqrt(static_cast<float>(head_size));
    Floats got = outputs(block_count * 16, i & 1), expected(got);
    scalar_->scores_f32(q.data(), keys.data(), block_count, head_size, root, expected.data());
    kernels_->scores_f32(q.data(), keys.data(), block_count, head_size, root, got.data());
    ASSERT_TRUE(same(got, expected)) << shape({block_count, head_size});
  }
}

TEST_P(KernelsTest, softmax_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t row_count = random_.between(0, 19), n = random_.between(1, 70), stride = n + random_.below(5);
    Floats got = inputs(random_, row_count * stride, values(i), i & 1);
    if (i % 4 == 3)  // most rows of special values have a NaN: make some without
      for (size_t row = 0; row < row_count; row += 2)
        for (size_t j = 0; j < n; j++) got[row * stride + j] = random_.below(4) ? random_.ordinary() : -INFINITY;
    Floats expected(got);
    scalar_->softmax_f32(expected.data(), row_count, stride, n);
    kernels_->softmax_f32(got.data(), row_count, stride, n);
    ASSERT_TRUE(same(got, expected)) << shape({row_count, n, stride});
  }
}

TEST_P(KernelsTest, softmax_row_with_nan_or_infinite_maximum_is_all_nan) {
  for (float bad : {NAN, -NAN, INFINITY})
    for (size_t n : {1u, 2u, 15u, 16u, 17u, 64u, 100u})
      for (size_t at = 0; at < n; at++) {
        Floats x = inputs(random_, n, Values::kOrdinary, false);
        x[at] = bad;
        kernels_->softmax_f32(x.data(), 1, n, n);
        for (size_t i = 0; i < n; i++) ASSERT_TRUE(x[i] != x[i]) << bad << " at " << at << " of " << n << ", element " << i;
      }
  Floats x(40, false);
  for (size_t i = 0; i < x.count(); i++) x[i] = -INFINITY;
  kernels_->softmax_f32(x.data(), 1, x.count(), x.count());
  for (size_t i = 0; i < x.count(); i++) ASSERT_TRUE(x[i] != x[i]) << i;
}

TEST_P(KernelsTest, mix_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t n = random_.between(0, 40), head_size = i % 8 == 0 ? random_.between(60, 150) * 2 : random_.between(1, 40) * 2;
    Floats weights = inputs(random_, n, values(i), i & 1), all = inputs(random_, n * head_size, values(i), i & 2);
    Floats got = inputs(random_, head_size, values(i), i & 1), expected(got);
    scalar_->mix_f32(weights.data(), all.data(), n, head_size, expected.data());
    kernels_->mix_f32(weights.data(), all.data(), n, head_size, got.data());
    ASSERT_TRUE(same(got, expected)) << shape({n, head_size});
  }
}

TEST_P(KernelsTest, swiglu_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t n = random_.between(0, 70);
    Floats got = inputs(random_, n, values(i), i & 1), h3 = inputs(random_, n, values(i), i & 2), expected(got);
    scalar_->swiglu_f32(expected.data(), h3.data(), n);
    kernels_->swiglu_f32(got.data(), h3.data(), n);
    ASSERT_TRUE(same(got, expected)) << shape({n});
  }
}

TEST_P(KernelsTest, add_and_divide_equal_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t n = random_.between(0, 70);
    Floats got = inputs(random_, n, values(i), i & 1), y = inputs(random_, n, values(i), i & 2), expected(got);
    scalar_->add_f32(expected.data(), y.data(), n);
    kernels_->add_f32(got.data(), y.data(), n);
    ASSERT_TRUE(same(got, expected)) << shape({n});
    float divisor = random_.draw(values(i));
    scalar_->divide_f32(expected.data(), n, divisor);
    kernels_->divide_f32(got.data(), n, divisor);
    ASSERT_TRUE(same(got, expected)) << "divided by " << divisor << ", " << shape({n});
  }
}

TEST_P(KernelsTest, canonical_nan_is_one_pattern_and_changes_nothing_else) {
  for (int i = 0; i < kCases; i++) {
    size_t n = random_.between(0, 70);
    Floats x = inputs(random_, n, Values::kSpecial, i & 1), before(x);
    kernels_->canonical_nan_f32(x.data(), n);
    for (size_t j = 0; j < n; j++) {
      bool nan = (bits_of(before[j]) & 0x7fffffffu) > 0x7f800000u;
      ASSERT_EQ(bits_of(x[j]), nan ? 0x7fc00000u : bits_of(before[j])) << j << " of " << n;
    }
  }
}

// ---- Q8_0 ----

// Groups that are whole registers, whole dwords, neither.
size_t group_size_of(Draws &random, int i) {
  if (i % 3 == 0) return 16 * random.between(1, 5);
  return i % 3 == 1 ? 4 * random.between(1, 17) : random.between(1, 70);
}

// What the padding of activations and weights holds is 0; the kernels may count on that.
Bytes quantized(Draws &random, size_t groups, size_t group_size, int low, bool skew) {
  size_t padded = pi_q8_padded(group_size);
  Bytes q(groups * padded, skew);
  for (size_t i = 0; i < q.count(); i++) {
    int extreme = random.below(2) ? 127 : low;
    int any = low + static_cast<int>(random.below(static_cast<size_t>(128 - low)));
    q[i] = static_cast<int8_t>(i % padded >= group_size ? 0 : random.below(3) == 0 ? extreme : any);
  }
  return q;
}

// Panels of random weights, -128 among them.
Bytes q8_panels(Draws &random, size_t panel_count, size_t groups, size_t group_size, Values values) {
  size_t block_bytes = pi_q8_block_bytes(group_size);
  Bytes panels(panel_count * groups * block_bytes, false);
  for (size_t block = 0; block < panel_count * groups; block++) {
    Bytes rows = quantized(random, 16, group_size, -128, false);
    int8_t *to = panels.data() + block * block_bytes;
    for (size_t row = 0; row < 16; row++) {
      for (size_t c = 0; c < pi_q8_padded(group_size); c++) to[pi_q8_weight(row, c)] = rows[row * pi_q8_padded(group_size) + c];
      float scale = values == Values::kOrdinary ? random.ordinary() * 0.01f : random.draw(values);
      std::memcpy(to + pi_q8_scale(group_size, row), &scale, sizeof scale);
    }
  }
  return panels;
}

Ints sums_of(const Bytes &q, size_t groups, size_t padded, bool skew) {
  Ints sums(groups, skew);
  for (size_t g = 0; g < groups; g++) {
    sums[g] = 0;
    for (size_t c = 0; c < padded; c++) sums[g] += q[g * padded + c];
  }
  return sums;
}

TEST_P(KernelsTest, quantize_q8_equals_scalar) {
  for (int i = 0; i < kCases; i++) {
    size_t groups = random_.between(0, 6), group_size = group_size_of(random_, i), padded = pi_q8_padded(group_size);
    Floats x = inputs(random_, groups * group_size, values(i), i & 1);
    for (size_t g = 0; g < groups; g++) {  // zeros, and scales that are subnormal or underflow
      float factor = random_.below(8) == 0   ? 0.0f
                     : random_.below(8) == 0 ? std::ldexp(1.0f, -142 - static_cast<int>(random_.below(8)))
                                             : 1.0f;
      for (size_t j = 0; j < group_size; j++) x[g * group_size + j] *= factor;
    }
    Bytes got(groups * padded, i & 1), expected(groups * padded, i & 1);
    Floats got_scales = outputs(groups, i & 2), expected_scales(got_scales);
    Ints got_sums(groups, i & 1), expected_sums(groups, i & 1);
    scalar_->quantize_q8(x.data(), groups, group_size, expected.data(), expected_scales.data(), expected_sums.data());
    kernels_->quantize_q8(x.data(), groups, group_size, got.data(), got_scales.data(), got_sums.data());
    ASSERT_TRUE(same_integers(got, expected)) << shape({groups, group_size});
    ASSERT_TRUE(same(got_scales, expected_scales)) << shape({groups, group_size});
    ASSERT_TRUE(same_integers(got_sums, expected_sums)) << shape({groups, group_size});
  }
}

TEST_P(KernelsTest, quantize_q8_rounds_half_away_from_zero) {
  constexpr size_t kSize = 512;
  Floats x(kSize, false), scale(1, false);
  Bytes q(kSize, false);
  Ints sum(1, false);
  for (size_t j = 0; j < kSize; j++) x[j] = static_cast<float>(j) * 0.5f - 127.0f;  // halves; the scale is 1
  x[kSize - 1] = x[kSize - 2] = x[kSize - 3] = x[kSize - 4] = 127.0f;
  for (size_t j = 0; j < kSize; j++) x[j] = std::fmin(x[j], 127.0f);
  x[7] = 0.49999997f;
  x[8] = -0.49999997f;
  kernels_->quantize_q8(x.data(), 1, kSize, q.data(), scale.data(), sum.data());
  ASSERT_EQ(scale[0], 1.0f);
  for (size_t j = 0; j < kSize; j++) ASSERT_EQ(q[j], static_cast<int>(std::round(x[j]))) << x[j];
}

TEST_P(KernelsTest, matvec_q8_equals_scalar) {
  for (int i = 0; i < kCases / 2; i++) {
    size_t panel_count = random_.between(0, 14), groups = random_.between(0, 4), group_size = group_size_of(random_, i);
    Bytes panels = q8_panels(random_, panel_count, groups, group_size, values(i));
    Bytes q = quantized(random_, groups, group_size, -127, i & 1);
    Floats scales = inputs(random_, groups, values(i), i & 1);
    Ints sums = sums_of(q, groups, pi_q8_padded(group_size), i & 1);
    Floats got = outputs(panel_count * 16, i & 1), expected(got);
    scalar_->matvec_q8(panels.data(), panel_count, groups, group_size, q.data(), scales.data(), sums.data(), expected.data());
    kernels_->matvec_q8(panels.data(), panel_count, groups, group_size, q.data(), scales.data(), sums.data(), got.data());
    ASSERT_TRUE(same(got, expected)) << shape({panel_count, groups, group_size});
  }
}

// Any lane may be missing a row and then holds anything.
TEST_P(KernelsTest, matmul_q8_equals_scalar) {
  for (int i = 0; i < kCases / 2; i++) {
    size_t panel_count = random_.between(0, 8), groups = random_.between(0, 4), group_size = group_size_of(random_, i);
    size_t row_count = random_.between(0, 19), blocks = (row_count + 7) / 8, padded = pi_q8_padded(group_size);
    size_t stride = panel_count * 16 + random_.below(3);
    Bytes panels = q8_panels(random_, panel_count, groups, group_size, values(i));
    Bytes q(blocks * groups * padded * 8, i & 1);
    Floats scales = inputs(random_, blocks * groups * 8, values(i), i & 1);
    Ints sums(blocks * groups * 8, i & 1);
    for (size_t row = 0; row < blocks * 8; row++) {
      Bytes one = quantized(random_, groups, group_size, -127, false);
      Ints one_sums = sums_of(one, groups, padded, false);
      for (size_t g = 0; g < groups; g++) {
        sums[(row / 8 * groups + g) * 8 + row % 8] = one_sums[g];
        for (size_t c = 0; c < padded; c++)
          q[((row / 8 * groups + g) * (padded / 4) + c / 4) * 32 + row % 8 * 4 + c % 4] = one[g * padded + c];
      }
    }
    Floats got = outputs(row_count * stride, i & 1), expected(got);
    scalar_->matmul_q8(panels.data(), panel_count, groups, group_size, q.data(), scales.data(), sums.data(), row_count, expected.data(),
                       stride);
    kernels_->matmul_q8(panels.data(), panel_count, groups, group_size, q.data(), scales.data(), sums.data(), row_count, got.data(),
                        stride);
    ASSERT_TRUE(same(got, expected)) << shape({panel_count, groups, group_size, row_count, stride});
  }
}

TEST_P(KernelsTest, matvec_q8_is_exact_for_the_largest_group) {
  constexpr size_t kGroup = 65536;
  for (int weight : {-128, 127})
    for (int activation : {-127, 127}) {
      Bytes panels(pi_q8_block_bytes(kGroup), false), q(kGroup, false);
      std::memset(panels.data(), weight, kGroup * 16);
      for (size_t row = 0; row < 16; row++) {
        float one = 1.0f;
        std::memcpy(panels.data() + pi_q8_scale(kGroup, row), &one, sizeof one);
      }
      std::memset(q.data(), activation, kGroup);
      float scale = 1.0f, out[16];
      int32_t sum = activation * static_cast<int32_t>(kGroup);
      kernels_->matvec_q8(panels.data(), 1, 1, kGroup, q.data(), &scale, &sum, out);
      for (float result : out) ASSERT_EQ(result, static_cast<float>(weight * activation) * 65536.0f) << weight << " * " << activation;
    }
}

TEST_P(KernelsTest, pack_q8_equals_scalar) {
  for (int i = 0; i < kCases / 2; i++) {
    size_t row_count = i % 2 ? 16 : random_.between(1, 16), lane = random_.between(0, 16 - row_count);
    size_t groups = random_.between(0, 4), group_size = group_size_of(random_, i);
    Bytes rows(row_count * groups * group_size, i & 1), got(groups * pi_q8_block_bytes(group_size), false);
    Floats scales = inputs(random_, row_count * groups, values(i), i & 1);
    for (size_t j = 0; j < rows.count(); j++) rows[j] = static_cast<int8_t>(random_.word());
    for (size_t j = 0; j < got.count(); j++) got[j] = static_cast<int8_t>(j * 31);
    Bytes expected(got);
    scalar_->pack_q8(rows.data(), scales.data(), row_count, groups, group_size, lane, expected.data());
    kernels_->pack_q8(rows.data(), scales.data(), row_count, groups, group_size, lane, got.data());
    ASSERT_TRUE(same_integers(got, expected)) << shape({row_count, lane, groups, group_size});
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, KernelsTest, testing::Range(size_t(0), kernels_count()), name_of_kernels);

TEST(Dispatch, scalar_is_there_first_and_always_available) {
  ASSERT_GE(kernels_count(), 1u);
  EXPECT_STREQ(kernels_at(0)->name, "scalar");
  EXPECT_TRUE(kernels_available(0));
}

TEST(Dispatch, best_is_the_last_available_table) {
  size_t last = 0;
  for (size_t i = 0; i < kernels_count(); i++)
    if (kernels_available(i)) last = i;
  EXPECT_EQ(kernels_best(), kernels_at(last));
}

TEST(Dispatch, tables_are_found_by_their_exact_name_only) {
  bool available = false;
  for (size_t i = 0; i < kernels_count(); i++) {
    std::string name = kernels_at(i)->name;
    EXPECT_EQ(kernels_named(name.data(), name.size(), &available), kernels_at(i));
    EXPECT_EQ(available, kernels_available(i));
    EXPECT_EQ(kernels_named(name.data(), name.size() - 1, &available), nullptr);
    EXPECT_FALSE(available);
    EXPECT_EQ(kernels_named((name + "x").data(), name.size() + 1, &available), nullptr);
  }
  EXPECT_EQ(kernels_named("", 0, &available), nullptr);
}

TEST(Dispatch, every_table_is_complete) {
  for (size_t i = 0; i < kernels_count(); i++) {
    const Kernels *k = kernels_at(i);
    EXPECT_TRUE(k->name && k->matvec_f32 && k->matmul_f32 && k->rmsnorm_f32 && k->rope_angles_f32 && k->rope_f32 && k->scores_f32 &&
                k->softmax_f32 && k->mix_f32 && k->swiglu_f32 && k->add_f32 && k->divide_f32 && k->canonical_nan_f32 && k->pack_f32 &&
                k->quantize_q8 && k->matvec_q8 && k->matmul_q8 && k->pack_q8 && k->matvec_half && k->matmul_half && k->pack_half &&
                k->quantize_blocks && k->matvec_blocks && k->matmul_blocks && k->pack_blocks)
        << i;
  }
}

}  // namespace
}  // namespace proofinfer
