// Scores: the log-probabilities of single appends however tokens are cut or put together, in memory that does not grow, and nothing changed on failure.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/random.h"
#include "support/small_world.h"

namespace proofinfer_test {

namespace {

using Ids = std::vector<int32_t>;
using Floats = std::vector<float>;

// By their definition: appended one by one, each read off the logits before it.
Floats plain_scores(const Model &model, const Ids &tokens, const proofinfer_options *options = nullptr) {
  Session session = make_session(model, options);
  Floats result;
  for (int32_t token : tokens) {
    float value = NAN;
    if (!result.empty()) {
      Floats x = logits(session, result.size() - 1);
      EXPECT_TRUE(answer_of(proofinfer_logits_logprobs, x.data(), x.size(), &token, size_t(1), &value).ok());
    }
    result.push_back(value);
    EXPECT_TRUE(append(session, {token}, PROOFINFER_LOGITS_LAST).ok());
  }
  return result;
}

Answer score(const Session &session, const Ids &tokens, Floats *to, proofinfer_cancel *cancel = nullptr) {
  to->assign(tokens.size(), -7);
  return answer_of(proofinfer_session_score, session.get(), tokens.data(), tokens.size(), to->data(), cancel);
}

// Texts of these lengths as the API wants them.
struct Texts {
  Ids tokens;
  std::vector<size_t> counts;
};

Texts make_texts(const std::vector<size_t> &counts) {
  Texts texts;
  texts.counts = counts;
  for (size_t text = 0; text < counts.size(); text++)
    for (size_t i = 0; i < counts[text]; i++) texts.tokens.push_back(i == 0 ? 1 : int32_t(3 + (i * 37 + text * 11) % 264));
  return texts;
}

Answer score(const Model &model, const Texts &texts, Floats *to, const proofinfer_options *options = nullptr,
             proofinfer_cancel *cancel = nullptr) {
  to->assign(texts.tokens.size(), -7);
  return answer_of(proofinfer_model_score, model.get(), texts.tokens.data(), texts.counts.data(), texts.counts.size(), options, to->data(),
                   cancel);
}

bool same_bits(const Floats &a, const Floats &b) {
  auto bits = [](float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof(word));
    return std::isnan(value) ? 0x7FC00000u : word;
  };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (bits(a[i]) != bits(b[i])) return false;
  return true;
}

}  // namespace

TEST(Score, has_the_bits_of_appending_one_by_one_on_every_kernel_set_and_split) {
  const Ids tokens = small_tokens(300);
  const Floats expected = plain_scores(SmallWorld().model, tokens);
  EXPECT_TRUE(std::isnan(expected[0]));
  for (const std::string &isa : available_isas())
    for (int64_t threads : {1, 3}) {
      Options options = make_options();
      set_text(options, "isa", isa);
      set(options, "threads", threads);
      set_u64(options, "share_from_bytes", uint64_t(1));
      SmallWorld world(options.get());
      for (size_t split : {size_t(1), size_t(2), size_t(7), size_t(129), size_t(300)}) {
        Session session = make_session(world.model);
        Floats all, part;
        for (size_t begin = 0; begin < tokens.size(); begin += split) {
          Ids now(tokens.begin() + long(begin), tokens.begin() + long(std::min(begin + split, tokens.size())));
          ASSERT_TRUE(score(session, now, &part).ok());
          all.insert(all.end(), part.begin(), part.end());
        }
        EXPECT_TRUE(same_bits(all, expected)) << isa << " threads " << threads << " split " << split;
        EXPECT_EQ(proofinfer_session_position(session.get()), tokens.size());
      }
    }
}

TEST(Score, leaves_the_session_as_append_does) {
  SmallWorld world;
  const Ids tokens = small_tokens(100), more = {7, 9, 11};
  Session scored = make_session(world.model), appended = make_session(world.model);
  Floats ignored;
  ASSERT_TRUE(score(scored, tokens, &ignored).ok());
  ASSERT_TRUE(append(appended, tokens, PROOFINFER_LOGITS_LAST).ok());
  EXPECT_EQ(logits(scored, 99), logits(appended, 99));
  Ids held(100);
  size_t needed = 0;
  ASSERT_TRUE(answer_of(proofinfer_session_tokens, scored.get(), held.data(), held.size(), &needed).ok());
  EXPECT_EQ(held, tokens);
  ASSERT_TRUE(append(scored, more).ok());
  ASSERT_TRUE(append(appended, more).ok());
  for (size_t i = 100; i < 103; i++) EXPECT_EQ(logits(scored, i), logits(appended, i));
}

