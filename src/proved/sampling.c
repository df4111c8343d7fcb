#include "proved/sampling.h"

#include "proved/float_contract.h"

size_t pi_argmax_f32(const float *x, size_t n) {
  size_t best = 0;
  float largest = x[0];
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
  for (size_t i = 0; i < n; i++) {
    cumulative += probabilities[i];
    if (coin < cumulative) return i;
  }
  return n - 1; /* rounding left the sum below the coin */
}

size_t pi_nucleus_count_f32(const float *probabilities, size_t n, float top_p, float *total) {
  float cumulative = 0.0f;
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
