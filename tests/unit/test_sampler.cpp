// The sampler: equal to the plain form of its definition, total over all floats, its corners as they are written down.
#include "model/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/random_sampling.h"

namespace proofinfer_test {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Sampler sampler_of(size_t n, double temperature, double top_p, uint64_t seed) {
  Options options = make_options();
  set_f64(options, "temperature", temperature);
  set_f64(options, "top_p", top_p);
  set_u64(options, "seed", seed);
  return make_sampler(int32_t(n), options.get());
}

}  // namespace

TEST(Sampler, draws_equal_the_definition_on_random_logits) {
  Random random{1};
  const double temperatures[] = {0.1, 0.5, 0.7, 1.0, 1.3, 2.0, 100.0, 1e-3};
  const double top_ps[] = {0.0, 0.001, 0.1, 0.5, 0.9, 0.95, 0.999, 0.9999999, 1.0};
  for (int round = 0; round < 400; round++) {
    size_t n = round % 50 == 0 ? 32000 : 1 + random.below(round % 2 ? 12 : 700);
    std::vector<float> logits = random_logits(&random, n);
    double temperature = temperatures[random.below(8)], top_p = top_ps[random.below(9)];
    uint64_t seed = uint64_t(random.below(1u << 31)) << 32 | random.below(1u << 31);
    PlainSampler plain{float(temperature), float(top_p)};
    plain.state = seed;
    Sampler sampler = sampler_of(n, temperature, top_p, seed);
    for (int draw = 0; draw < 20; draw++)
      ASSERT_EQ(sample(sampler, logits), plain.sample(logits)) << "n " << n << " temperature " << temperature << " top_p " << top_p;
  }
}

TEST(Sampler, greedy_takes_the_lowest_id_of_the_largest_and_draws_no_number) {
  std::vector<float> logits = {1, 5, -2, 5, 0};
  for (double zero : {0.0, -0.0}) {
    Sampler sampler = sampler_of(5, zero, 0.9, 77);
    EXPECT_EQ(draws(sampler, logits, 3), (std::vector<int32_t>{1, 1, 1}));
  }
  Sampler too_small_for_float = sampler_of(5, 1e-60, 0.9, 77);
  EXPECT_EQ(sample(too_small_for_float, logits), 1) << "a temperature that rounds to 0 is 0";
}

TEST(Sampler, logits_that_are_not_finite_are_an_error_that_draws_no_number) {
  for (double temperature : {0.0, 1.0}) {
    for (size_t bad : {size_t(0), size_t(3), size_t(1500), size_t(1999)}) {
      std::vector<float> good(2000);
      for (size_t i = 0; i < good.size(); i++) good[i] = float(i % 17);
      Sampler sampler = sampler_of(2000, temperature, 0.9, 5), untouched = sampler_of(2000, temperature, 0.9, 5);
      const std::pair<float, const char *> values[] = {
          {std::nanf(""), "NaN"}, {-std::nanf(""), "NaN"}, {kInfinity, "infinity"}, {-kInfinity, "-infinity"}};
      for (auto [value, name] : values) {
        std::vector<float> logits = good;
        logits[bad] = value;
        logits[1999] = bad == 1999 ? value : kInfinity;  // the first one is named
        int32_t token = 7;
        Answer answer = sample_answer(sampler, logits, &token);
        EXPECT_EQ(answer.status, PROOFINFER_E_NOT_FINITE) << answer;
        EXPECT_EQ(answer.message, "the logit of id " + std::to_string(bad) + " is " + name + "; expected finite values");
        EXPECT_EQ(token, -1);
      }
      EXPECT_EQ(draws(sampler, good, 20), draws(untouched, good, 20));
    }
  }
}

TEST(Sampler, every_finite_bit_pattern_is_accepted) {
  Random random{9};
  for (double temperature : {0.0, 1e-40, 1e-3, 1.0, 1e30})
    for (double top_p : {0.0, 0.01, 0.9}) {
      Sampler sampler = sampler_of(50, temperature, top_p, 3);
      for (int round = 0; round < 300; round++) {
        std::vector<float> logits(50);
        for (float &x : logits) {
          uint32_t bits = random.below(1u << 16) << 16 | random.below(1u << 16);
          if ((bits & 0x7F800000u) == 0x7F800000u) bits &= 0x807FFFFFu;
          std::memcpy(&x, &bits, 4);
        }
        int32_t token = sample(sampler, logits);
        ASSERT_TRUE(token >= 0 && token < 50);
      }
    }
}

