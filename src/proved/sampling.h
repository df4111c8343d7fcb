/* Choosing a token from logits or probabilities: argmax and the two cumulative walks. */
#ifndef PROOFINFER_PROVED_SAMPLING_H
#define PROOFINFER_PROVED_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The index of the largest of x[0 .. n-1], n >= 1; the lowest index wins a tie. No x is NaN. */
size_t pi_argmax_f32(const float *x, size_t n);

/* The first index whose cumulative sum (in index order) exceeds `coin`; n - 1 if none does. n >= 1. */
size_t pi_walk_f32(const float *probabilities, size_t n, float coin);

/* The number of leading elements whose cumulative sum first exceeds top_p, at least 1, at most n; *total is that sum. n >= 1. */
size_t pi_nucleus_count_f32(const float *probabilities, size_t n, float top_p, float *total);

#ifdef __cplusplus
}
#endif

#endif
