// Every float there is through expf, sinf and cosf of every ISA, against the C library; every float exponent in [2^-31, 1] and every rotary
// exponent through powf. Usage: exhaustive_elementary [threads]. Prints counts; exits 1 on a mismatch. About 10 CPU minutes.
//
// The C library to compare with is a glibc of 2.28 or later on a CPU with fused multiply-add: others may give other bits, which is why the
// library has its own functions.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "kernels/elementary_vector.h"
#include "kernels/kernels.h"
#include "proved/elementary.h"

namespace {

using proofinfer::ElementaryForms;

constexpr size_t kChunk = 1 << 16;
constexpr uint64_t kChunks = (uint64_t(1) << 32) / kChunk;

float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// NaNs are equal whatever their payload.
bool same(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

// Runs body(chunk) for every chunk on all threads and gives the sum of what it returns.
uint64_t sum_over(uint64_t chunks, size_t threads, const std::function<uint64_t(uint64_t)> &body) {
  std::atomic<uint64_t> next{0}, total{0};
  std::vector<std::thread> team;
  for (size_t i = 0; i < threads; i++)
    team.emplace_back([&] {
      for (uint64_t chunk = next++; chunk < chunks; chunk = next++) total += body(chunk);
    });
  for (std::thread &thread : team) thread.join();
  return total;
}

struct Function {
  const char *name;
  float (*library)(float);
  void (*ElementaryForms::*form)(const float *, float *, size_t);
};

const Function kFunctions[] = {
    {"expf", expf, &ElementaryForms::exp_f32}, {"sinf", sinf, &ElementaryForms::sin_f32}, {"cosf", cosf, &ElementaryForms::cos_f32}};

// Mismatches of one function over all floats, by table; *nans counts the inputs that are NaN.
std::vector<uint64_t> compare(const Function &f, size_t threads, uint64_t *nans) {
  std::vector<std::atomic<uint64_t>> wrong(proofinfer::kernels_count());
  *nans = sum_over(kChunks, threads, [&](uint64_t chunk) {
    std::vector<float> x(kChunk), expected(kChunk), got(kChunk);
    uint64_t nan_inputs = 0;
    for (size_t i = 0; i < kChunk; i++) {
      x[i] = float_of(static_cast<uint32_t>(chunk * kChunk + i));
      expected[i] = f.library(x[i]);
      nan_inputs += x[i] != x[i];
    }
    for (size_t table = 0; table < wrong.size(); table++) {
      if (!proofinfer::kernels_available(table)) continue;
      (proofinfer::elementary_forms_at(table)->*f.form)(x.data(), got.data(), kChunk);
      uint64_t differ = 0;
      for (size_t i = 0; i < kChunk; i++) differ += !same(got[i], expected[i]);
      wrong[table] += differ;
    }
    return nan_inputs;
  });
  return std::vector<uint64_t>(wrong.begin(), wrong.end());
}

uint64_t check_functions(size_t threads) {
  uint64_t total = 0;
  for (const Function &f : kFunctions) {
    uint64_t nans = 0;
    std::vector<uint64_t> wrong = compare(f, threads, &nans);
    for (size_t table = 0; table < wrong.size(); table++) {
      const char *isa = proofinfer::kernels_at(table)->name;
      if (!proofinfer::kernels_available(table)) {
        printf("%s %s: isa-unavailable\n", f.name, isa);
        continue;
      }
      printf("%s %s: %llu inputs, of them %llu NaN: %llu mismatches\n", f.name, isa, 1ull << 32, static_cast<unsigned long long>(nans),
             static_cast<unsigned long long>(wrong[table]));
      total += wrong[table];
    }
    fflush(stdout);
  }
  return total;
}

uint64_t check_power(float base, size_t threads) {
  constexpr uint32_t kFirst = 0x30000000u, kLast = 0x3f800000u;  // 2^-31 and 1
  uint64_t wrong = sum_over((kLast - kFirst) / kChunk + 1, threads, [&](uint64_t chunk) {
    uint64_t differ = 0;
    uint32_t begin = static_cast<uint32_t>(kFirst + chunk * kChunk), end = std::min<uint32_t>(begin + kChunk, kLast + 1);
    for (uint32_t bits = begin; bits < end; bits++) differ += !same(pi_powf(base, float_of(bits)), powf(base, float_of(bits)));
    return differ;
  });
  uint64_t count = kLast - kFirst + 1;
  for (int head_size = 2; head_size <= 1024; head_size += 2)
    for (int h = 0; h < head_size; h++, count++) {
      float e = static_cast<float>(h) / static_cast<float>(head_size);
      wrong += !same(pi_powf(base, e), powf(base, e));
    }
  printf("powf base %g: %llu exponents: %llu mismatches\n", static_cast<double>(base), static_cast<unsigned long long>(count),
         static_cast<unsigned long long>(wrong));
  fflush(stdout);
  return wrong;
}

}  // namespace

int main(int argc, char **argv) {
  size_t threads = argc > 1 ? static_cast<size_t>(atoi(argv[1])) : 1;
  if (threads < 1 || threads > 1024) threads = 1;
#if defined(__GLIBC__)
  printf("against glibc %s\n", gnu_get_libc_version());
#endif
  uint64_t wrong = 0;
  for (float base : {10000.0f, 100000.0f, 500000.0f, 1000000.0f, 8000000.0f, 1.5f}) wrong += check_power(base, threads);
  wrong += check_functions(threads);
  printf("%s: %llu mismatches\n", wrong ? "FAILED" : "passed", static_cast<unsigned long long>(wrong));
  return wrong != 0;
}
