// Log-probabilities and the most probable tokens: the softmax's logarithms by their stated order, ranks as a sort gives them, hostile input refused.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "support/random_sampling.h"

namespace proofinfer_test {

namespace {

using Ids = std::vector<int32_t>;
using Floats = std::vector<float>;

Floats plain_logprobs(const Floats &x) {
  float largest = *std::max_element(x.begin(), x.end()), sum = 0;
  for (float value : x) sum += pi_expf(value - largest);
  Floats result;
  for (float value : x) result.push_back((value - largest) - pi_logf(sum));
  return result;
}

Ids all_ids(size_t n) {
  Ids ids(n);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Floats logprobs(const Floats &x, const Ids &ids) {
  Floats result(ids.size(), -7);
  Answer answer = answer_of(proofinfer_logits_logprobs, x.data(), x.size(), ids.data(), ids.size(), result.data());
  EXPECT_TRUE(answer.ok()) << answer;
  return result;
}

}  // namespace

TEST(Logits, log_probabilities_follow_their_definition_and_are_near_the_exact_ones) {
  Random random{31};
  for (int round = 0; round < 200; round++) {
    size_t n = round == 0 ? 32000 : 1 + random.below(300);
    Floats x = random_logits(&random, n), found = logprobs(x, all_ids(n));
    ASSERT_EQ(found, plain_logprobs(x));
    double sum = 0, largest = double(*std::max_element(x.begin(), x.end()));
    for (float value : x) sum += std::exp(double(value) - largest);
    for (size_t i = 0; i < n; i++) {
      double exact = double(x[i]) - largest - std::log(sum);
      ASSERT_NEAR(double(found[i]), exact, 1e-6 * std::fabs(exact) + 1e-6 + double(n) * 0x1p-24) << "n " << n;
    }
  }
  EXPECT_EQ(logprobs({3.5f}, {0, 0}), (Floats{0, 0}));
  constexpr float kMost = std::numeric_limits<float>::max();
  EXPECT_EQ(logprobs({kMost, -kMost}, {0, 1}), (Floats{0, -std::numeric_limits<float>::infinity()})) << "a difference that overflows";
}

TEST(Logits, the_top_is_what_a_stable_sort_puts_first) {
  Random random{32};
  for (int round = 0; round < 300; round++) {
    size_t n = round == 0 ? 32000 : 1 + random.below(200), count = random.below(3) ? random.below(uint32_t(n) + 1) : n;
    Floats x = random_logits(&random, n), all = plain_logprobs(x);
    Ids expected = all_ids(n), found(count, -7);
    std::stable_sort(expected.begin(), expected.end(), [&](int32_t a, int32_t b) { return x[size_t(a)] > x[size_t(b)]; });
    expected.resize(count);
    Floats values(count);
    ASSERT_TRUE(answer_of(proofinfer_logits_top, x.data(), n, count, found.data(), values.data()).ok());
    ASSERT_EQ(found, expected);
    for (size_t i = 0; i < count; i++) ASSERT_EQ(values[i], all[size_t(found[i])]);
    Ids without(count, -7);
    ASSERT_TRUE(answer_of(proofinfer_logits_top, x.data(), n, count, without.data(), static_cast<float *>(nullptr)).ok());
    ASSERT_EQ(without, expected);
  }
}

TEST(Logits, hostile_arguments_are_refused) {
  Floats x = {1, 2, 3}, out(3), bad = {1, NAN, 3};
  Ids ids = {0, 1, 3}, top(4);
  auto refused = [](const Answer &answer, int32_t status = PROOFINFER_E_ARGUMENT) {
    EXPECT_EQ(answer.status, status);
    return answer.message;
  };
  EXPECT_EQ(refused(answer_of(proofinfer_logits_logprobs, x.data(), size_t(3), ids.data(), size_t(3), out.data())),
            "token 2 is 3; expected 0 to 2");
  EXPECT_EQ(refused(answer_of(proofinfer_logits_logprobs, x.data(), size_t(0), ids.data(), size_t(1), out.data())),
            "count is 0; expected 1 to 2147483647");
  EXPECT_EQ(
      refused(answer_of(proofinfer_logits_logprobs, bad.data(), size_t(3), ids.data(), size_t(1), out.data()), PROOFINFER_E_NOT_FINITE),
      "the logit of id 1 is NaN; expected finite values");
  EXPECT_EQ(refused(answer_of(proofinfer_logits_top, x.data(), size_t(3), size_t(4), top.data(), out.data())),
            "top_count is 4; expected at most the count 3");
  refused(answer_of(proofinfer_logits_top, x.data(), size_t(3), size_t(1), static_cast<int32_t *>(nullptr), out.data()));
  refused(answer_of(proofinfer_logits_top, bad.data(), size_t(3), size_t(1), top.data(), out.data()), PROOFINFER_E_NOT_FINITE);
  refused(answer_of(proofinfer_logits_logprobs, x.data(), size_t(3), ids.data(), size_t(1), static_cast<float *>(nullptr)));
  EXPECT_TRUE(answer_of(proofinfer_logits_top, x.data(), size_t(3), size_t(0), static_cast<int32_t *>(nullptr), out.data()).ok());
}

TEST(Logits, the_callers_rounding_mode_changes_nothing) {
  Random random{33};
  Floats x = random_logits(&random, 400), expected = logprobs(x, all_ids(400));
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    Floats found = logprobs(x, all_ids(400));
    int mode_after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(mode_after, mode);
  }
}

}  // namespace proofinfer_test
