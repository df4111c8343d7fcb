// What is read off the model's logits: whether they are finite, log-probabilities, the largest. Bits by docs/arithmetic.md. No state, any thread.
#ifndef PROOFINFER_MODEL_LOGITS_H
#define PROOFINFER_MODEL_LOGITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

namespace proofinfer {

bool is_finite(float value);
// kNotFinite: names the first that is not. logits: [n].
Status check_finite(const float *logits, size_t n, Failure *failure);

// ln p[i] = (x[i] - largest) - log_sum.
struct LogSoftmax {
  float largest;  // of all x
  float log_sum;  // ln of the sum, in index order, of expf(x[i] - largest)
  float of(float x) const { return (x - largest) - log_sum; }
};

// x: [n], n >= 1, none NaN, the largest finite. In the contract's floating-point environment.
LogSoftmax log_softmax(const float *x, size_t n);

// The `count` (at most n) largest in descending order, lower ids first on ties. logits: [n], none NaN; ids: [count].
void largest_logits(const float *logits, size_t n, int32_t *ids, size_t count);

}  // namespace proofinfer

#endif
