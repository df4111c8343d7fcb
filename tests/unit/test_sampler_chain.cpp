// Penalties and filters: equal to the plain form of their definition over drawn settings on every kernel set, and each does what it is for.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "support/random_sampling.h"

namespace proofinfer_test {

TEST(SamplerChain, draws_equal_the_definition_over_drawn_settings_on_every_kernel_set) {
  Random random{11};
  for (int round = 0; round < 500; round++) {
    size_t n = round % 100 == 0 ? 5000 : 1 + random.below(round % 3 ? 30 : 900);
    const PlainSampler settings = random_settings(&random);
    std::vector<std::vector<float>> logits;
    for (int i = 0; i < 12; i++) logits.push_back(random_logits(&random, n));
    PlainSampler plain = settings;
    std::vector<int32_t> expected;
    for (const std::vector<float> &x : logits) {
      plain.accept(int32_t(expected.size() % n));
      expected.push_back(plain.sample(x));
    }
    for (const std::string &isa : available_isas()) {
      Options options = options_of(settings);
      set_text(options, "isa", isa);
      Sampler sampler = make_sampler(int32_t(n), options.get());
      for (size_t i = 0; i < logits.size(); i++) {
        ASSERT_TRUE(accept(sampler, {int32_t(i % n)}).ok());
        ASSERT_EQ(sample(sampler, logits[i]), expected[i]) << isa << " draw " << i << " of " << name_of(settings, n);
      }
    }
  }
}

TEST(SamplerChain, filters_that_take_nothing_out_leave_the_references_draws) {
  Random random{12};
  for (float top_p : {0.0f, 0.5f, 0.9f}) {
    std::vector<float> logits = random_logits(&random, 300);
    PlainSampler plain = at_temperature_1();
    plain.top_p = top_p;
    std::vector<int32_t> expected = draws(make_sampler(300, options_of(plain).get()), logits, 100);
    for (size_t top_k : {300, 1000000}) {
      PlainSampler neutral = plain;
      neutral.top_k = top_k;
      neutral.typical_p = 1;
      EXPECT_EQ(draws(make_sampler(300, options_of(neutral).get()), logits, 100), expected);
    }
  }
}

TEST(SamplerChain, top_k_keeps_the_k_largest_and_of_equal_ones_the_first) {
  const std::vector<float> logits = {1, 3, 2, 3, 2, 0, 2};
  PlainSampler settings = at_temperature_1();
  const std::set<int32_t> expected[] = {{1}, {1, 3}, {1, 2, 3}, {1, 2, 3, 4}};
  for (size_t k = 1; k <= 4; k++) {
    settings.top_k = k;
    EXPECT_EQ(drawn(settings, logits), expected[k - 1]) << k;
  }
  settings.top_k = 1;
  EXPECT_EQ(drawn(settings, {-0.0f, 0.0f, -0.0f}), std::set<int32_t>{0}) << "0 and -0 are equal";
}

TEST(SamplerChain, min_p_keeps_those_at_least_its_share_of_the_most_probable) {
  const std::vector<float> logits = {std::log(1.0f), std::log(0.49f), std::log(0.51f), std::log(0.1f)};
  PlainSampler settings = at_temperature_1();
  for (float top_p : {0.0f, 0.99f}) {
    settings.top_p = top_p;
    settings.min_p = 0.5f;
    EXPECT_EQ(drawn(settings, logits), (std::set<int32_t>{0, 2}));
    settings.min_p = 1.0f;
    EXPECT_EQ(drawn(settings, {1, 2, 0, 2}), (std::set<int32_t>{1, 3}));
  }
}

TEST(SamplerChain, typical_drops_the_most_probable_where_it_says_less_than_expected) {
  // Entropy 1.70: a probability of 0.4 surprises by 0.92, 0.15 by 1.90: the latter are the more typical.
  const std::vector<float> logits = {std::log(0.4f), std::log(0.15f), std::log(0.15f), std::log(0.15f), std::log(0.15f)};
  PlainSampler settings = at_temperature_1();
  settings.typical_p = 0.5f;
  EXPECT_EQ(drawn(settings, logits), (std::set<int32_t>{1, 2, 3, 4}));
  settings.typical_p = 0.2f;
  EXPECT_EQ(drawn(settings, logits), (std::set<int32_t>{1, 2}));
  settings.typical_p = 0.7f;
  EXPECT_EQ(drawn(settings, logits), (std::set<int32_t>{0, 1, 2, 3, 4}));
}

TEST(SamplerChain, penalties_follow_their_formula) {
  PlainSampler settings;
  settings.repetition = 2;
  // 4 / 2 = 2 against 3; then 3 / 2 = 1.5 against 2: the first again.
  Sampler repetition = make_sampler(3, options_of(settings).get());
  EXPECT_EQ(draws(repetition, {4, 3, 1}, 4), (std::vector<int32_t>{0, 1, 0, 0}));
  Sampler negative = make_sampler(3, options_of(settings).get());
  EXPECT_EQ(draws(negative, {-2, -3, -5}, 4), (std::vector<int32_t>{0, 1, 0, 0}));

  settings = PlainSampler();
  settings.frequency = 1;
  // 5 4 3 | 4 4 3 | 3 4 3 | 3 3 3 | 2 3 3
  Sampler frequency = make_sampler(3, options_of(settings).get());
  EXPECT_EQ(draws(frequency, {5, 4, 3}, 5), (std::vector<int32_t>{0, 0, 1, 0, 1}));

  settings = PlainSampler();
  settings.presence = 1.5f;
  Sampler presence = make_sampler(3, options_of(settings).get());
  EXPECT_EQ(draws(presence, {5, 4, 3}, 4), (std::vector<int32_t>{0, 1, 0, 0})) << "once, however often";
}

TEST(SamplerChain, a_frequency_penalty_of_minus_1_alone_rewards_what_came) {
  PlainSampler settings;
  settings.frequency = -1;
  Sampler sampler = make_sampler(2, options_of(settings).get());
  ASSERT_TRUE(accept(sampler, {1}).ok());
  EXPECT_EQ(draws(sampler, {5, 4.5f}, 1), (std::vector<int32_t>{1}));
}

TEST(SamplerChain, the_window_forgets_the_oldest) {
  PlainSampler settings;
  settings.presence = 10;
  settings.window_size = 2;
  Sampler sampler = make_sampler(4, options_of(settings).get());
  EXPECT_EQ(draws(sampler, {4, 3, 2, 1}, 7), (std::vector<int32_t>{0, 1, 2, 0, 1, 2, 0}));
  ASSERT_TRUE(accept(sampler, {0, 1}).ok());
  EXPECT_EQ(sample(sampler, {4, 3, 2, 1}), 2);
  ASSERT_TRUE(accept(sampler, {3, 3, 3, 3, 3}).ok());
  EXPECT_EQ(sample(sampler, {4, 3, 2, 1}), 0);
}

TEST(SamplerChain, reseed_is_a_fresh_start) {
  Random random{13};
  PlainSampler settings = at_temperature_1();
  settings.frequency = 0.5f;
  settings.state = 99;
  std::vector<float> logits = random_logits(&random, 20);
  Sampler sampler = make_sampler(20, options_of(settings).get());
  std::vector<int32_t> first = draws(sampler, logits, 100);
  EXPECT_NE(draws(sampler, logits, 100), first);
  EXPECT_TRUE(answer_of(proofinfer_sampler_reseed, sampler.get(), uint64_t(99)).ok());
  EXPECT_EQ(draws(sampler, logits, 100), first);
}

TEST(SamplerChain, a_wrong_id_joins_nothing) {
  PlainSampler settings;
  settings.presence = 10;
  Sampler sampler = make_sampler(3, options_of(settings).get());
  for (int32_t bad : {-1, 3}) {
    Answer answer = accept(sampler, {0, 1, bad});
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(answer.message, "token 2 is " + std::to_string(bad) + "; expected 0 to 2");
  }
  EXPECT_EQ(sample(sampler, {3, 2, 1}), 0);
}

TEST(SamplerChain, a_failed_draw_draws_no_number_and_joins_nothing) {
  PlainSampler settings = at_temperature_1();
  settings.frequency = 1;
  settings.state = 5;
  Sampler sampler = make_sampler(4, options_of(settings).get()), untouched = make_sampler(4, options_of(settings).get());
  std::vector<float> logits = {1, 2, 3, 4}, bad = {1, 2, NAN, 4};
  for (int i = 0; i < 30; i++) {
    int32_t token = 0;
    EXPECT_EQ(answer_of(proofinfer_sampler_sample, sampler.get(), bad.data(), size_t(4), &token).status, PROOFINFER_E_NOT_FINITE);
    EXPECT_EQ(sample(sampler, logits), sample(untouched, logits));
  }
}

TEST(SamplerChain, adjusted_logits_that_overflow_are_held) {
  constexpr float kMost = std::numeric_limits<float>::max();
  PlainSampler settings;
  settings.repetition = 0.001f;
  Sampler up = make_sampler(2, options_of(settings).get());
  ASSERT_TRUE(accept(up, {1}).ok());
  EXPECT_EQ(sample(up, {kMost, kMost}), 0) << "held at the largest: a tie";
  settings.repetition = 1000;
  Sampler down = make_sampler(2, options_of(settings).get());
  ASSERT_TRUE(accept(down, {0}).ok());
  EXPECT_EQ(sample(down, {-kMost, -kMost}), 0);
}

TEST(SamplerChain, the_callers_rounding_mode_changes_nothing) {
  Random random{14};
  PlainSampler settings = at_temperature_1();
  settings.temperature = 0.7f;
  settings.top_k = 100;
  settings.typical_p = 0.8f;
  settings.top_p = 0.9f;
  settings.min_p = 0.02f;
  settings.repetition = 1.3f;
  settings.frequency = 0.1f;
  std::vector<float> logits = random_logits(&random, 500);
  std::vector<int32_t> expected = draws(make_sampler(500, options_of(settings).get()), logits, 50);
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    Options options = options_of(settings);
    std::fesetround(mode);
    Sampler sampler = make_sampler(500, options.get());
    std::vector<int32_t> found = draws(sampler, logits, 50);
    int mode_after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(mode_after, mode);
  }
}

TEST(SamplerChain, memory_is_reserved_at_creation_only_and_may_run_out) {
  Random random{15};
  for (int round = 0; round < 30; round++) {
    CountingAllocator allocator;
    Options options = options_of(random_settings(&random));
    allocator.install(options);
    {
      Sampler sampler = make_sampler(1000, options.get());
      uint64_t calls = allocator.calls();
      draws(sampler, std::vector<float>(1000, 0.5f), 10);
      EXPECT_EQ(allocator.calls(), calls);
      for (uint64_t i = 0; i < calls; i++) {
        allocator.fail_call(i);
        Answer answer;
        make_sampler(1000, options.get(), &answer);
        EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << answer;
      }
    }
    EXPECT_EQ(allocator.held_blocks(), 0u);
  }
}

}  // namespace proofinfer_test
