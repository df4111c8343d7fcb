// The elementary functions: equal to glibc's on samples of every binade (all floats: tests/long), equal between ISAs, total, within bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/elementary_vector.h"
#include "kernels/kernels.h"
#include "kernels/logarithm.h"
#include "proved/elementary.h"
#include "support/files.h"

namespace proofinfer {
namespace {

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

bool same(float a, float b) { return bits_of(a) == bits_of(b) || (a != a && b != b); }

// Every 997th float (a prime: all low bits occur), and the neighbourhood of every place where a function takes another path.
const std::vector<float> &samples() {
  static const std::vector<float> all = [] {
    std::vector<float> floats;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 997) floats.push_back(float_of(static_cast<uint32_t>(bits)));
    const uint32_t edges[] = {0x00000000u, 0x00800000u, 0x39800000u, 0x3f400000u, 0x3f490fdbu,
                              0x3f800000u,                                                       // 0, 2^-126, 2^-12, 0.75, pi/4, 1
                              0x42b17217u, 0x42cff1b4u, 0x42f00000u, 0x7f800000u, 0x7fc00000u};  // overflow, underflow, 120, inf, NaN
    for (uint32_t edge : edges)
      for (uint32_t near = 0; near < 64; near++) {
        floats.push_back(float_of(edge - 32 + near));
        floats.push_back(float_of((edge - 32 + near) ^ 0x80000000u));
      }
    return floats;
  }();
  return all;
}

// glibc has other variants of these functions for x86 CPUs without a fused multiply-add, with other bits.
bool glibc_is_the_reference() {
#if !defined(__GLIBC__)
  return false;
#elif defined(__x86_64__)
  return __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

struct Function {
  const char *name;
  float (*scalar)(float);
  float (*library)(float);
  void (*ElementaryForms::*form)(const float *, float *, size_t);
};

float library_expf(float x) { return expf(x); }
float library_sinf(float x) { return sinf(x); }
float library_cosf(float x) { return cosf(x); }

const Function kFunctions[] = {{"expf", pi_expf, library_expf, &ElementaryForms::exp_f32},
                               {"sinf", pi_sinf, library_sinf, &ElementaryForms::sin_f32},
                               {"cosf", pi_cosf, library_cosf, &ElementaryForms::cos_f32}};

TEST(Elementary, scalar_functions_equal_glibc) {
  if (!glibc_is_the_reference()) PROOFINFER_SKIP("glibc") << "no glibc with fused multiply-add to compare with";
  for (const Function &f : kFunctions)
    for (float x : samples())
      ASSERT_TRUE(same(f.scalar(x), f.library(x))) << f.name << "(" << x << ") is " << f.scalar(x) << ", glibc's " << f.library(x);
}

class ElementaryForm : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (!kernels_available(GetParam())) PROOFINFER_SKIP("isa") << kernels_at(GetParam())->name;
    forms_ = elementary_forms_at(GetParam());
  }
  const ElementaryForms *forms_ = nullptr;
};

TEST_P(ElementaryForm, equals_the_scalar_function) {
  std::vector<float> results(samples().size());
  for (const Function &f : kFunctions) {
    (forms_->*f.form)(samples().data(), results.data(), results.size());
    for (size_t i = 0; i < results.size(); i++) {
      float expected = f.scalar(samples()[i]);
      ASSERT_TRUE(same(results[i], expected)) << f.name << "(" << samples()[i] << ") is " << results[i] << ", not " << expected;
    }
  }
}

// Some of the few floats whose sine or cosine shows whether a product and a sum were rounded once.
TEST_P(ElementaryForm, rounds_a_product_and_a_sum_once) {
  std::vector<float> inputs;
  for (float x : {0x1.ab6152p+5f, 0x1.46b80ep+6f, 0x1.52e6cp+6f, 0x1.d0f4aap+6f, 0x1.1475b6p+4f, 0x1.78edb2p+4f, 0x1.05d696p+5f}) {
    inputs.push_back(x);
    inputs.push_back(-x);
  }
  std::vector<float> results(inputs.size());
  for (const Function &f : kFunctions) {
    (forms_->*f.form)(inputs.data(), results.data(), inputs.size());
    for (size_t i = 0; i < inputs.size(); i++) EXPECT_TRUE(same(results[i], f.scalar(inputs[i]))) << f.name << "(" << inputs[i] << ")";
  }
}

TEST_P(ElementaryForm, touches_exactly_n_elements) {
  for (const Function &f : kFunctions)
    for (size_t n = 0; n <= 70; n++) {
      // blocks of the exact size, for a sanitizer to watch
      std::unique_ptr<float, void (*)(void *)> x(static_cast<float *>(std::malloc(n * sizeof(float) + !n)), std::free);
      std::unique_ptr<float, void (*)(void *)> y(static_cast<float *>(std::malloc(n * sizeof(float) + !n)), std::free);
      for (size_t i = 0; i < n; i++) x.get()[i] = samples()[(n * 7919 + i * 104729) % samples().size()];
      (forms_->*f.form)(x.get(), y.get(), n);
      for (size_t i = 0; i < n; i++) ASSERT_TRUE(same(y.get()[i], f.scalar(x.get()[i]))) << f.name << ", " << i << " of " << n;
      (forms_->*f.form)(x.get(), x.get(), n);  // in place
      for (size_t i = 0; i < n; i++) ASSERT_TRUE(same(y.get()[i], x.get()[i])) << f.name << " in place, " << i << " of " << n;
    }
}

