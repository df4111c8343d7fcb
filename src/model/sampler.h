// Logits to a token id: penalties, biases and bans, the filters, the draw, in the order of docs/arithmetic.md. One thread at a time (guarded by busy()).
//
// Where the reference is undefined (docs/arithmetic.md):
// - Logits that are NaN or infinite are an error, before a number is drawn.
// - A temperature so small that divided logits overflow and leave no finite maximum takes the largest undivided logit (lowest id on ties):
//   the limit of small temperatures. A number is drawn, as at every temperature but 0.
// - A nucleus without candidates (a vocabulary of 1, or top_p below 1 / vocab_size with all probabilities nearly alike) gives id 0, which is
//   what the reference's recorded draws have there; where candidates were taken out before, the first that is left.
#ifndef PROOFINFER_MODEL_SAMPLER_H
#define PROOFINFER_MODEL_SAMPLER_H

#include "base/object.h"
#include "kernels/kernels.h"
#include "model/penalties.h"
#include "model/ranking.h"
#include "model/settings.h"

namespace proofinfer {

class Sampler : public Object {
 public:
  static constexpr Kind kKind = Kind::kSampler;
  // vocab_size is at least 1. Reserves everything that sample() needs.
  static Status create(int32_t vocab_size, const Settings &settings, Sampler **sampler, Failure *failure);
  Sampler(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  // logits: [vocab_size], not changed. The token joins the penalties' window. On failure nothing has changed and no number was drawn.
  Status sample(const float *logits, int32_t *token, Failure *failure);
  // Tokens of another origin join the window. kArgument: an id outside the vocabulary; then none has.
  Status accept(const int32_t *tokens, size_t count, Failure *failure);
  // These replace those of before; on failure nothing has changed. kArgument, kMemory, kLimit.
  // ids: [count], each once; biases: [count], finite.
  Status set_bias(const int32_t *ids, const float *biases, size_t count, Failure *failure);
  Status set_banned(const int32_t *ids, size_t count, Failure *failure);
  // words: [count], bit i % 32 of word i / 32 allows id i; count 0: all are allowed.
  Status set_mask(const uint32_t *words, size_t count, Failure *failure);
  // As newly made with this seed; biases, bans and mask stay.
  void reseed(uint64_t seed);
  size_t vocab_size() const { return vocab_size_; }
  BusyFlag *busy() { return &busy_; }

 private:
  Status reserve(Failure *failure);
  Status reserve_limits(Failure *failure);
  Status check_ids(const int32_t *ids, size_t count, Failure *failure) const;
  Status check_biases(const int32_t *ids, const float *biases, size_t count, Failure *failure);
  Status fail_nothing_allowed(Failure *failure) const;
  size_t word_count() const { return (vocab_size_ + 31) / 32; }
  bool is_limited() const { return masked_ || banning_; }
  float draw();
  bool filters_before_softmax() const { return top_k_ > 0 && top_k_ < vocab_size_; }
  // Candidates: count_ of them in ascending order of their ids, with their values; thinned_: they are not the whole vocabulary.
  size_t id_of(size_t candidate) const { return thinned_ ? ids_[candidate] : candidate; }
  template <typename Keep>
  void keep_if(Keep keep);
  Status take_candidates(const float *logits, Failure *failure);
  void keep_top_k();
  void keep_typical();
  size_t choose_by_temperature();
  size_t choose_by_probability(float coin);
  size_t choose_from_nucleus(float coin);

  size_t vocab_size_ = 0;
  float temperature_ = 0.0f;
  float top_p_ = 0.0f, typical_p_ = 0.0f, min_p_ = 0.0f;
  size_t top_k_ = 0;      // 0: off
  bool nucleus_ = false;  // top_p_ is inside (0, 1)
  bool typical_ = false;  // typical_p_ is
  uint64_t state_ = 0;    // of the generator
  const Kernels *kernels_ = nullptr;
  BusyFlag busy_;
  Penalties penalties_;
  Buffer<int32_t> bias_ids_;  // [n] with their biases_: [n]
  Buffer<float> biases_;
  bool banning_ = false, masked_ = false;
  Buffer<uint32_t> banned_;  // [word_count()] a bit an id
  Buffer<uint32_t> mask_;    // [word_count()] of those that are allowed
  size_t count_ = 0;
  bool thinned_ = false;
  Buffer<float> values_;   // [vocab_size] unless plainly greedy: adjusted logits, later probabilities, of the candidates
  Buffer<uint32_t> ids_;   // [vocab_size] if candidates may be taken out
  Buffer<float> scratch_;  // [vocab_size] with typical_: logarithms
  Ranking ranking_;
};

}  // namespace proofinfer

#endif
