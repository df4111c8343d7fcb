#include "base/fp_environment.h"

#include <fenv.h>
#include <string.h>

namespace proofinfer {

// The vector unit's control register is handled directly on the two common architectures: a read and a write instead of the C library's
// save of the whole state, and flush-to-zero is part of it. Elsewhere the C library's functions do the same.
#if defined(__x86_64__)

static constexpr uint32_t kDefaultMxcsr = 0x1F80;  // all exceptions masked, round to nearest, no FTZ, no DAZ

FpScope::FpScope() {
  uint32_t mxcsr = __builtin_ia32_stmxcsr();
  memcpy(saved_, &mxcsr, sizeof(mxcsr));
  __builtin_ia32_ldmxcsr(kDefaultMxcsr);
}
FpScope::~FpScope() {
  uint32_t mxcsr;
  memcpy(&mxcsr, saved_, sizeof(mxcsr));
  __builtin_ia32_ldmxcsr(mxcsr);
}

#elif defined(__aarch64__)

FpScope::FpScope() {
  uint64_t state[2];
  __asm__ __volatile__("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(state[0]), "=r"(state[1]));
  memcpy(saved_, state, sizeof(state));
  __asm__ __volatile__("msr fpcr, %0" : : "r"(uint64_t(0)));  // round to nearest, no flush, default-NaN off, traps off
}
FpScope::~FpScope() {
  uint64_t state[2];
  memcpy(state, saved_, sizeof(state));
  __asm__ __volatile__("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(state[0]), "r"(state[1]));
}

#else

static_assert(sizeof(fenv_t) <= 64, "the saved environment does not fit");

FpScope::FpScope() {
  fenv_t environment;
  fegetenv(&environment);
  memcpy(saved_, &environment, sizeof(environment));
  fesetenv(FE_DFL_ENV);
}
FpScope::~FpScope() {
  fenv_t environment;
  memcpy(&environment, saved_, sizeof(environment));
  fesetenv(&environment);
}

#endif

}  // namespace proofinfer