INSTANTIATE_TEST_SUITE_P(Isa, ElementaryForm, testing::Range(size_t(0), kernels_count()),
                         [](const testing::TestParamInfo<size_t> &info) { return std::string(kernels_at(info.param)->name); });

TEST(Elementary, stated_results_at_special_inputs) {
  EXPECT_EQ(bits_of(pi_expf(INFINITY)), bits_of(INFINITY));
  EXPECT_EQ(bits_of(pi_expf(-INFINITY)), 0u);
  EXPECT_EQ(bits_of(pi_expf(-0.0f)), bits_of(1.0f));
  EXPECT_EQ(bits_of(pi_expf(89.0f)), bits_of(INFINITY));
  EXPECT_EQ(bits_of(pi_expf(-103.97208f)), 1u);  // the least subnormal
  EXPECT_EQ(bits_of(pi_expf(-104.0f)), 0u);
  EXPECT_EQ(bits_of(pi_sinf(-0.0f)), 0x80000000u);
  EXPECT_EQ(bits_of(pi_cosf(-0.0f)), bits_of(1.0f));
  for (float x : {INFINITY, -INFINITY, NAN, float_of(0x7f800001u), float_of(0xffc12345u)}) {
    EXPECT_TRUE(std::isnan(pi_sinf(x))) << x;
    EXPECT_TRUE(std::isnan(pi_cosf(x))) << x;
    EXPECT_EQ(std::isnan(pi_expf(x)), std::isnan(x)) << x;
  }
  EXPECT_EQ(pi_sqrtf(2.0f), std::sqrt(2.0f));
  EXPECT_EQ(bits_of(pi_sqrtf(-0.0f)), 0x80000000u);
  EXPECT_TRUE(std::isnan(pi_sqrtf(-1.0f)));
}

TEST(Elementary, logarithms_are_within_one_unit_in_the_last_place_and_the_same_bits_everywhere) {
  uint64_t digest = 0xcbf29ce484222325u;
  size_t inexact = 0;
  for (float x : samples()) {
    if (!(x >= 0x1p-126f && x < INFINITY)) {
      EXPECT_TRUE(std::isnan(pi_logf(x))) << x;
      continue;
    }
    float found = pi_logf(x), nearest = static_cast<float>(std::log(static_cast<double>(x)));
    ASSERT_TRUE(found == nearest || std::nextafterf(found, nearest) == nearest) << x << ": " << found << ", not " << nearest;
    inexact += found != nearest;
    digest = (digest ^ bits_of(found)) * 0x100000001b3u;
  }
  EXPECT_LT(inexact, samples().size() / 50);
  EXPECT_EQ(digest, 17576389848691940100u) << "of the recorded results";
  EXPECT_EQ(bits_of(pi_logf(1.0f)), 0u);
  EXPECT_EQ(pi_logf(2.0f), 0x1.62e43p-1f);
}

const float kPowerBases[] = {10000.0f, 100000.0f, 500000.0f, 1000000.0f, 8000000.0f, 1.5f};

TEST(Elementary, powf_equals_glibc_for_every_rotary_frequency) {
  if (!glibc_is_the_reference()) PROOFINFER_SKIP("glibc") << "no glibc with fused multiply-add to compare with";
  for (float base : kPowerBases)
    for (int head_size = 2; head_size <= 1024; head_size += 2)
      for (int i = 0; i < head_size; i += 2) {
        float e = static_cast<float>(i) / static_cast<float>(head_size);
        ASSERT_TRUE(same(pi_powf(base, e), powf(base, e))) << base << " to the power " << i << " / " << head_size;
      }
}

TEST(Elementary, powf_equals_glibc_on_its_domain) {
  if (!glibc_is_the_reference()) PROOFINFER_SKIP("glibc") << "no glibc with fused multiply-add to compare with";
  for (uint32_t x = 0x00800000u; x < 0x7f800000u; x += 99991)
    for (uint32_t y = 0; y < 0x7f800000u; y += 0x00b00007u)
      for (uint32_t sign : {0u, 0x80000000u}) {
        float base = float_of(x), e = float_of(y | sign);
        double size = static_cast<double>(e) * std::log2(static_cast<double>(base));
        if (!(size > -149.99 && size < 127.99)) continue;
        ASSERT_TRUE(same(pi_powf(base, e), powf(base, e))) << std::hexfloat << base << " to the power " << e;
      }
}

TEST(Elementary, powf_outside_of_its_domain_is_nan_zero_or_infinity) {
  EXPECT_EQ(pi_powf(10.0f, 100.0f), INFINITY);
  EXPECT_EQ(pi_powf(10.0f, -100.0f), 0.0f);
  EXPECT_EQ(pi_powf(10.0f, INFINITY), INFINITY);
  EXPECT_EQ(pi_powf(10.0f, -INFINITY), 0.0f);
  EXPECT_EQ(pi_powf(10.0f, 0.0f), 1.0f);
  for (float bad : {0.0f, -1.0f, INFINITY, -INFINITY, NAN, float_of(1)}) EXPECT_TRUE(std::isnan(pi_powf(bad, 0.5f))) << bad;
  EXPECT_TRUE(std::isnan(pi_powf(10.0f, NAN)));
  for (float x : samples())  // no undefined behaviour: for a sanitizer to watch
    for (float y : {x, 1.0f / x, 3.0f, -0.3f}) pi_powf(x, y);
}

}  // namespace
}  // namespace proofinfer