TEST(Sampler, a_temperature_that_makes_logits_overflow_is_greedy_and_still_draws) {
  std::vector<float> positive = {1, 3, 2, 3}, negative = {-2, -1, -1, -3}, mixed = {-1, 0.5f, 0.25f, 0};
  for (double top_p : {0.0, 0.5}) {
    for (const std::vector<float> &logits : {positive, negative, mixed}) {
      Sampler sampler = sampler_of(4, 1e-40, top_p, 5);
      EXPECT_EQ(draws(sampler, logits, 4), std::vector<int32_t>(4, 1));
    }
    // The overflow of small logits alone is no overflow of the largest: probability 0 for them.
    Sampler fine = sampler_of(3, 1e-38, top_p, 5);
    EXPECT_EQ(draws(fine, {-1e3f, 0.0f, -1e3f}, 4), std::vector<int32_t>(4, 1));
  }
  // Whether it draws shows in what comes after it.
  std::vector<float> tiny = {1e-39f, 2e-39f, 0.0f};
  Sampler sampler = sampler_of(3, 1e-38, 0.0, 5), other = sampler_of(3, 1e-38, 0.0, 5);
  EXPECT_EQ(sample(sampler, {-1.0f, 1e3f, 0.0f}), 1);
  sample(other, tiny);
  EXPECT_EQ(draws(sampler, tiny, 50), draws(other, tiny, 50));
}

TEST(Sampler, a_vocabulary_of_one_has_one_answer) {
  for (double temperature : {0.0, 1e-40, 1.0})
    for (double top_p : {0.0, 0.5, 1.0})
      for (float logit : {0.0f, -3e38f, 3e38f}) {
        Sampler sampler = sampler_of(1, temperature, top_p, 11);
        EXPECT_EQ(draws(sampler, {logit}, 3), (std::vector<int32_t>{0, 0, 0}));
      }
}

TEST(Sampler, a_nucleus_without_candidates_is_id_0) {
  // cutoff (1 - 0.25) / 1 = 0.75 is above both probabilities.
  Sampler sampler = sampler_of(2, 1.0, 0.25, 11);
  EXPECT_EQ(draws(sampler, {0.0f, 0.5f}, 5), std::vector<int32_t>(5, 0));
  EXPECT_EQ(draws(sampler, {0.5f, 0.0f}, 5), std::vector<int32_t>(5, 0));
  EXPECT_EQ(draws(sampler, {0.0f, 2.0f}, 5), std::vector<int32_t>(5, 1)) << "0.88 is a candidate";
}

TEST(Sampler, a_top_p_that_rounds_to_0_or_1_is_off) {
  std::vector<float> logits = {0.1f, 0.7f, 0.4f, 0.2f};
  std::vector<int32_t> off = draws(sampler_of(4, 1.0, 0.0, 21), logits, 50);
  for (double top_p : {1.0, 1e-60, 0.99999999999}) EXPECT_EQ(draws(sampler_of(4, 1.0, top_p, 21), logits, 50), off) << top_p;
  EXPECT_NE(draws(sampler_of(4, 1.0, 0.4, 21), logits, 50), off);
}

TEST(Sampler, seed_0_makes_every_draw_0) {
  std::vector<float> logits = {0.1f, 0.7f, 0.4f, 0.2f};
  EXPECT_EQ(draws(sampler_of(4, 1.0, 0.0, 0), logits, 10), std::vector<int32_t>(10, 0)) << "the first with any probability";
  EXPECT_EQ(draws(sampler_of(4, 1.0, 0.9, 0), logits, 10), std::vector<int32_t>(10, 1)) << "the most probable one";
}

