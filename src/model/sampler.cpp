#include "model/sampler.h"

#include <math.h>
#include <string.h>

#include "base/fp_environment.h"
#include "model/logits.h"
#include "proved/sampling.h"

namespace proofinfer {

namespace {

bool has(const uint32_t *words, size_t id) { return words[id / 32] >> id % 32 & 1; }

bool is_inside_0_1(float value) { return value > 0.0f && value < 1.0f; }

float sum_of(const float *x, size_t n) {
  float sum = 0.0f;
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum;
}

}  // namespace

Status Sampler::create(int32_t vocab_size, const Settings &settings, Sampler **sampler, Failure *failure) {
  FpScope contract;  // rounds the options
  Ref<Sampler> made(Object::make<Sampler>(settings.hooks, settings.memory_limit_bytes, "sampler", failure));
  if (!made) return failure->status;
  Sampler *s = made.get();
  s->vocab_size_ = static_cast<size_t>(vocab_size);
  s->temperature_ = static_cast<float>(settings.temperature);
  s->top_p_ = static_cast<float>(settings.top_p);
  s->typical_p_ = static_cast<float>(settings.typical_p);
  s->min_p_ = static_cast<float>(settings.min_p);
  s->top_k_ = static_cast<size_t>(settings.top_k);
  s->nucleus_ = is_inside_0_1(s->top_p_);
  s->typical_ = is_inside_0_1(s->typical_p_);
  s->state_ = settings.seed;
  s->kernels_ = settings.kernels ? settings.kernels : kernels_best();
  Status status = s->penalties_.create(s->account(), s->vocab_size_, settings, failure);
  if (status == kOk) status = s->reserve(failure);
  if (status != kOk) return status;
  *sampler = made.take();
  return kOk;
}

Status Sampler::reserve(Failure *failure) {
  bool draws = temperature_ != 0.0f;
  Status status = kOk;
  if (draws || penalties_.active()) status = values_.allocate(account(), vocab_size_, "the sampler's probabilities", failure);
  if (status == kOk && draws && (filters_before_softmax() || typical_ || min_p_ > 0.0f))
    status = ids_.allocate(account(), vocab_size_, "the sampler's candidates", failure);
  if (status == kOk && draws && (filters_before_softmax() || typical_ || nucleus_))
    status = ranking_.reserve(account(), vocab_size_, failure);
  if (status == kOk && draws && typical_) status = scratch_.allocate(account(), vocab_size_, "the sampler's logarithms", failure);
  return status;
}

// xorshift64*, its upper 24 bits as a number in [0, 1).
float Sampler::draw() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  uint32_t upper = static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1Du) >> 32);
  return static_cast<float>(upper >> 8) / 16777216.0f;
}

Status Sampler::check_ids(const int32_t *ids, size_t count, Failure *failure) const {
  for (size_t i = 0; i < count; i++)
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= vocab_size_)
      return fail(failure, kArgument, "token %zu is %d; expected 0 to %zu", i, ids[i], vocab_size_ - 1);
  return kOk;
}

Status Sampler::accept(const int32_t *tokens, size_t count, Failure *failure) {
  if (Status status = check_ids(tokens, count, failure)) return status;
  for (size_t i = 0; i < count; i++) penalties_.accept(tokens[i]);
  return kOk;
}

// What a greedy sampler without penalties can do without.
Status Sampler::reserve_limits(Failure *failure) {
  Status status = kOk;
  if (!values_.count()) status = values_.allocate(account(), vocab_size_, "the sampler's probabilities", failure);
  if (status == kOk && !ids_.count()) status = ids_.allocate(account(), vocab_size_, "the sampler's candidates", failure);
  return status;
}

Status Sampler::check_biases(const int32_t *ids, const float *biases, size_t count, Failure *failure) {
  if (Status status = check_ids(ids, count, failure)) return status;
  for (size_t i = 0; i < count; i++)
    if (!is_finite(biases[i]))
      return fail(failure, kArgument, "the bias of token %d is %s", ids[i],
                  isnan(biases[i]) ? "NaN; expected a finite number"
                  : biases[i] > 0  ? "infinity; expected a finite number"
                                   : "-infinity; expected a finite number (ban the token instead)");
  Buffer<uint32_t> seen;
  if (Status status = seen.allocate(account(), word_count(), "the sampler's biases", failure)) return status;
  memset(seen.data(), 0, word_count() * sizeof(uint32_t));
  for (size_t i = 0; i < count; i++) {
    size_t id = static_cast<size_t>(ids[i]);
    if (has(seen.data(), id)) return fail(failure, kArgument, "token %zu is %d again; expected each id once", i, ids[i]);
    seen[id / 32] |= 1u << id % 32;
  }
  return kOk;
}

