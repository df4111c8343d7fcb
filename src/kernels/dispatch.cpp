#include <string.h>

#include "kernels/cpu.h"
#include "kernels/elementary_vector.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

namespace proofinfer {
namespace {

struct Entry {
  const Kernels *kernels;
  const ElementaryForms *forms;
  bool CpuFeatures::*needs;  // nullptr: nothing
};

// Slowest first; the scalar one everywhere.
constexpr Entry kEntries[] = {
    {&kScalarKernels, &kScalarElementary, nullptr},
#if defined(__x86_64__)
    {&kSse2Kernels, &kSse2Elementary, &CpuFeatures::sse2},
    {&kAvx2Kernels, &kAvx2Elementary, &CpuFeatures::avx2},
    {&kAvx512Kernels, &kAvx512Elementary, &CpuFeatures::avx512},
    {&kAvx512VnniKernels, &kAvx512VnniElementary, &CpuFeatures::avx512_vnni},
#elif defined(__aarch64__)
    {&kNeonKernels, &kNeonElementary, &CpuFeatures::neon},
    {&kNeonDotKernels, &kNeonDotElementary, &CpuFeatures::neon_dot},
#endif
};

constexpr size_t kEntryCount = sizeof kEntries / sizeof kEntries[0];

}  // namespace

size_t kernels_count() { return kEntryCount; }

const Kernels *kernels_at(size_t index) { return kEntries[index].kernels; }

const ElementaryForms *elementary_forms_at(size_t index) { return kEntries[index].forms; }

bool kernels_available(size_t index) {
  if (!kEntries[index].needs) return true;
  CpuFeatures features = cpu_features();
  return features.*kEntries[index].needs;
}

const Kernels *kernels_best() {
  size_t index = kEntryCount - 1;
  while (!kernels_available(index)) index--;  // ends: the scalar table is always available
  return kernels_at(index);
}

const Kernels *kernels_named(const char *name, size_t name_bytes, bool *available) {
  for (size_t i = 0; i < kEntryCount; i++) {
    const Kernels *kernels = kernels_at(i);
    if (strlen(kernels->name) != name_bytes || memcmp(kernels->name, name, name_bytes) != 0) continue;
    *available = kernels_available(i);
    return kernels;
  }
  *available = false;
  return nullptr;
}

}  // namespace proofinfer
