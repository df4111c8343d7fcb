// What this CPU and its operating system can run. Any thread.
#ifndef PROOFINFER_KERNELS_CPU_H
#define PROOFINFER_KERNELS_CPU_H

namespace proofinfer {

// A feature counts only when the operating system saves the registers it needs.
struct CpuFeatures {
  bool sse2;         // the x86-64 base
  bool avx2;         // with fma and f16c
  bool avx512;       // f, bw, dq and vl, with avx2, fma and f16c
  bool avx512_vnni;  // with avx512
  bool neon;         // the aarch64 base
  bool neon_dot;     // with the dot-product instructions
};

CpuFeatures cpu_features();

}  // namespace proofinfer

#endif