TEST(Sampler, reseed_starts_the_numbers_afresh) {
  std::vector<float> logits = {0.1f, 0.7f, 0.4f, 0.2f};
  Sampler sampler = sampler_of(4, 1.0, 0.9, 1234567);
  std::vector<int32_t> first = draws(sampler, logits, 40);
  EXPECT_NE(draws(sampler, logits, 40), first);
  EXPECT_TRUE(answer_of(proofinfer_sampler_reseed, sampler.get(), uint64_t(1234567)).ok());
  EXPECT_EQ(draws(sampler, logits, 40), first);
}

TEST(Sampler, the_callers_logits_and_rounding_mode_stay_as_they_are_and_change_nothing) {
  Random random{4};
  std::vector<float> logits = random_logits(&random, 500), before = logits;
  std::vector<int32_t> expected = draws(sampler_of(500, 0.7, 0.9, 99), logits, 50);
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    Sampler sampler = sampler_of(500, 0.7, 0.9, 99);
    std::vector<int32_t> found = draws(sampler, logits, 50);
    int mode_after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(mode_after, mode);
  }
  EXPECT_EQ(std::memcmp(logits.data(), before.data(), logits.size() * 4), 0);
}

TEST(Sampler, hostile_arguments_are_refused_with_both_numbers) {
  Sampler sampler = sampler_of(4, 1.0, 0.9, 1);
  int32_t token = 9;
  std::vector<float> logits(5);
  for (size_t count : {size_t(0), size_t(3), size_t(5)}) {
    Answer answer = answer_of(proofinfer_sampler_sample, sampler.get(), logits.data(), count, &token);
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(answer.message, "count is " + std::to_string(count) + "; expected the sampler's vocab_size 4");
    EXPECT_EQ(token, -1);
  }
  for (int32_t vocab_size : {0, -1, std::numeric_limits<int32_t>::min()}) {
    Answer answer;
    make_sampler(vocab_size, nullptr, &answer);
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(answer.message, "vocab_size is " + std::to_string(vocab_size) + "; expected 1 or more");
  }
}

TEST(Sampler, memory_is_reserved_at_creation_only_and_may_run_out) {
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  set_f64(options, "temperature", 1.0);
  {
    Sampler sampler = make_sampler(1000, options.get());
    uint64_t calls = allocator.calls();
    std::vector<float> logits(1000, 0.5f);
    draws(sampler, logits, 10);
    EXPECT_EQ(allocator.calls(), calls);
    for (uint64_t i = 0; i < calls; i++) {
      allocator.fail_call(i);
      Answer answer;
      make_sampler(1000, options.get(), &answer);
      EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << answer;
    }
  }
  EXPECT_EQ(allocator.held_blocks(), 0u);
  set_u64(options, "memory_limit_bytes", 1000);
  Answer answer;
  make_sampler(1000, options.get(), &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << answer;
  EXPECT_EQ(allocator.held_blocks(), 0u);
}

TEST(Sampler, a_second_thread_inside_is_told_busy) {
  Sampler sampler = sampler_of(2, 1.0, 0.9, 1);
  proofinfer::BusyFlag *busy = reinterpret_cast<proofinfer::Sampler *>(sampler.get())->busy();
  ASSERT_TRUE(busy->try_enter());
  int32_t token = 3;
  EXPECT_EQ(sample_answer(sampler, {0.0f, 0.0f}, &token).status, PROOFINFER_E_BUSY);
  EXPECT_EQ(answer_of(proofinfer_sampler_reseed, sampler.get(), uint64_t(5)).status, PROOFINFER_E_BUSY);
  busy->leave();
  EXPECT_EQ(sample_answer(sampler, {0.0f, 0.0f}, &token).status, PROOFINFER_OK);
}

// Flat logits keep almost all 32,000 candidates: the most that can have to be sorted. The limit is for builds with sanitizers.
TEST(Sampler, a_flat_distribution_over_32000_ids_is_sampled_in_milliseconds) {
  Random random{7};
  std::vector<float> logits(32000);
  for (float &x : logits) x = float(random.below(1000)) / 4000.0f;
  Sampler sampler = sampler_of(32000, 1.0, 0.9, 1);
  auto start = std::chrono::steady_clock::now();
  draws(sampler, logits, 20);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 20;
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 0.05);
}

}  // namespace proofinfer_test
