// Biases, bans and masks: what they allow is all that is drawn, by the plain form of the definition; nothing allowed is an error.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/random_sampling.h"

namespace proofinfer_test {

namespace {

using Ids = std::vector<int32_t>;

std::vector<uint32_t> words_of(const std::set<int32_t> &ids, size_t n) {
  std::vector<uint32_t> words((n + 31) / 32, 0);
  for (int32_t id : ids) words[size_t(id) / 32] |= 1u << id % 32;
  return words;
}

Answer set_mask(const Sampler &sampler, const std::vector<uint32_t> &words) {
  return answer_of(proofinfer_sampler_set_mask, sampler.get(), words.data(), words.size());
}
Answer set_banned(const Sampler &sampler, const Ids &ids) {
  return answer_of(proofinfer_sampler_set_banned, sampler.get(), ids.data(), ids.size());
}
Answer set_bias(const Sampler &sampler, const Ids &ids, const std::vector<float> &biases) {
  return answer_of(proofinfer_sampler_set_bias, sampler.get(), ids.data(), biases.data(), ids.size());
}

Sampler greedy(int32_t n) { return make_sampler(n); }

}  // namespace

TEST(SamplerLimits, draws_equal_the_definition_with_drawn_biases_bans_and_masks_on_every_kernel_set) {
  Random random{21};
  for (int round = 0; round < 400; round++) {
    size_t n = round % 50 == 0 ? 5000 : 1 + random.below(round % 3 ? 40 : 900);
    const PlainSampler settings = random_settings(&random);
    struct Draw {
      std::vector<float> logits;
      std::map<int32_t, float> biases;
      std::set<int32_t> banned, allowed;
      bool masked = false, changes = false;
      int32_t expected = -1;
    };
    std::vector<Draw> sequence(10);
    PlainSampler plain = settings;
    for (Draw &draw : sequence) {
      draw.logits = random_logits(&random, n);
      draw.changes = random.below(3) != 0;
      if (draw.changes) {
        for (uint32_t i = random.below(8); i > 0; i--)
          draw.biases[int32_t(random.below(uint32_t(n)))] = random.of<float>({5, -5, 0.1f, -100, 3e38f, -3e38f});
        for (uint32_t i = random.below(8); i > 0; i--) draw.banned.insert(int32_t(random.below(uint32_t(n))));
        draw.masked = random.below(2) == 0;
        for (uint32_t i = 1 + random.below(20); i > 0; i--) draw.allowed.insert(int32_t(random.below(uint32_t(n))));
        plain.biases = draw.biases;
        plain.banned = draw.banned;
        plain.masked = draw.masked;
        plain.allowed = draw.allowed;
      }
      draw.expected = plain.sample(draw.logits);
    }
    for (const std::string &isa : available_isas()) {
      Options options = options_of(settings);
      set_text(options, "isa", isa);
      Sampler sampler = make_sampler(int32_t(n), options.get());
      for (const Draw &draw : sequence) {
        if (draw.changes) {
          Ids ids;
          std::vector<float> biases;
          for (auto [id, bias] : draw.biases) ids.push_back(id), biases.push_back(bias);
          ASSERT_TRUE(set_bias(sampler, ids, biases).ok());
          ASSERT_TRUE(set_banned(sampler, Ids(draw.banned.begin(), draw.banned.end())).ok());
          ASSERT_TRUE(set_mask(sampler, draw.masked ? words_of(draw.allowed, n) : std::vector<uint32_t>()).ok());
        }
        int32_t token = -7;
        Answer answer = answer_of(proofinfer_sampler_sample, sampler.get(), draw.logits.data(), n, &token);
        ASSERT_EQ(token, draw.expected) << isa << " " << name_of(settings, n) << " " << answer;
        ASSERT_EQ(answer.status, draw.expected < 0 ? PROOFINFER_E_STATE : PROOFINFER_OK) << answer;
      }
    }
  }
}

TEST(SamplerLimits, everything_allowed_is_no_limit) {
  Random random{22};
  for (float top_p : {0.0f, 0.9f}) {
    PlainSampler settings = at_temperature_1();
    settings.top_p = top_p;
    std::vector<float> logits = random_logits(&random, 333);
    Sampler free = make_sampler(333, options_of(settings).get()), limited = make_sampler(333, options_of(settings).get());
    ASSERT_TRUE(set_mask(limited, std::vector<uint32_t>(11, UINT32_MAX)).ok()) << "bits behind the vocabulary are ignored";
    ASSERT_TRUE(set_banned(limited, {5}).ok());
    ASSERT_TRUE(set_banned(limited, {}).ok());
    ASSERT_TRUE(set_bias(limited, {5, 7}, {100, 0}).ok());
    ASSERT_TRUE(set_bias(limited, {}, {}).ok());
    EXPECT_EQ(draws(limited, logits, 100), draws(free, logits, 100));
  }
}

TEST(SamplerLimits, a_mask_stays_until_it_is_replaced_or_lifted) {
  Sampler sampler = greedy(70);
  std::vector<float> logits(70);
  for (size_t i = 0; i < 70; i++) logits[i] = float(i);
  ASSERT_TRUE(set_mask(sampler, words_of({0, 3, 31, 32, 64}, 70)).ok());
  EXPECT_EQ(draws(sampler, logits, 2), (Ids{64, 64}));
  ASSERT_TRUE(set_mask(sampler, words_of({0, 3, 31}, 70)).ok());
  EXPECT_EQ(sample(sampler, logits), 31);
  ASSERT_TRUE(set_banned(sampler, {31, 31, 69}).ok()) << "naming one twice is no mistake";
  EXPECT_EQ(sample(sampler, logits), 3);
  ASSERT_TRUE(set_mask(sampler, {}).ok());
  EXPECT_EQ(sample(sampler, logits), 68);
  ASSERT_TRUE(set_bias(sampler, {2, 69}, {1000, 5000}).ok());
  EXPECT_EQ(sample(sampler, logits), 2) << "a ban is stronger than a bias";
  ASSERT_TRUE(answer_of(proofinfer_sampler_reseed, sampler.get(), uint64_t(1)).ok());
  EXPECT_EQ(sample(sampler, logits), 2) << "a new seed lifts nothing";
}

TEST(SamplerLimits, nothing_allowed_is_an_error_that_draws_no_number_and_can_be_mended) {
  for (float temperature : {0.0f, 1.0f}) {
    PlainSampler settings = at_temperature_1();
    settings.temperature = temperature;
    settings.frequency = 0.5f;
    Sampler sampler = make_sampler(40, options_of(settings).get()), untouched = make_sampler(40, options_of(settings).get());
    std::vector<float> logits(40, 1.0f);
    auto refusal = [&](const Sampler &s) {
      int32_t token = 9;
      Answer answer = answer_of(proofinfer_sampler_sample, s.get(), logits.data(), size_t(40), &token);
      EXPECT_EQ(answer.status, PROOFINFER_E_STATE);
      EXPECT_EQ(token, -1);
      return answer.message;
    };
    ASSERT_TRUE(set_mask(sampler, {0, 0xFFFFFF00u}).ok());
    EXPECT_EQ(refusal(sampler),
              "no id may be drawn: the mask allows 0 of 40, and 0 are banned; expected at least one id that is allowed and not banned");
    ASSERT_TRUE(set_mask(sampler, {6, 0}).ok());
    ASSERT_TRUE(set_banned(sampler, {1, 2, 3}).ok());
    EXPECT_EQ(refusal(sampler),
              "no id may be drawn: the mask allows 2 of 40, and 3 are banned; expected at least one id that is allowed and not banned");
    Ids all(40);
    for (int32_t i = 0; i < 40; i++) all[size_t(i)] = i;
    ASSERT_TRUE(set_mask(sampler, {}).ok());
    ASSERT_TRUE(set_banned(sampler, all).ok());
    EXPECT_EQ(refusal(sampler),
              "no id may be drawn: the mask allows 40 of 40, and 40 are banned; expected at least one id that is allowed and not banned");
    ASSERT_TRUE(set_banned(sampler, {}).ok());
    EXPECT_EQ(draws(sampler, logits, 50), draws(untouched, logits, 50));
  }
}

TEST(SamplerLimits, wrong_arguments_are_refused_by_name_and_change_nothing) {
  Sampler sampler = greedy(40);
  std::vector<float> logits(40, 0.0f);
  ASSERT_TRUE(set_bias(sampler, {7, 8}, {3, 4}).ok());
  ASSERT_TRUE(set_banned(sampler, {8}).ok());
  ASSERT_TRUE(set_mask(sampler, {0xFF0, 0}).ok());
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  auto refused = [](const Answer &answer) {
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    return answer.message;
  };
  EXPECT_EQ(refused(set_bias(sampler, {1, 40}, {1, 1})), "token 1 is 40; expected 0 to 39");
  EXPECT_EQ(refused(set_bias(sampler, {-1}, {1})), "token 0 is -1; expected 0 to 39");
  EXPECT_EQ(refused(set_bias(sampler, {1, 2}, {1, nan})), "the bias of token 2 is NaN; expected a finite number");
  EXPECT_EQ(refused(set_bias(sampler, {1}, {infinity})), "the bias of token 1 is infinity; expected a finite number");
  EXPECT_EQ(refused(set_bias(sampler, {1}, {-infinity})),
            "the bias of token 1 is -infinity; expected a finite number (ban the token instead)");
  EXPECT_EQ(refused(set_bias(sampler, {1, 2, 1}, {1, 2, 3})), "token 2 is 1 again; expected each id once");
  EXPECT_EQ(refused(set_banned(sampler, {3, 40})), "token 1 is 40; expected 0 to 39");
  EXPECT_EQ(refused(set_mask(sampler, {1})), "the mask has 1 words of 32 bits; expected 2 for a vocab_size of 40, or 0 to lift it");
  EXPECT_EQ(refused(set_mask(sampler, {1, 2, 3})), "the mask has 3 words of 32 bits; expected 2 for a vocab_size of 40, or 0 to lift it");
  EXPECT_EQ(refused(answer_of(proofinfer_sampler_set_mask, sampler.get(), static_cast<const uint32_t *>(nullptr), size_t(2))),
            "mask is NULL with a length of 2");
  EXPECT_EQ(sample(sampler, logits), 7);
}

TEST(SamplerLimits, memory_is_reserved_by_the_first_of_each_and_may_run_out) {
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  std::vector<float> logits(1000, 0.5f);
  {
    Sampler sampler = make_sampler(1000, options.get());
    for (uint64_t i = 0;; i++) {
      allocator.fail_call(i);
      uint64_t calls = allocator.calls();
      Answer answers[] = {set_mask(sampler, words_of({3, 5}, 1000)), set_banned(sampler, {3}), set_bias(sampler, {9}, {2.0f})};
      if (allocator.calls() - calls <= i) break;
      int failures = 0;
      for (const Answer &answer : answers) failures += answer.status == PROOFINFER_E_MEMORY;
      EXPECT_EQ(failures, 1);
      EXPECT_GE(sample(sampler, logits), 0);
      ASSERT_LT(i, 100u);
    }
    EXPECT_EQ(sample(sampler, logits), 5);
    uint64_t calls = allocator.calls();
    for (int32_t i = 0; i < 20; i++) {
      EXPECT_TRUE(set_mask(sampler, words_of({i, 7}, 1000)).ok());
      sample(sampler, logits);
      EXPECT_TRUE(set_mask(sampler, {}).ok());
    }
    EXPECT_EQ(allocator.calls(), calls) << "a mask a step takes none";
  }
  EXPECT_EQ(allocator.held_blocks(), 0u);
}

}  // namespace proofinfer_test