TEST(Score, goes_on_behind_tokens_whose_logits_were_not_kept) {
  SmallWorld world;
  const Ids tokens = small_tokens(140);
  const Floats expected = plain_scores(world.model, tokens);
  for (size_t at : {size_t(1), size_t(63), size_t(64), size_t(65), size_t(139)}) {
    Session session = make_session(world.model);
    ASSERT_TRUE(append(session, Ids(tokens.begin(), tokens.begin() + long(at)), PROOFINFER_LOGITS_NONE).ok());
    Session clone;  // shares the full pages, so that evaluating the last token again needs one of its own
    proofinfer_session *made = nullptr;
    ASSERT_TRUE(answer_of(proofinfer_session_clone, session.get(), static_cast<const proofinfer_options *>(nullptr), &made).ok());
    clone.reset(made);
    Floats found;
    ASSERT_TRUE(score(clone, Ids(tokens.begin() + long(at), tokens.end()), &found).ok());
    EXPECT_TRUE(same_bits(found, Floats(expected.begin() + long(at), expected.end()))) << at;
    ASSERT_TRUE(score(session, Ids(tokens.begin() + long(at), tokens.end()), &found).ok());
    EXPECT_TRUE(same_bits(found, Floats(expected.begin() + long(at), expected.end()))) << at;
  }
}

TEST(Score, memory_does_not_grow_with_the_tokens) {
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  SmallWorld world;
  Session session = make_session(world.model, options.get());
  const uint64_t before = allocator.calls();
  Floats found;
  ASSERT_TRUE(score(session, small_tokens(kSmallContext), &found).ok());
  EXPECT_EQ(allocator.calls(), before);
}

TEST(Score, fills_a_context_of_one_and_of_two) {
  SmallWorld world;
  for (int64_t length : {1, 2}) {
    Options options = make_options();
    set(options, "context_length", length);
    Session session = make_session(world.model, options.get());
    const Ids tokens = small_tokens(size_t(length));
    Floats found;
    ASSERT_TRUE(score(session, tokens, &found).ok());
    EXPECT_TRUE(same_bits(found, plain_scores(world.model, tokens)));
    EXPECT_EQ(score(session, {5}, &found).status, PROOFINFER_E_CONTEXT);
  }
}

TEST(Score, a_failure_changes_nothing) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, {1, 5, 6}, PROOFINFER_LOGITS_LAST).ok());
  const Floats kept = logits(session, 2);
  Floats found;
  Answer answer = score(session, {4, world.tokenizer ? small_shape().vocab() : 0}, &found);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
  EXPECT_TRUE(answer.says("token 1 is")) << answer;
  EXPECT_EQ(score(session, small_tokens(kSmallContext), &found).status, PROOFINFER_E_CONTEXT);
  EXPECT_EQ(logits(session, 2), kept);
  proofinfer_cancel *made = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_cancel_create, &made).ok());
  Cancel cancel(made);
  proofinfer_cancel_request(made);
  EXPECT_EQ(score(session, {4, 5}, &found, made).status, PROOFINFER_E_CANCELLED);
  EXPECT_EQ(proofinfer_session_position(session.get()), 3u);
  proofinfer_cancel_reset(made);
  ASSERT_TRUE(score(session, {4, 5}, &found, made).ok());
  EXPECT_TRUE(same_bits(found, [&] {
    Floats all = plain_scores(world.model, {1, 5, 6, 4, 5});
    return Floats(all.end() - 2, all.end());
  }()));
  uint64_t done = 0, total = 0;
  proofinfer_cancel_progress(made, &done, &total);
  EXPECT_EQ(done, total);
  EXPECT_GT(total, 0u);
  EXPECT_TRUE(answer_of(proofinfer_session_score, session.get(), static_cast<const int32_t *>(nullptr), size_t(0),
                        static_cast<float *>(nullptr), static_cast<proofinfer_cancel *>(nullptr))
                  .ok());
}

