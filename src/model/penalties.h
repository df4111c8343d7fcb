// Repetition, frequency and presence penalties over a window of the last tokens. One thread at a time.
#ifndef PROOFINFER_MODEL_PENALTIES_H
#define PROOFINFER_MODEL_PENALTIES_H

#include <float.h>

#include "base/memory.h"
#include "model/settings.h"

namespace proofinfer {

// An adjusted logit that overflowed becomes the nearest finite number. value is not NaN.
inline float held_finite(float value) { return value > FLT_MAX ? FLT_MAX : value < -FLT_MAX ? -FLT_MAX : value; }

class Penalties {
 public:
  // Reserves everything; nothing if no penalty is set.
  Status create(Account *account, size_t vocab_size, const Settings &settings, Failure *failure);
  bool active() const { return window_.count() > 0; }
  // Puts a token of the vocabulary behind the others; the oldest leaves a full window.
  void accept(int32_t token);
  void forget();
  // Changes the values, [vocab_size], of the tokens in the window (docs/arithmetic.md).
  void apply(float *values);

 private:
  float repetition_ = 1.0f, frequency_ = 0.0f, presence_ = 0.0f;
  Buffer<int32_t> window_;  // [penalty_window] a ring: the last count_ tokens stand before next_
  size_t count_ = 0, next_ = 0;
  Buffer<int32_t> occurrences_;  // [vocab_size] how often a token is in the window; negative: penalized already
};

}  // namespace proofinfer

#endif
