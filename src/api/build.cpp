#include "kernels/kernels.h"
#include "proofinfer.h"

#define PROOFINFER_QUOTE_(value) #value
#define PROOFINFER_QUOTE(value) PROOFINFER_QUOTE_(value)

#if defined(__clang__)
#define PROOFINFER_COMPILER "clang " __clang_version__
#else
#define PROOFINFER_COMPILER "gcc " __VERSION__
#endif

#if defined(__x86_64__)
#define PROOFINFER_MACHINE "x86-64, kernels scalar sse2 avx2 avx512 avx512vnni"
#elif defined(__aarch64__)
#define PROOFINFER_MACHINE "aarch64, kernels scalar neon neondot"
#elif defined(__riscv)
#define PROOFINFER_MACHINE "riscv64, kernels scalar"
#elif defined(__s390x__)
#define PROOFINFER_MACHINE "s390x, kernels scalar"
#else
#define PROOFINFER_MACHINE "another architecture, kernels scalar"
#endif

extern "C" {

int32_t proofinfer_version_number(void) { return PROOFINFER_VERSION_NUMBER; }

const char *proofinfer_version_text(void) {
  return PROOFINFER_QUOTE(PROOFINFER_VERSION_MAJOR) "." PROOFINFER_QUOTE(PROOFINFER_VERSION_MINOR) "." PROOFINFER_QUOTE(
      PROOFINFER_VERSION_PATCH);
}

const char *proofinfer_build_text(void) { return PROOFINFER_COMPILER ", " PROOFINFER_MACHINE; }

size_t proofinfer_isa_count(void) { return proofinfer::kernels_count(); }

const char *proofinfer_isa_name(size_t index) {
  return index < proofinfer::kernels_count() ? proofinfer::kernels_at(index)->name : nullptr;
}

int32_t proofinfer_isa_available(size_t index) { return index < proofinfer::kernels_count() && proofinfer::kernels_available(index); }

}  // extern "C"
