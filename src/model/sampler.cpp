#include "model/sampler.h"

#include <math.h>
#include <string.h>

#include "base/fp_environment.h"
#include "proved/sampling.h"

namespace proofinfer {

namespace {

// The bits of a float in [0, 1] are a number below 2^30 that orders as the float does: three digits.
constexpr uint32_t kDigitBits = 10, kDigits = 1u << kDigitBits, kKeyBits = 30;
constexpr uint32_t kKeyMask = (1u << kKeyBits) - 1;
constexpr size_t kBlock = 1024;

uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

bool is_finite(float value) { return (bits_of(value) & 0x7F800000u) != 0x7F800000u; }

// A larger probability has a smaller key, so that ascending keys are descending probabilities.
uint64_t candidate(float probability, size_t id) { return static_cast<uint64_t>(~bits_of(probability) & kKeyMask) << 32 | id; }
float probability_of(uint64_t candidate) { return float_of(~static_cast<uint32_t>(candidate >> 32) & kKeyMask); }

}  // namespace

Status Sampler::create(int32_t vocab_size, const Settings &settings, Sampler **sampler, Failure *failure) {
  FpScope contract;  // rounds the options
  Ref<Sampler> made(Object::make<Sampler>(settings.hooks, settings.memory_limit_bytes, "sampler", failure));
  if (!made) return failure->status;
  Sampler *s = made.get();
  size_t count = s->vocab_size_ = static_cast<size_t>(vocab_size);
  s->temperature_ = static_cast<float>(settings.temperature);
  s->top_p_ = static_cast<float>(settings.top_p);
  s->nucleus_ = s->temperature_ != 0.0f && s->top_p_ > 0.0f && s->top_p_ < 1.0f;
  s->state_ = settings.seed;
  s->kernels_ = kernels_best();
  Account *account = s->account();
  Status status = kOk;
  if (s->temperature_ != 0.0f) status = s->probabilities_.allocate(account, count, "the sampler's probabilities", failure);
  if (status == kOk && s->nucleus_) status = s->candidates_.allocate(account, count, "the sampler's candidates", failure);
  if (status == kOk && s->nucleus_) status = s->scratch_.allocate(account, count, "the sampler's candidates", failure);
  if (status == kOk && s->nucleus_) status = s->digits_.allocate(account, kDigits, "the sampler's digits", failure);
  if (status != kOk) return status;
  *sampler = made.take();
  return kOk;
}

Status Sampler::check_finite(const float *logits, Failure *failure) const {
  for (size_t begin = 0; begin < vocab_size_; begin += kBlock) {
    size_t end = vocab_size_ - begin < kBlock ? vocab_size_ : begin + kBlock;
    uint32_t bad = 0;
    for (size_t i = begin; i < end; i++) bad |= !is_finite(logits[i]);  // no early exit: the compiler makes it vectors
    if (!bad) continue;
    size_t i = begin;
    while (is_finite(logits[i])) i++;
    return fail(failure, kNotFinite, "the logit of id %zu is %s; expected finite values", i,
                isnan(logits[i]) ? "NaN"
                : logits[i] > 0  ? "infinity"
                                 : "-infinity");
  }
  return kOk;
}

// xorshift64*, its upper 24 bits as a number in [0, 1).
float Sampler::draw() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  uint32_t upper = static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1Du) >> 32);
  return static_cast<float>(upper >> 8) / 16777216.0f;
}

Status Sampler::sample(const float *logits, int32_t *token, Failure *failure) {
  FpScope contract;
  if (Status status = check_finite(logits, failure)) return status;
  size_t n = vocab_size_, id;
  if (temperature_ == 0.0f) {
    id = pi_argmax_f32(logits, n);
  } else {
    float *p = probabilities_.data();
    memcpy(p, logits, n * sizeof(float));
    kernels_->divide_f32(p, n, temperature_);
    kernels_->softmax_f32(p, 1, n, n);
    float coin = draw();
    // An infinite maximum has made all of them NaN.
    id = isnan(p[0]) ? pi_argmax_f32(logits, n) : nucleus_ ? sample_nucleus(coin) : pi_walk_f32(p, n, coin);
  }
  *token = static_cast<int32_t>(id);
  return kOk;
}

// Those that can be in the nucleus, in the order of their ids. A probability below the cutoff is in it only if it is the largest of all: else
// what stands before it sums to no more than top_p, and it and what follows, n - 1 at most, to less than 1 - top_p.
size_t Sampler::gather_candidates() {
  float cutoff = (1.0f - top_p_) / static_cast<float>(vocab_size_ - 1);
  const float *p = probabilities_.data();
  uint64_t *to = candidates_.data();
  size_t count = 0;
  for (size_t i = 0; i < vocab_size_; i++) {
    to[count] = candidate(p[i], i);
    count += p[i] >= cutoff;  // no branch: what stays is overwritten
  }
  return count;
}

// Ascending keys; equal ones keep their order, which is that of the ids. Digit by digit from the last.
void Sampler::sort_candidates(size_t count) {
  uint32_t *places = digits_.data();
  for (uint32_t shift = 32; shift < 32 + kKeyBits; shift += kDigitBits) {
    const uint64_t *from = candidates_.data();
    uint64_t *to = scratch_.data();
    memset(places, 0, kDigits * sizeof(uint32_t));
    for (size_t i = 0; i < count; i++) places[from[i] >> shift & (kDigits - 1)]++;
    uint32_t place = 0;
    for (size_t d = 0; d < kDigits; d++) {
      uint32_t here = places[d];
      places[d] = place;
      place += here;
    }
    for (size_t i = 0; i < count; i++) to[places[from[i] >> shift & (kDigits - 1)]++] = from[i];
    candidates_.swap(scratch_);
  }
}

size_t Sampler::sample_nucleus(float coin) {
  size_t count = vocab_size_ > 1 ? gather_candidates() : 0;
  if (count == 0) return 0;
  sort_candidates(count);
  float *sorted = probabilities_.data();
  for (size_t i = 0; i < count; i++) sorted[i] = probability_of(candidates_[i]);
  float total = 0.0f;
  size_t kept = pi_nucleus_count_f32(sorted, count, top_p_, &total);
  return static_cast<uint32_t>(candidates_[pi_walk_f32(sorted, kept, coin * total)]);
}

}  // namespace proofinfer
