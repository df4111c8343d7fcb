#include "proved/sampling.h"

#include "proved/float_contract.h"

/* Elements that are compared before the first of them is looked at one by one. */
#define PI_ARGMAX_BLOCK 256

/* Whether one of x[begin .. end-1] is greater than bound. No early exit: compilers make it vectors. */
/*@ requires begin <= end && \valid_read(x + (begin .. end - 1));
    terminates \true;
    assigns \nothing;
    ensures none_greater: \result == 0 ==> \forall integer j; begin <= j < end ==> !\gt_float(x[j], bound); */
static int any_greater(const float *x, size_t begin, size_t end, float bound) {
  int any = 0;
  /*@ loop invariant greater_range: begin <= i <= end;
      loop invariant greater_none: any == 0 ==> \forall integer j; begin <= j < i ==> !\gt_float(x[j], bound);
      loop assigns i, any;
      loop variant end - i; */
  for (size_t i = begin; i < end; i++) any = x[i] > bound ? 1 : any;
  return any;
}

size_t pi_argmax_f32(const float *x, size_t n) {
  size_t best = 0;
  float largest = x[0];
  /*@ loop invariant argmax_range: 0 <= first <= n && best < n && (best < first || best == 0);
      loop invariant argmax_value: AllFinite(x, n) ==> \eq_float(largest, x[best]);
      loop invariant argmax_largest: AllFinite(x, n) ==> \forall integer j; 0 <= j < first ==> \le_float(x[j], x[best]);
      loop invariant argmax_lowest: AllFinite(x, n) ==> \forall integer j; 0 <= j < best ==> \lt_float(x[j], x[best]);
      loop assigns first, best, largest;
      loop variant n - first; */
  for (size_t first = 0; first < n;) {
    size_t end = n - first < PI_ARGMAX_BLOCK ? n : first + PI_ARGMAX_BLOCK;
    if (any_greater(x, first, end, largest)) {
      /*@ loop invariant argmax_block_range: first <= i <= end && best < n && (best < i || best == 0);
          loop invariant argmax_block_value: AllFinite(x, n) ==> \eq_float(largest, x[best]);
          loop invariant argmax_block_largest: AllFinite(x, n) ==> \forall integer j; 0 <= j < i ==> \le_float(x[j], x[best]);
          loop invariant argmax_block_lowest: AllFinite(x, n) ==> \forall integer j; 0 <= j < best ==> \lt_float(x[j], x[best]);
          loop assigns i, best, largest;
          loop variant end - i; */
      for (size_t i = first; i < end; i++) {
        if (x[i] > largest) {
          best = i;
          largest = x[i];
        }
      }
    }
    first = end;
  }
  return best;
}

size_t pi_walk_f32(const float *probabilities, size_t n, float coin) {
  float cumulative = 0.0f;
  /*@ loop invariant walk_range: 0 <= i <= n;
      loop assigns i, cumulative;
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) {
    cumulative += probabilities[i];
    if (coin < cumulative) return i;
  }
  return n - 1; /* rounding left the sum below the coin */
}

size_t pi_nucleus_count_f32(const float *probabilities, size_t n, float top_p, float *total) {
  float cumulative = 0.0f;
  /*@ loop invariant nucleus_range: 0 <= i <= n;
      loop assigns i, cumulative;
      loop variant n - i; */
  for (size_t i = 0; i < n; i++) {
    cumulative += probabilities[i];
    if (cumulative > top_p) {
      *total = cumulative;
      return i + 1;
    }
  }
  *total = cumulative;
  return n;
}