Status Sampler::set_bias(const int32_t *ids, const float *biases, size_t count, Failure *failure) {
  Buffer<int32_t> new_ids;
  Buffer<float> new_biases;
  Status status = count > 0 ? check_biases(ids, biases, count, failure) : kOk;
  if (status == kOk && count > 0) status = reserve_limits(failure);
  if (status == kOk) status = new_ids.allocate(account(), count, "the sampler's biases", failure);
  if (status == kOk) status = new_biases.allocate(account(), count, "the sampler's biases", failure);
  if (status != kOk) return status;
  if (count > 0) memcpy(new_ids.data(), ids, count * sizeof(int32_t));
  if (count > 0) memcpy(new_biases.data(), biases, count * sizeof(float));
  new_ids.swap(bias_ids_);
  new_biases.swap(biases_);
  return kOk;
}

Status Sampler::set_banned(const int32_t *ids, size_t count, Failure *failure) {
  Status status = check_ids(ids, count, failure);
  if (status == kOk && count > 0) status = reserve_limits(failure);
  if (status == kOk && count > 0 && !banned_.count())
    status = banned_.allocate(account(), word_count(), "the sampler's banned ids", failure);
  if (status != kOk) return status;
  banning_ = count > 0;
  if (banning_) memset(banned_.data(), 0, word_count() * sizeof(uint32_t));
  for (size_t i = 0; i < count; i++) banned_[static_cast<size_t>(ids[i]) / 32] |= 1u << ids[i] % 32;
  return kOk;
}

Status Sampler::set_mask(const uint32_t *words, size_t count, Failure *failure) {
  if (count != 0 && count != word_count())
    return fail(failure, kArgument, "the mask has %zu words of 32 bits; expected %zu for a vocab_size of %zu, or 0 to lift it", count,
                word_count(), vocab_size_);
  Status status = count > 0 ? reserve_limits(failure) : kOk;
  if (status == kOk && count > 0 && !mask_.count()) status = mask_.allocate(account(), count, "the sampler's mask", failure);
  if (status != kOk) return status;
  masked_ = count > 0;
  if (masked_) memcpy(mask_.data(), words, count * sizeof(uint32_t));
  return kOk;
}

void Sampler::reseed(uint64_t seed) {
  state_ = seed;
  penalties_.forget();
}

Status Sampler::sample(const float *logits, int32_t *token, Failure *failure) {
  FpScope contract;
  if (Status status = check_finite(logits, vocab_size_, failure)) return status;
  size_t id;
  if (temperature_ == 0.0f && !penalties_.active() && !is_limited() && bias_ids_.count() == 0) {
    id = pi_argmax_f32(logits, vocab_size_);
  } else {
    if (Status status = take_candidates(logits, failure)) return status;
    id = id_of(temperature_ == 0.0f ? pi_argmax_f32(values_.data(), count_) : choose_by_temperature());
  }
  *token = static_cast<int32_t>(id);
  penalties_.accept(*token);
  return kOk;
}

// What stays moves down; it is written before it is known to stay, at a place whose value has been read.
template <typename Keep>
void Sampler::keep_if(Keep keep) {
  float *values = values_.data();
  uint32_t *ids = ids_.data();
  size_t kept = 0;
  for (size_t i = 0; i < count_; i++) {
    bool stays = keep(i, values[i]);
    values[kept] = values[i];
    ids[kept] = static_cast<uint32_t>(id_of(i));
    kept += stays;
  }
  count_ = kept;
  thinned_ = true;
}

Status Sampler::take_candidates(const float *logits, Failure *failure) {
  memcpy(values_.data(), logits, vocab_size_ * sizeof(float));
  count_ = vocab_size_;
  thinned_ = false;
  if (penalties_.active()) penalties_.apply(values_.data());
  for (size_t i = 0; i < bias_ids_.count(); i++) {
    float *value = &values_[static_cast<size_t>(bias_ids_[i])];
    *value = held_finite(*value + biases_[i]);
  }
  if (masked_) keep_if([this](size_t i, float) { return has(mask_.data(), i); });
  if (banning_) keep_if([this](size_t i, float) { return !has(banned_.data(), id_of(i)); });
  return count_ > 0 ? kOk : fail_nothing_allowed(failure);
}

