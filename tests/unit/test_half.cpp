// 16-bit floating-point numbers in float32: all of them, against the definition of the formats.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace proofinfer_test {

namespace {

// Both formats: a sign, then so many bits of an exponent, the rest of a fraction.
double value_of(unsigned half, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = int(half >> fraction_bits) & ((1 << exponent_bits) - 1), fraction = int(half) & ((1 << fraction_bits) - 1);
  const double one = 1 << fraction_bits;
  double magnitude = exponent == 0 ? std::ldexp(fraction / one, 1 - bias) : std::ldexp(1 + fraction / one, exponent - bias);
  if (exponent == (1 << exponent_bits) - 1) magnitude = fraction ? NAN : INFINITY;
  return half & 0x8000 ? -magnitude : magnitude;
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace

TEST(Half, every_number_of_16_bits_is_widened_exactly) {
  for (unsigned half = 0; half < 0x10000; half++) {
    const float f16 = proofinfer::widen_f16(uint16_t(half)), bf16 = proofinfer::widen_bf16(uint16_t(half));
    const float expected_f16 = float(value_of(half, 5)), expected_bf16 = float(value_of(half, 8));
    ASSERT_TRUE(std::isnan(expected_f16) ? std::isnan(f16) : bits_of(f16) == bits_of(expected_f16)) << half;
    ASSERT_TRUE(std::isnan(expected_bf16) ? std::isnan(bf16) : bits_of(bf16) == bits_of(expected_bf16)) << half;
  }
}

TEST(Half, a_nan_of_float16_keeps_its_payload_and_becomes_quiet) {
  for (unsigned fraction = 1; fraction < 0x400; fraction++) {
    EXPECT_EQ(bits_of(proofinfer::widen_f16(uint16_t(0x7C00 | fraction))), 0x7FC00000u | fraction << 13);
    EXPECT_EQ(bits_of(proofinfer::widen_f16(uint16_t(0xFC00 | fraction))), 0xFFC00000u | fraction << 13);
  }
}

}  // namespace proofinfer_test
