#include "proved/sampling.h"

#include "proved/float_contract.h"

size_t pi_argmax_f32(const float *x, size_t n) {
  size_t best = 0;
  float largest = x[0];
  /*@ loop invariant argmax_range: 1 <= i <= n && best < i;
      loop invariant argmax_value: AllFinite(x, n) ==> \eq_float(largest, x[best]);
      loop invariant argmax_largest: AllFinite(x, n) ==> \forall integer j; 0 <= j < i ==> \le_float(x[j], x[best]);
      loop invariant argmax_lowest: AllFinite(x, n) ==> \forall integer j; 0 <= j < best ==> \lt_float(x[j], x[best]);
      loop assigns i, best, largest;
      loop variant n - i; */
  for (size_t i = 1; i < n; i++) {
    if (x[i] > largest) {
      best = i;
      largest = x[i];
    }
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
