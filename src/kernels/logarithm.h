/* The library's own natural logarithm (docs/arithmetic.md); no kernel needs it. Any thread. */
#ifndef PROOFINFER_KERNELS_LOGARITHM_H
#define PROOFINFER_KERNELS_LOGARITHM_H

#ifdef __cplusplus
extern "C" {
#endif

/* ln x of a normal x > 0: powf's log2 in double, times ln 2, rounded to float. NaN outside of the domain. */
float pi_logf(float x);

#ifdef __cplusplus
}
#endif

#endif
