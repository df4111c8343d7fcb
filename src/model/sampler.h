// Logits to a token id, by the reference's float32 arithmetic, with the state of its random generator. One thread at a time (guarded by busy()).
//
// Where the reference is undefined (docs/arithmetic.md):
// - Logits that are NaN or infinite are an error, before a number is drawn.
// - A temperature so small that divided logits overflow and leave no finite maximum takes the largest undivided logit (lowest id on ties):
//   the limit of small temperatures. A number is drawn, as at every temperature but 0.
// - A nucleus without candidates (a vocabulary of 1, or top_p below 1 / vocab_size with all probabilities nearly alike) gives id 0, which is
//   what the reference's recorded draws have there.
#ifndef PROOFINFER_MODEL_SAMPLER_H
#define PROOFINFER_MODEL_SAMPLER_H

#include "base/object.h"
#include "kernels/kernels.h"
#include "model/settings.h"

namespace proofinfer {

class Sampler : public Object {
 public:
  static constexpr Kind kKind = Kind::kSampler;
  // vocab_size is at least 1. Reserves everything that sample() needs.
  static Status create(int32_t vocab_size, const Settings &settings, Sampler **sampler, Failure *failure);
  Sampler(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  // logits: [vocab_size], not changed. kNotFinite: no number was drawn.
  Status sample(const float *logits, int32_t *token, Failure *failure);
  void reseed(uint64_t seed) { state_ = seed; }
  size_t vocab_size() const { return vocab_size_; }
  BusyFlag *busy() { return &busy_; }

 private:
  Status check_finite(const float *logits, Failure *failure) const;
  float draw();
  size_t sample_nucleus(float coin);
  size_t gather_candidates();
  void sort_candidates(size_t count);

  size_t vocab_size_ = 0;
  float temperature_ = 0.0f;
  float top_p_ = 0.0f;
  bool nucleus_ = false;  // top_p_ is inside (0, 1)
  uint64_t state_ = 0;    // of the generator
  const Kernels *kernels_ = nullptr;
  BusyFlag busy_;
  Buffer<float> probabilities_;  // [vocab_size] unless greedy
  Buffer<uint64_t> candidates_;  // [vocab_size] with a nucleus: descending key << 32 | id
  Buffer<uint64_t> scratch_;     // [vocab_size] with a nucleus
  Buffer<uint32_t> digits_;      // [kDigits] with a nucleus: where the next candidate with a digit goes
};

}  // namespace proofinfer

#endif
