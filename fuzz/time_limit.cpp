// Stands between libFuzzer or the replay and the target: an execution takes at most 100 ms and 1 s per MB of its input of this thread's CPU time.
#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "harness.h"

extern "C" int __real_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern "C" int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

// A virtual CPU is charged for time that its host gave to others: too slow is only what is too slow each time.
constexpr int kAttempts = 5;

double g_slowest = 0.0;  // part of the time allowed

void print_slowest() { std::fprintf(stderr, "the slowest took %.1f %% of the time allowed\n", 100.0 * g_slowest); }

uint64_t thread_time_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

}  // namespace

int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int registered = std::atexit(print_slowest);
  (void)registered;
  const uint64_t allowed_ns = 100000000u + uint64_t(size) * 1000u;
  double least = 0.0;
  for (int attempt = 0; attempt < kAttempts && (attempt == 0 || least > 1.0); attempt++) {
    const uint64_t begin_ns = thread_time_ns();
    __real_LLVMFuzzerTestOneInput(data, size);
    const double part = double(thread_time_ns() - begin_ns) / double(allowed_ns);
    if (attempt == 0 || part < least) least = part;
  }
  HOLDS(least <= 1.0);
  if (least > g_slowest) g_slowest = least;
  return 0;
}
