/* Refuses to compile where float expressions would not have the bits of docs/arithmetic.md. Included by every file that computes. */
#ifndef PROOFINFER_PROVED_FLOAT_CONTRACT_H
#define PROOFINFER_PROVED_FLOAT_CONTRACT_H

#if defined(__FAST_MATH__)
#error "the arithmetic contract cannot be kept under -ffast-math or -Ofast"
#endif
/* On some machines ISO C modes mean double for float expressions; the GNU modes do not. */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "float expressions must be evaluated in float (FLT_EVAL_METHOD 0): compile C with -std=gnu17"
#endif

#endif
