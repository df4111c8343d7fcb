#include "machine_speed.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "median.h"
#include "problem.h"
#include "system.h"

namespace proofinfer::cli {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr int kTrials = 3;

// Registers of 64 bytes: the compiler makes them several where the target has narrower ones.
using Words = uint64_t __attribute__((vector_size(64)));
using Floats = float __attribute__((vector_size(64)));
constexpr size_t kFloats = 16;

#define PI_ALWAYS_INLINE inline __attribute__((always_inline))

// Tells the compiler that the value may have changed, and leaves it in its register.
#if defined(__x86_64__)
#define PI_HIDE(value) __asm__ volatile("" : "+v"(value))
#elif defined(__aarch64__)
#define PI_HIDE(value) __asm__ volatile("" : "+w"(value))
#else
#define PI_HIDE(value) __asm__ volatile("" : "+m"(value))
#endif

constexpr size_t kAheadBytes = 24 * 64;

// Reads `count` vectors as kStreams streams side by side; the result only keeps the reads alive.
template <size_t kStreams>
PI_ALWAYS_INLINE uint64_t read_streams(const Words *data, size_t count) {
  Words sums[kStreams][2] = {};
  const size_t each = count / kStreams;
  for (size_t i = 0; i + 2 <= each; i += 2)
    for (size_t s = 0; s < kStreams; s++) {
      // Beyond what the hardware prefetches by itself; a prefetch behind the end does no harm.
      __builtin_prefetch(reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(data + s * each + i) + kAheadBytes));
      __builtin_prefetch(reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(data + s * each + i + 1) + kAheadBytes));
      sums[s][0] += data[s * each + i];
      sums[s][1] += data[s * each + i + 1];
    }
  for (size_t s = 1; s < kStreams; s++) sums[0][0] += sums[s][0] + sums[s][1];
  return sums[0][0][0] + sums[0][1][7];
}

// More sums than an addition's latency times the additions a cycle, so that no chain slows the others down; with the product and the factor
// they fit 16 registers.
constexpr size_t kSums = 12;
constexpr size_t kRounds = 1 << 18;

// The body of a routine of registers of the target's own width, or values would be moved through memory. Not a template: the hidden
// values must be in registers that only the routine's own target has.
#define PI_MULTIPLY_ADD_ROUNDS(Register)                                                    \
  Register sums[kSums] = {}, factor = {}, x = {};                                           \
  factor += 1e-3f;                                                                          \
  x += 0.5f;                                                                                \
  for (size_t round = 0; round < kRounds; round++)                                          \
    for (size_t s = 0; s < kSums; s++) {                                                    \
      PI_HIDE(x); /* the product is another one each time */                                \
      Register product = x * factor;                                                        \
      PI_HIDE(product); /* two instructions, whatever the compiler thinks of contraction */ \
      sums[s] += product;                                                                   \
    }                                                                                       \
  for (size_t s = 1; s < kSums; s++) sums[0] += sums[s];                                    \
  return sums[0][0];

struct Routines {
  uint64_t (*read[3])(const Words *, size_t);
  float (*multiply_add)();
  size_t lanes;  // of a register of multiply_add
};

using Lanes4 = float __attribute__((vector_size(16)));
using Lanes8 = float __attribute__((vector_size(32)));

#define PI_ROUTINES(name, attribute, Register)                                                \
  attribute uint64_t read1_##name(const Words *p, size_t n) { return read_streams<1>(p, n); } \
  attribute uint64_t read4_##name(const Words *p, size_t n) { return read_streams<4>(p, n); } \
  attribute uint64_t read8_##name(const Words *p, size_t n) { return read_streams<8>(p, n); } \
  attribute float multiply_add_##name() { PI_MULTIPLY_ADD_ROUNDS(Register) }                  \
  constexpr Routines k_##name = {{read1_##name, read4_##name, read8_##name}, multiply_add_##name, sizeof(Register) / sizeof(float)};

