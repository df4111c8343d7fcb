/* Checked arithmetic on sizes: the same in every build mode, false instead of a wrapped result. */
#ifndef PROOFINFER_PROVED_CHECKED_H
#define PROOFINFER_PROVED_CHECKED_H

#include <stdint.h>

/* Sizes stay below this, so that they fit a signed file offset too. */
#define PI_SIZE_MAX 0x7fffffffffffffffu

/* *sum = a + b, or 0 if that exceeds PI_SIZE_MAX. */
/*@ requires \valid(sum);
    terminates \true;
    assigns *sum;
    ensures add_exact: \result != 0 ==> *sum == a + b <= PI_SIZE_MAX;
    ensures add_refused: \result == 0 ==> a + b > PI_SIZE_MAX; */
static inline int pi_add_checked(uint64_t a, uint64_t b, uint64_t *sum) {
  if (a > PI_SIZE_MAX || b > PI_SIZE_MAX - a) return 0;
  *sum = a + b;
  return 1;
}

/* *product = a * b, or 0 if that exceeds PI_SIZE_MAX. */
/*@ requires \valid(product);
    terminates \true;
    assigns *product;
    ensures mul_exact: \result != 0 ==> *product == a * b <= PI_SIZE_MAX;
    ensures mul_refused: \result == 0 ==> a * b > PI_SIZE_MAX; */
static inline int pi_mul_checked(uint64_t a, uint64_t b, uint64_t *product) {
  if (a != 0 && b > PI_SIZE_MAX / a) return 0;
  *product = a * b;
  return 1;
}

#endif