TEST(Score, logits_that_are_not_finite_are_an_error_with_their_position) {
  Model model = open_model(checkpoint_with_nan());
  Session session = make_session(model);
  Floats found;
  Answer answer = score(session, {1, 5, 6}, &found);
  EXPECT_EQ(answer.status, PROOFINFER_E_NOT_FINITE);
  EXPECT_EQ(answer.message, "behind position 0 the logit of id 0 is NaN; expected finite values");
  EXPECT_EQ(proofinfer_session_position(session.get()), 0u);
  ASSERT_TRUE(append(session, {1}, PROOFINFER_LOGITS_LAST).ok());
  EXPECT_EQ(score(session, {5}, &found).status, PROOFINFER_E_NOT_FINITE);
  EXPECT_EQ(proofinfer_session_position(session.get()), 1u);
  Texts texts = make_texts({3});
  EXPECT_EQ(score(model, texts, &found).status, PROOFINFER_E_NOT_FINITE);
}

TEST(Score, many_texts_have_the_bits_of_each_alone) {
  Options options = make_options();
  set(options, "threads", 3);
  set_u64(options, "share_from_bytes", uint64_t(1));
  SmallWorld world(options.get());
  Random random{77};
  for (int round = 0; round < 12; round++) {
    std::vector<size_t> counts;
    if (round == 0) {
      counts.assign(100, 2);  // more texts than one pass takes
    } else if (round == 1) {
      counts = {0, 1, 0, 300, 1, 129, 128, 2, kSmallContext, 0};
    } else {
      for (uint32_t i = random.below(9); i-- > 0;) counts.push_back(random.below(3) ? random.below(40) : random.below(kSmallContext + 1));
    }
    const Texts texts = make_texts(counts);
    Floats found;
    Answer answer = score(world.model, texts, &found);
    ASSERT_TRUE(answer.ok()) << answer;
    size_t offset = 0;
    for (size_t i = 0; i < counts.size(); offset += counts[i++]) {
      Ids tokens(texts.tokens.begin() + long(offset), texts.tokens.begin() + long(offset + counts[i]));
      Session session = make_session(world.model);
      Floats alone;
      ASSERT_TRUE(score(session, tokens, &alone).ok());
      ASSERT_TRUE(same_bits(Floats(found.begin() + long(offset), found.begin() + long(offset + counts[i])), alone))
          << round << " text " << i;
    }
  }
}

TEST(Score, many_texts_take_memory_within_the_limit_and_give_it_back) {
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  SmallWorld world;
  const Texts texts = make_texts(std::vector<size_t>(200, 100));
  Floats found;
  ASSERT_TRUE(score(world.model, texts, &found, options.get()).ok());
  EXPECT_EQ(allocator.held_blocks(), 0u);
  const uint64_t peak = allocator.peak_bytes();
  const Texts twice = make_texts(std::vector<size_t>(400, 100));
  ASSERT_TRUE(score(world.model, twice, &found, options.get()).ok());
  EXPECT_EQ(allocator.peak_bytes(), peak) << "the texts of one pass and no more";
  set_u64(options, "memory_limit_bytes", peak / 4);
  Answer answer = score(world.model, texts, &found, options.get());
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << answer;
  EXPECT_EQ(allocator.held_blocks(), 0u);
}

TEST(Score, many_texts_refuse_what_is_wrong) {
  SmallWorld world;
  Texts texts = make_texts({4, 3});
  Floats found;
  texts.tokens[6] = -1;
  Answer answer = score(world.model, texts, &found);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(answer.message, "token 2 of text 1 is -1; expected 0 to " + std::to_string(small_shape().vocab() - 1));
  texts = make_texts({4, size_t(kSmallContext) + 1});
  answer = score(world.model, texts, &found);
  EXPECT_EQ(answer.status, PROOFINFER_E_CONTEXT);
  EXPECT_EQ(answer.message, "text 1 has 513 tokens; the model's seq_len is 512");
  const size_t huge[] = {SIZE_MAX / 2, SIZE_MAX / 2, 9};
  const int32_t token = 1;
  float value = 0;
  EXPECT_EQ(answer_of(proofinfer_model_score, world.model.get(), &token, huge, size_t(3), static_cast<const proofinfer_options *>(nullptr),
                      &value, static_cast<proofinfer_cancel *>(nullptr))
                .status,
            PROOFINFER_E_ARGUMENT);
  proofinfer_cancel *made = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_cancel_create, &made).ok());
  Cancel cancel(made);
  proofinfer_cancel_request(made);
  EXPECT_EQ(score(world.model, make_texts({5}), &found, nullptr, made).status, PROOFINFER_E_CANCELLED);
  EXPECT_TRUE(score(world.model, make_texts({}), &found).ok());
}

}  // namespace proofinfer_test
