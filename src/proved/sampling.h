/* Choosing a token from logits or probabilities: argmax and the two cumulative walks. */
#ifndef PROOFINFER_PROVED_SAMPLING_H
#define PROOFINFER_PROVED_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*@ predicate AllFinite{L}(float *x, integer n) = \forall integer i; 0 <= i < n ==> \is_finite(x[i]); */

/* The index of the largest of x[0 .. n-1], n >= 1; the lowest index wins a tie. No x is NaN. */
/*@ requires 1 <= n && \valid_read(x + (0 .. n - 1));
    terminates \true;
    assigns \nothing;
    ensures argmax_in_range: \result < n;
    ensures argmax_largest: AllFinite(x, n) ==> \forall integer i; 0 <= i < n ==> \le_float(x[i], x[\result]);
    ensures argmax_lowest: AllFinite(x, n) ==> \forall integer i; 0 <= i < \result ==> \lt_float(x[i], x[\result]); */
size_t pi_argmax_f32(const float *x, size_t n);

/* The first index whose cumulative sum (in index order) exceeds `coin`; n - 1 if none does. n >= 1. */
/*@ requires 1 <= n && \valid_read(probabilities + (0 .. n - 1));
    terminates \true;
    assigns \nothing;
    ensures walk_in_range: \result < n; */
size_t pi_walk_f32(const float *probabilities, size_t n, float coin);

/* The number of leading elements whose cumulative sum first exceeds top_p, at least 1, at most n; *total is that sum. n >= 1. */
/*@ requires 1 <= n && \valid_read(probabilities + (0 .. n - 1)) && \valid(total) && \separated(total, probabilities + (0 .. n - 1));
    terminates \true;
    assigns *total;
    ensures nucleus_in_range: 1 <= \result <= n; */
size_t pi_nucleus_count_f32(const float *probabilities, size_t n, float top_p, float *total);

#ifdef __cplusplus
}
#endif

#endif
