/* Helpers of the proof (docs/proof.md): identity of values, and lemmas about products that the provers do not find by themselves. A lemma
 * is a ghost function whose contract is proved like any other; the compiler sees an empty header. */
#ifndef PROOFINFER_PROVED_LEMMAS_H
#define PROOFINFER_PROVED_LEMMAS_H

#include <stddef.h>

/*@ // The same value, bit for bit where a float has one encoding: not C's ==, which calls -0 and +0 equal and NaN unequal to itself.
    predicate Same<t>(t a, t b) = a == b;
    predicate Kept{L1, L2}(float *p, integer n) = \forall integer k; 0 <= k < n ==> Same(\at(p[k], L1), \at(p[k], L2)); */

/*@ ghost
  /@ requires a <= b;
     terminates \true;
     assigns \nothing;
     ensures product_le: a * c <= b * c; @/
  static inline void pi_product_le(size_t a, size_t b, size_t c) {} */

#endif
