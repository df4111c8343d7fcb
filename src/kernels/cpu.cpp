#include "kernels/cpu.h"

#include <stdint.h>

#include <atomic>

#include "base/os.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace proofinfer {
namespace {

enum : uint32_t { kSse2 = 1, kAvx2 = 2, kAvx512 = 4, kAvx512Vnni = 8, kNeon = 16, kNeonDot = 32, kAsked = 64 };

#if defined(__x86_64__)

bool bit(uint32_t word, int index) { return (word >> index & 1) != 0; }

// Register states that the operating system saves: only callable where cpuid reports OSXSAVE.
uint32_t saved_states() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

uint32_t ask_cpu() {
  constexpr uint32_t kAvxStates = 0x06;     // XMM and YMM
  constexpr uint32_t kAvx512States = 0xe6;  // with the masks, the upper halves and the upper sixteen registers
  uint32_t found = kSse2;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (!__get_cpuid_count(1, 0, &a, &b, &c, &d)) return found;
  bool needed = bit(c, 12) && bit(c, 29);        // FMA, F16C
  if (!bit(c, 27) || !bit(c, 28)) return found;  // OSXSAVE, AVX
  uint32_t states = saved_states();
  if ((states & kAvxStates) != kAvxStates || !needed) return found;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !bit(b, 5)) return found;
  found |= kAvx2;
  bool avx512 = bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);  // F, DQ, BW, VL
  if (!avx512 || (states & kAvx512States) != kAvx512States) return found;
  found |= kAvx512;
  if (bit(c, 11)) found |= kAvx512Vnni;
  return found;
}

#elif defined(__aarch64__)

uint32_t ask_cpu() { return kNeon | (os_has_dot_products() ? kNeonDot : 0u); }

#else

uint32_t ask_cpu() { return 0; }

#endif

// Asking can trap into a hypervisor, so it is done once; threads that race write the same value.
std::atomic<uint32_t> known_features{0};

}  // namespace

CpuFeatures cpu_features() {
  uint32_t known = known_features.load(std::memory_order_relaxed);
  if (known == 0) {
    known = ask_cpu() | kAsked;
    known_features.store(known, std::memory_order_relaxed);
  }
  CpuFeatures features;
  features.sse2 = (known & kSse2) != 0;
  features.avx2 = (known & kAvx2) != 0;
  features.avx512 = (known & kAvx512) != 0;
  features.avx512_vnni = (known & kAvx512Vnni) != 0;
  features.neon = (known & kNeon) != 0;
  features.neon_dot = (known & kNeonDot) != 0;
  return features;
}

}  // namespace proofinfer
