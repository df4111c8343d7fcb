// The caller's floating-point environment changes no bit and is found again as it was: rounding direction, flush-to-zero, unmasked exceptions.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "support/small_world.h"

namespace proofinfer_test {

namespace {

// Sampled ids and logits of a run in the environment that stands when it is called.
struct Outcome {
  std::vector<float> logits;
  std::vector<int32_t> ids;
  bool operator==(const Outcome &other) const { return logits == other.logits && ids == other.ids; }
};

Outcome run(int64_t threads) {
  Options options = make_options();
  set(options, "threads", threads);
  set_u64(options, "share_from_bytes", 0);
  set_f64(options, "temperature", 0.7);
  set_f64(options, "top_p", 0.9);
  set_tokens(options, "stop_tokens", {});
  SmallWorld world(options.get());
  Session session = make_session(world.model, options.get());
  Outcome outcome;
  if (!append(session, small_tokens(70), PROOFINFER_LOGITS_LAST).ok()) return outcome;
  outcome.logits = logits(session, 69);
  Sampler sampler = make_sampler(small_shape().vocab(), options.get());
  Generation generation = make_generation(session, world.tokenizer, sampler, {}, options.get());
  for (int i = 0; i < 20; i++) {
    int32_t id = 0, stop = 0;
    char text[64];
    size_t needed = 0;
    EXPECT_TRUE(answer_of(proofinfer_generation_next, generation.get(), nullptr, &id, text, sizeof(text), &needed, &stop).ok());
    outcome.ids.push_back(id);
  }
  return outcome;
}

class FpEnvironment : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(std::fegetenv(&before_), 0); }
  void TearDown() override { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

}  // namespace

TEST_F(FpEnvironment, rounding_direction_changes_nothing_and_stays) {
  Outcome expected = run(1);
  ASSERT_FALSE(expected.logits.empty());
  for (int direction : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
    for (int64_t threads : {1, 3}) {
      ASSERT_EQ(std::fesetround(direction), 0);
      Outcome found = run(threads);
      EXPECT_EQ(std::fegetround(), direction);
      std::fesetround(FE_TONEAREST);
      EXPECT_TRUE(found == expected) << "direction " << direction << ", threads " << threads;
    }
}

TEST_F(FpEnvironment, the_selftest_passes_when_rounding_upward) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  int32_t status = proofinfer_selftest(nullptr);
  int found = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(status, PROOFINFER_OK);
  EXPECT_EQ(found, FE_UPWARD);
}

#if defined(__x86_64__)
TEST_F(FpEnvironment, flush_to_zero_changes_nothing_and_stays) {
  Outcome expected = run(1);
  for (int64_t threads : {1, 3}) {
    unsigned before = _mm_getcsr();
    unsigned flushing = before | 0x8040;  // flush-to-zero and denormals-are-zero
    _mm_setcsr(flushing);
    Outcome found = run(threads);
    unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_TRUE(found == expected) << "threads " << threads;
    EXPECT_EQ(after & ~0x3fu, flushing & ~0x3fu);
  }
}

TEST_F(FpEnvironment, subnormal_weights_count_under_flush_to_zero) {
  // The classifier's weights are subnormal: flushed, every logit would be zero.
  Shape shape = {2, 2, 1, 1, 1, -3, 8};
  std::vector<uint8_t> bytes = legacy_checkpoint(shape, 5);
  for (size_t i = bytes.size() - 6 * 4; i < bytes.size(); i += 4) {
    const uint8_t subnormal[4] = {uint8_t(1 + i % 7), 0x30, 0x10, 0};
    std::copy(subnormal, subnormal + 4, bytes.begin() + std::ptrdiff_t(i));
  }
  auto last = [&] {
    Model model = open_model(bytes);
    Session session = make_session(model);
    EXPECT_TRUE(append(session, {1, 2}, PROOFINFER_LOGITS_LAST).ok());
    return logits(session, 1);
  };
  std::vector<float> expected = last();
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_NE(expected[0], 0.0f);
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  std::vector<float> found = last();
  _mm_setcsr(before);
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), 12), 0);
}
#endif

#if defined(__GLIBC__)
TEST_F(FpEnvironment, unmasked_exceptions_trap_nowhere_in_the_library) {
  const int kTraps = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT;
  Outcome expected = run(1);
  const std::vector<uint8_t> &bytes = small_checkpoint();
  const std::vector<int32_t> tokens = small_tokens(70);
  for (int64_t threads : {1, 3}) {
    Options options = make_options();
    set(options, "threads", threads);
    set_u64(options, "share_from_bytes", 0);
    set_f64(options, "temperature", 0.7);
    std::feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(kTraps);
    // Between here and the end of traps the test itself computes nothing.
    Model model = open_model(bytes, options.get());
    Session session = make_session(model);
    Sampler sampler = make_sampler(small_shape().vocab(), options.get());
    Answer answer = append(session, tokens, PROOFINFER_LOGITS_LAST);
    std::vector<float> found = logits(session, 69);
    int32_t id = 0;
    Answer sampled = answer_of(proofinfer_sampler_sample, sampler.get(), found.data(), found.size(), &id);
    int enabled = fegetexcept();
    fedisableexcept(FE_ALL_EXCEPT);
    EXPECT_TRUE(answer.ok()) << answer;
    EXPECT_TRUE(sampled.ok()) << sampled;
    EXPECT_EQ(enabled, kTraps);
    EXPECT_EQ(found, expected.logits);
    EXPECT_EQ(id, expected.ids[0]);
  }
}
#endif

TEST_F(FpEnvironment, sticky_flags_of_the_caller_are_as_before) {
  SmallWorld world;
  Session session = make_session(world.model);
  std::vector<int32_t> tokens = small_tokens(70);
  std::feclearexcept(FE_ALL_EXCEPT);
  int32_t status = proofinfer_session_append(session.get(), tokens.data(), tokens.size(), PROOFINFER_LOGITS_LAST, nullptr, nullptr);
  int raised = std::fetestexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(status, PROOFINFER_OK);
  EXPECT_EQ(raised, 0);
}

}  // namespace proofinfer_test