Status Sampler::fail_nothing_allowed(Failure *failure) const {
  size_t allowed = 0, banned = 0;
  for (size_t id = 0; id < vocab_size_; id++) {
    allowed += !masked_ || has(mask_.data(), id);
    banned += banning_ && has(banned_.data(), id);
  }
  return fail(failure, kState,
              "no id may be drawn: the mask allows %zu of %zu, and %zu are banned; expected at least one id that is allowed and not banned",
              allowed, vocab_size_, banned);
}

size_t Sampler::choose_by_temperature() {
  if (filters_before_softmax() && top_k_ < count_) keep_top_k();
  float *values = values_.data();
  size_t largest = pi_argmax_f32(values, count_);
  kernels_->divide_f32(values, count_, temperature_);
  float coin = draw();
  if (!is_finite(values[largest])) return largest;
  if (typical_)
    keep_typical();
  else
    kernels_->softmax_f32(values, 1, count_, count_);
  return choose_by_probability(coin);
}

void Sampler::keep_top_k() {
  ranking_.take_largest(values_.data(), count_, top_k_);
  uint64_t last = ranking_.entry_at(top_k_ - 1);
  keep_if([last](size_t i, float value) { return Ranking::entry(descending_key(value), i) <= last; });
}

// Softmax, then those whose surprise, -ln p, is nearest to the expected one.
void Sampler::keep_typical() {
  float *p = values_.data(), *logarithms = scratch_.data();
  LogSoftmax log_p = log_softmax(p, count_);
  for (size_t i = 0; i < count_; i++) logarithms[i] = log_p.of(p[i]);
  kernels_->softmax_f32(p, 1, count_, count_);
  float entropy = 0.0f;
  for (size_t i = 0; i < count_; i++)
    if (p[i] > 0.0f) entropy = entropy - p[i] * logarithms[i];
  ranking_.clear();
  for (size_t i = 0; i < count_; i++) ranking_.add_if(p[i] > 0.0f, ascending_key(fabsf(logarithms[i] + entropy)), i);
  ranking_.sort();
  float *ranked = scratch_.data(), total;
  for (size_t rank = 0; rank < ranking_.count(); rank++) ranked[rank] = p[ranking_[rank]];
  size_t kept = pi_nucleus_count_f32(ranked, ranking_.count(), typical_p_, &total);
  for (size_t rank = kept; rank < ranking_.count(); rank++) p[ranking_[rank]] = 0.0f;
  keep_if([](size_t, float value) { return value > 0.0f; });
  kernels_->divide_f32(p, count_, sum_of(p, count_));
}

size_t Sampler::choose_by_probability(float coin) {
  if (nucleus_) return choose_from_nucleus(coin);
  if (!(min_p_ > 0.0f)) return pi_walk_f32(values_.data(), count_, coin);
  float least = min_p_ * values_[pi_argmax_f32(values_.data(), count_)];
  keep_if([least](size_t, float value) { return value >= least; });
  return pi_walk_f32(values_.data(), count_, coin * sum_of(values_.data(), count_));
}

// A probability below the cutoff is in the nucleus only if it is the largest of all: else what stands before it sums to no more than top_p, and it
// and what follows, n - 1 at most, to less than 1 - top_p.
size_t Sampler::choose_from_nucleus(float coin) {
  if (count_ == 1) return 0;
  float *p = values_.data();
  float cutoff = (1.0f - top_p_) / static_cast<float>(count_ - 1);
  ranking_.clear();
  for (size_t i = 0; i < count_; i++) ranking_.add_if(p[i] >= cutoff, descending_key(p[i]), i);
  if (ranking_.count() == 0) return 0;
  ranking_.sort();
  for (size_t rank = 0; rank < ranking_.count(); rank++) p[rank] = descending_value(ranking_.key_at(rank));
  float total;
  size_t kept = pi_nucleus_count_f32(p, ranking_.count(), top_p_, &total);
  if (min_p_ > 0.0f) {
    float least = min_p_ * p[0];
    while (p[kept - 1] < least) kept--;
    total = sum_of(p, kept);
  }
  return ranking_[pi_walk_f32(p, kept, coin * total)];
}

}  // namespace proofinfer