PI_ROUTINES(base, , Lanes4)
#if defined(__x86_64__)
PI_ROUTINES(avx2, __attribute__((target("avx2"))), Lanes8)
PI_ROUTINES(avx512, __attribute__((target("avx512f,avx512dq"))), Floats)
#endif

const Routines &routines() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return k_avx512;
  if (__builtin_cpu_supports("avx2")) return k_avx2;
#endif
  return k_base;
}

// Seconds from the first thread's start to the last one's end.
double time_threads(size_t threads, const std::function<void(size_t)> &work) {
  const double start = seconds_now();
  std::vector<std::thread> others;
  others.reserve(threads);
  bool all = true;
  try {
    for (size_t t = 1; t < threads; t++) others.emplace_back(work, t);
  } catch (const std::system_error &) {
    all = false;
  }
  if (all) work(0);
  for (std::thread &other : others) other.join();
  if (!all)
    throw Problem("no " + std::to_string(threads) + " threads can be had to measure this machine with; --no-bounds leaves that out");
  return seconds_now() - start;
}

void *map(size_t bytes, bool huge) {
  void *memory = mmap(nullptr, bytes + kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
#if defined(MADV_HUGEPAGE)
  madvise(memory, bytes + kHugePageBytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
  memset(memory, 1, bytes + kHugePageBytes);  // pages of zeros that were never written are all one page
  return memory;
}

}  // namespace

ReadBandwidth::ReadBandwidth(size_t bytes, size_t threads)
    : bytes_((bytes / kHugePageBytes + 1) * kHugePageBytes), threads_(threads), memory_{map(bytes_, false), map(bytes_, true)} {}

ReadBandwidth::~ReadBandwidth() {
  for (void *memory : memory_)
    if (memory) munmap(memory, bytes_ + kHugePageBytes);
}

// Seconds that reading everything once takes.
double ReadBandwidth::read_seconds(size_t pages, size_t streams) const {
  const uintptr_t start = reinterpret_cast<uintptr_t>(memory_[pages]);
  const Words *data = reinterpret_cast<const Words *>((start + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes);
  const size_t each = bytes_ / sizeof(Words) / threads_;
  std::vector<uint64_t> results(threads_ * 8);  // a cache line each; written to, so that the reads are done
  return time_threads(threads_, [&](size_t t) { results[t * 8] = routines().read[streams](data + t * each, each); });
}

double ReadBandwidth::measure(double seconds) {
  size_t best_pages = 0, best_streams = 0;
  double best = 0;
  for (size_t pages = 0; pages < 2; pages++) {
    if (!memory_[pages]) continue;
    for (size_t streams = 0; streams < 3; streams++) {
      read_seconds(pages, streams);  // a model's weights are not read for the first time either
      for (int trial = 0; trial < kTrials; trial++) trials_[pages][streams].push_back(read_seconds(pages, streams));
      const double one = median(trials_[pages][streams]);
      if (best == 0 || one < best) best = one, best_pages = pages, best_streams = streams;
    }
  }
  if (best == 0) return 0;
  const size_t read_bytes = bytes_ / sizeof(Words) / threads_ * threads_ * sizeof(Words);
  const double once_bytes = static_cast<double>(read_bytes);
  double total_seconds = 0, total_bytes = 0;
  do {
    total_seconds += read_seconds(best_pages, best_streams);
    total_bytes += once_bytes;
  } while (total_seconds < seconds);
  return total_bytes / total_seconds;
}

double measure_multiply_add(size_t threads) {
  double best = 0;
  for (int run = 0; run < 5; run++) {
    std::vector<float> results(threads * kFloats);
    const double seconds = time_threads(threads, [&](size_t t) { results[t * kFloats] = routines().multiply_add(); });
    best = std::max(best, 2.0 * static_cast<double>(kRounds * kSums * routines().lanes * threads) / seconds);
  }
  return best;
}

}  // namespace proofinfer::cli
