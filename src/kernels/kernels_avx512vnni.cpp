// AVX-512 with VNNI: the AVX-512 kernels, with the instruction for dots of int8.
#if !defined(__AVX512VNNI__)
#error "compile this file with -mavx512vnni"
#endif
#include "kernels/kernels_avx512.cpp"
