// Random logits and sampler settings, and short forms for drawing with them. One thread.
#ifndef PROOFINFER_TESTS_SUPPORT_RANDOM_SAMPLING_H
#define PROOFINFER_TESTS_SUPPORT_RANDOM_SAMPLING_H

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "support/handles.h"
#include "support/plain_sampler.h"

namespace proofinfer_test {

struct Random {
  uint64_t state;
  uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t((state >> 33) % n);
  }
  template <typename T, size_t n>
  T of(const T (&values)[n]) {
    return values[below(uint32_t(n))];
  }
};

inline Options options_of(const PlainSampler &plain) {
  Options options = make_options();
  set_f64(options, "temperature", double(plain.temperature));
  set_f64(options, "top_p", double(plain.top_p));
  set_f64(options, "typical_p", double(plain.typical_p));
  set_f64(options, "min_p", double(plain.min_p));
  set(options, "top_k", int64_t(plain.top_k));
  set_f64(options, "repetition_penalty", double(plain.repetition));
  set_f64(options, "frequency_penalty", double(plain.frequency));
  set_f64(options, "presence_penalty", double(plain.presence));
  set(options, "penalty_window", int64_t(plain.window_size));
  set_u64(options, "seed", plain.state);
  return options;
}

inline Answer sample_answer(const Sampler &sampler, const std::vector<float> &logits, int32_t *token) {
  return answer_of(proofinfer_sampler_sample, sampler.get(), logits.data(), logits.size(), token);
}

inline int32_t sample(const Sampler &sampler, const std::vector<float> &logits) {
  int32_t token = -7;
  Answer answer = sample_answer(sampler, logits, &token);
  EXPECT_TRUE(answer.ok()) << answer;
  return token;
}

inline Answer accept(const Sampler &sampler, const std::vector<int32_t> &tokens) {
  return answer_of(proofinfer_sampler_accept, sampler.get(), tokens.data(), tokens.size());
}

inline std::vector<int32_t> draws(const Sampler &sampler, const std::vector<float> &logits, size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; i++) ids.push_back(sample(sampler, logits));
  return ids;
}

inline std::set<int32_t> drawn(const PlainSampler &settings, const std::vector<float> &logits, size_t count = 500) {
  Sampler sampler = make_sampler(int32_t(logits.size()), options_of(settings).get());
  std::vector<int32_t> ids = draws(sampler, logits, count);
  return std::set<int32_t>(ids.begin(), ids.end());
}

inline std::vector<float> random_logits(Random *random, size_t n) {
  std::vector<float> logits(n);
  uint32_t kind = random->below(5);
  for (float &x : logits) {
    x = (float(random->below(1 << 24)) / float(1 << 23) - 1) * (kind == 0 ? 20.0f : kind == 1 ? 0.01f : 4.0f);
    if (kind == 2) x = std::round(x);  // ties, 0 and -0
    if (kind == 3 && random->below(10) == 0) x += 10.0f;
    if (kind == 4 && random->below(3) == 0) x -= 200.0f;  // probability 0
  }
  return logits;
}

inline PlainSampler random_settings(Random *random) {
  PlainSampler plain;
  plain.temperature = random->of<float>({0.0f, 0.1f, 0.7f, 1.0f, 1.5f, 100.0f, 1e-3f, 1e-38f});
  plain.top_p = random->of<float>({0.0f, 0.001f, 0.5f, 0.9f, 0.999f, 1.0f});
  plain.typical_p = random->of<float>({0.0f, 0.0f, 0.001f, 0.3f, 0.9f, 0.9999f, 1.0f});
  plain.min_p = random->of<float>({0.0f, 0.0f, 0.01f, 0.3f, 1.0f});
  plain.top_k = random->of<size_t>({0, 0, 1, 2, 5, 40, 100, 1000000});
  plain.repetition = random->of<float>({1.0f, 1.0f, 1.1f, 2.0f, 0.5f, 1000.0f, 0.001f});
  plain.frequency = random->of<float>({0.0f, 0.0f, 0.3f, -0.2f, 1000.0f});
  plain.presence = random->of<float>({0.0f, 0.0f, 0.7f, -1000.0f});
  plain.window_size = random->of<size_t>({1, 2, 7, 64, 300});
  plain.state = uint64_t(random->below(1u << 31)) << 32 | random->below(1u << 31);
  return plain;
}

inline std::string name_of(const PlainSampler &p, size_t n) {
  return "n " + std::to_string(n) + " temperature " + std::to_string(p.temperature) + " top_k " + std::to_string(p.top_k) + " typical_p " +
         std::to_string(p.typical_p) + " top_p " + std::to_string(p.top_p) + " min_p " + std::to_string(p.min_p) + " repetition " +
         std::to_string(p.repetition) + " frequency " + std::to_string(p.frequency) + " presence " + std::to_string(p.presence) +
         " window " + std::to_string(p.window_size);
}

inline PlainSampler at_temperature_1() {
  PlainSampler plain;
  plain.temperature = 1;
  plain.top_p = 0;
  return plain;
}

}  // namespace proofinfer_test

#endif
