// Macros of the kernels_<isa>.cpp files. No code.
#ifndef PROOFINFER_KERNELS_ISA_H
#define PROOFINFER_KERNELS_ISA_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PI_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define PI_SANITIZER
#endif
#endif

// Not forced without optimisation: each inlined call would then have its own registers on the stack, tens of kilobytes of them. Nor for
// sanitizers, whose checks of every access take minutes to compile then.
#if defined(__OPTIMIZE__) && !defined(PI_SANITIZER)
#define PI_INLINE static inline __attribute__((always_inline))
#define PI_LAMBDA_INLINE __attribute__((always_inline))
#define PI_INLINE_MEMBER inline __attribute__((always_inline))
#else
#define PI_INLINE static inline
#define PI_LAMBDA_INLINE
#define PI_INLINE_MEMBER inline
#endif

// Before a loop of few, constant trips over registers: without it an array of registers may end up in memory below -O3.
#if defined(PI_SANITIZER)
#define PI_UNROLL
#elif defined(__clang__)
#define PI_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PI_UNROLL _Pragma("GCC unroll 8")
#endif

#endif
