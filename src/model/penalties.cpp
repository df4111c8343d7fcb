#include "model/penalties.h"

#include <string.h>

namespace proofinfer {

Status Penalties::create(Account *account, size_t vocab_size, const Settings &settings, Failure *failure) {
  repetition_ = static_cast<float>(settings.repetition_penalty);
  frequency_ = static_cast<float>(settings.frequency_penalty);
  presence_ = static_cast<float>(settings.presence_penalty);
  if (repetition_ == 1.0f && frequency_ == 0.0f && presence_ == 0.0f) return kOk;
  Status status = occurrences_.allocate(account, vocab_size, "the sampler's occurrences", failure);
  if (status == kOk)
    status = window_.allocate(account, static_cast<size_t>(settings.penalty_window), "the sampler's penalty window", failure);
  if (status == kOk) memset(occurrences_.data(), 0, vocab_size * sizeof(int32_t));
  return status;
}

void Penalties::accept(int32_t token) {
  if (!active()) return;
  if (count_ == window_.count())
    occurrences_[static_cast<size_t>(window_[next_])]--;
  else
    count_++;
  window_[next_] = token;
  occurrences_[static_cast<size_t>(token)]++;
  next_ = next_ + 1 == window_.count() ? 0 : next_ + 1;
}

void Penalties::forget() {
  for (size_t i = 0; i < count_; i++) occurrences_[static_cast<size_t>(window_[i])] = 0;
  count_ = next_ = 0;
}

void Penalties::apply(float *values) {
  // A window that is not full begins at 0, so that its tokens are the first count_ in any case.
  for (size_t i = 0; i < count_; i++) {
    size_t id = static_cast<size_t>(window_[i]);
    int32_t occurrences = occurrences_[id];
    if (occurrences < 0) continue;
    occurrences_[id] = -occurrences;
    float value = values[id] > 0.0f ? values[id] / repetition_ : values[id] * repetition_;
    values[id] = held_finite((value - static_cast<float>(occurrences) * frequency_) - presence_);
  }
  for (size_t i = 0; i < count_; i++) {
    int32_t *occurrences = &occurrences_[static_cast<size_t>(window_[i])];
    if (*occurrences < 0) *occurrences = -*occurrences;
  }
}

}  // namespace proofinfer
