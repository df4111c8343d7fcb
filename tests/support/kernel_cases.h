// What the tests of kernels share: draws of hostile numbers, blocks of the exact size, exact comparison, and the fixture of a kernel set.
#ifndef PROOFINFER_TESTS_SUPPORT_KERNEL_CASES_H
#define PROOFINFER_TESTS_SUPPORT_KERNEL_CASES_H

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>

#include "kernels/kernels.h"
#include "support/files.h"
#include "support/random.h"

namespace proofinfer_test {

using proofinfer::Kernels;
using proofinfer::kernels_at;
using proofinfer::kernels_available;

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// What the elements of an input are drawn from.
enum class Values { kOrdinary, kWide, kSpecial };

class Draws {
 public:
  explicit Draws(uint32_t seed) : engine_(seed) {}
  uint32_t word() { return engine_(); }
  size_t below(size_t n) { return word() % n; }
  size_t between(size_t low, size_t high) { return low + below(high - low + 1); }
  float ordinary() { return (static_cast<float>(word() >> 8) / 8388608.0f - 1.0f) * 3.0f; }
  float wide() { return std::ldexp(ordinary(), static_cast<int>(below(280)) - 150); }
  float special() {
    static const uint32_t kBits[] = {0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x007fffffu, 0x00800000u,
                                     0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u,
                                     0x7f800001u, 0x3f800000u, 0xbf800000u, 0x42b17218u, 0xc2cff1b5u, 0x42f00000u};
    return float_of(kBits[below(sizeof kBits / sizeof *kBits)]);
  }
  float draw(Values values) {
    if (values == Values::kOrdinary) return ordinary();
    if (values == Values::kWide) return wide();
    return below(8) == 0 ? special() : below(2) ? wide() : ordinary();
  }

 private:
  std::mt19937 engine_;
};

// Exactly `count` elements in a heap block of their own, aligned to 64 bytes or, with `skew`, to one element only, so that a sanitizer sees
// every access outside. A copy has the same contents and alignment.
template <typename T>
class Block {
 public:
  Block(size_t count, bool skew) : count_(count), skew_(skew) {
    void *memory = nullptr;
    size_t bytes = (count_ + skew_) * sizeof(T);
    if (posix_memalign(&memory, 64, bytes ? bytes : 1) != 0) std::abort();
    block_.reset(static_cast<T *>(memory));
  }
  Block(const Block &other) : Block(other.count_, other.skew_) {
    if (count_) std::memcpy(data(), other.data(), count_ * sizeof(T));
  }
  T *data() const { return block_.get() + skew_; }
  size_t count() const { return count_; }
  T &operator[](size_t i) const { return data()[i]; }

 private:
  struct Free {
    void operator()(T *block) const { std::free(block); }
  };
  size_t count_;
  bool skew_;
  std::unique_ptr<T, Free> block_;
};

using Floats = Block<float>;
using Bytes = Block<int8_t>;
using Ints = Block<int32_t>;

inline Floats inputs(Draws &random, size_t count, Values values, bool skew) {
  Floats floats(count, skew);
  for (size_t i = 0; i < count; i++) floats[i] = random.draw(values);
  return floats;
}

// What an output holds before: a kernel must leave alone what is not its own.
inline Floats outputs(size_t count, bool skew) {
  Floats floats(count, skew);
  for (size_t i = 0; i < count; i++) floats[i] = float_of(0x4b000000u + static_cast<uint32_t>(i % 65536));
  return floats;
}

inline testing::AssertionResult same(const Floats &got, const Floats &expected) {
  for (size_t i = 0; i < expected.count(); i++) {
    bool both_nan = got[i] != got[i] && expected[i] != expected[i];
    if (bits_of(got[i]) != bits_of(expected[i]) && !both_nan)
      return testing::AssertionFailure() << "element " << i << " of " << expected.count() << " is " << got[i] << " (" << std::hex
                                         << bits_of(got[i]) << "), not " << expected[i] << " (" << bits_of(expected[i]) << ")";
  }
  return testing::AssertionSuccess();
}

template <typename T>
testing::AssertionResult same_integers(const Block<T> &got, const Block<T> &expected) {
  for (size_t i = 0; i < expected.count(); i++)
    if (got[i] != expected[i])
      return testing::AssertionFailure() << "element " << i << " of " << expected.count() << " is " << +got[i] << ", not " << +expected[i];
  return testing::AssertionSuccess();
}

// The shape of a failing case.
inline std::string shape(std::initializer_list<size_t> sizes) {
  std::string text = "shape";
  for (size_t size : sizes) text += " " + std::to_string(size);
  return text;
}

// Fewer where a run is slow, under sanitizers and emulators.
inline const int kCases = static_cast<int>(from_environment("PROOFINFER_KERNEL_CASES", 2000));

class KernelsTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (!kernels_available(GetParam())) PROOFINFER_SKIP("isa") << kernels_at(GetParam())->name;
    kernels_ = kernels_at(GetParam());
  }
  // Three quarters of the cases have values that hide no rounding error, the others what breaks careless code.
  Values values(int i) const { return i % 4 == 3 ? Values::kSpecial : i % 4 == 2 ? Values::kWide : Values::kOrdinary; }

  const Kernels *kernels_ = nullptr;
  const Kernels *scalar_ = kernels_at(0);
  Draws random_{20240229};
};

inline std::string name_of_kernels(const testing::TestParamInfo<size_t> &info) { return kernels_at(info.param)->name; }

}  // namespace proofinfer_test

#endif
