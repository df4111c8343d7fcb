// NEON with dot products (an extension of ARMv8.2, in most CPUs since 2018): the NEON kernels, with the instruction for dots of int8.
#if !defined(__ARM_FEATURE_DOTPROD)
#error "compile this file with -march=armv8.2-a+dotprod"
#endif
#include "kernels/kernels_neon.cpp"
