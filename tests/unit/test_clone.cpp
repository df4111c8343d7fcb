// Clones: the bits of a fresh run whatever happens to the others, shared pages, whose memory they are, many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/small_world.h"

namespace proofinfer_test {

namespace {

constexpr size_t kPagePositions = 64;

Session clone(const Session &session, const proofinfer_options *options = nullptr, Answer *answer = nullptr) {
  proofinfer_session *made = reinterpret_cast<proofinfer_session *>(uintptr_t(1));
  Answer got = answer_of(proofinfer_session_clone, session.get(), options, &made);
  EXPECT_EQ(made != nullptr, got.ok()) << got;
  if (answer)
    *answer = got;
  else
    EXPECT_TRUE(got.ok()) << got;
  return Session(made);
}

std::vector<int32_t> part(const std::vector<int32_t> &tokens, size_t begin, size_t end) {
  return {tokens.begin() + std::ptrdiff_t(begin), tokens.begin() + std::ptrdiff_t(end)};
}

// The logits of the last position of a sequence, from a session of its own.
std::vector<float> fresh(const Model &model, const std::vector<int32_t> &tokens) {
  Session session = make_session(model);
  EXPECT_TRUE(append(session, tokens, PROOFINFER_LOGITS_LAST).ok());
  return logits(session, tokens.size() - 1);
}

// Appends and compares with a fresh run of all tokens that the session then holds.
void expect_fresh_bits(const Model &model, const Session &session, const std::vector<int32_t> &tokens) {
  ASSERT_TRUE(append(session, tokens, PROOFINFER_LOGITS_LAST).ok());
  std::vector<int32_t> held(proofinfer_session_position(session.get()));
  size_t needed = 0;
  ASSERT_TRUE(answer_of(proofinfer_session_tokens, session.get(), held.data(), held.size(), &needed).ok());
  EXPECT_EQ(logits(session, held.size() - 1), fresh(model, held));
}

void rewind(const Session &session, size_t position) { ASSERT_TRUE(answer_of(proofinfer_session_rewind, session.get(), position).ok()); }

// Options with memory of their own.
struct Counted {
  CountingAllocator allocator;
  Options options = make_options();
  Counted() { allocator.install(options); }
};

}  // namespace

TEST(Clone, both_sides_go_on_with_the_bits_of_a_fresh_run_from_every_place_of_a_page) {
  SmallWorld world;
  const std::vector<int32_t> tokens = small_tokens(200);
  for (size_t position : {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 190}) {
    SCOPED_TRACE(position);
    Session session = make_session(world.model);
    ASSERT_TRUE(append(session, part(tokens, 0, position), PROOFINFER_LOGITS_NONE).ok());
    Session other = clone(session);
    EXPECT_EQ(proofinfer_session_position(other.get()), position);
    EXPECT_EQ(proofinfer_session_context_length(other.get()), proofinfer_session_context_length(session.get()));
    expect_fresh_bits(world.model, other, {7, 8, 9});
    expect_fresh_bits(world.model, session, part(tokens, position, position + 5));
    expect_fresh_bits(world.model, other, {10, 11});
  }
}

TEST(Clone, it_takes_the_tokens_and_the_logits_of_the_last_position) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, {1, 4, 5}, PROOFINFER_LOGITS_ALL).ok());
  Session other = clone(session);
  EXPECT_EQ(logits(other, 2), logits(session, 2));
  std::vector<float> row(size_t(small_shape().vocab()));
  size_t needed = 0;
  EXPECT_EQ(answer_of(proofinfer_session_logits, other.get(), size_t(1), row.data(), row.size(), &needed).status, PROOFINFER_E_STATE);
  std::vector<int32_t> held(3);
  ASSERT_TRUE(answer_of(proofinfer_session_tokens, other.get(), held.data(), held.size(), &needed).ok());
  EXPECT_EQ(held, (std::vector<int32_t>{1, 4, 5}));
  ASSERT_TRUE(append(session, {6}, PROOFINFER_LOGITS_NONE).ok());
  other = clone(session);
  EXPECT_EQ(answer_of(proofinfer_session_logits, other.get(), size_t(3), row.data(), row.size(), &needed).status, PROOFINFER_E_STATE);
}

TEST(Clone, a_generation_starts_from_it_without_a_prompt) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, {1, 4, 5}, PROOFINFER_LOGITS_LAST).ok());
  Sampler sampler = make_sampler(small_shape().vocab());
  int32_t tokens[2];
  for (int i = 0; i < 2; i++) {
    Session other = clone(session);
    Generation generation = make_generation(other, world.tokenizer, sampler, {});
    char text[64];
    size_t needed = 0;
    int32_t stop = 0;
    ASSERT_TRUE(answer_of(proofinfer_generation_next, generation.get(), nullptr, &tokens[i], text, sizeof(text), &needed, &stop).ok());
  }
  EXPECT_GE(tokens[0], 0);
  EXPECT_EQ(tokens[0], tokens[1]);
}

TEST(Clone, full_pages_are_shared_and_only_the_last_one_is_copied) {
  SmallWorld world;
  Counted mine, theirs;
  Session session = make_session(world.model, mine.options.get());
  const uint64_t whole = proofinfer_session_memory_bytes(session.get());
  EXPECT_GE(whole, mine.allocator.held_bytes());
  // What a page costs: two sessions that differ by one.
  Counted one, two;
  set(one.options, "context_length", 64), set(two.options, "context_length", 128);
  const uint64_t with_one = proofinfer_session_memory_bytes(make_session(world.model, one.options.get()).get());
  const uint64_t with_two = proofinfer_session_memory_bytes(make_session(world.model, two.options.get()).get());
  ASSERT_TRUE(append(session, small_tokens(4 * kPagePositions + 10), PROOFINFER_LOGITS_LAST).ok());
  const uint64_t before = mine.allocator.calls();
  Session other = clone(session, theirs.options.get());
  EXPECT_EQ(mine.allocator.calls(), before);
  EXPECT_EQ(proofinfer_session_memory_bytes(session.get()), whole);
  const uint64_t saved = whole - proofinfer_session_memory_bytes(other.get());
  const uint64_t page = small_shape().kv_dim() * 2 * 64 * 2 * sizeof(float);
  EXPECT_GE(saved, 4 * page);
  EXPECT_LT(saved, 5 * page);
  EXPECT_GE(with_two - with_one, page);
}

TEST(Clone, appending_after_it_allocates_nothing_in_either) {
  SmallWorld world;
  Counted mine, theirs;
  Session session = make_session(world.model, mine.options.get());
  ASSERT_TRUE(append(session, small_tokens(100), PROOFINFER_LOGITS_LAST).ok());
  Session other = clone(session, theirs.options.get());
  const uint64_t my_calls = mine.allocator.calls(), their_calls = theirs.allocator.calls();
  while (proofinfer_session_position(session.get()) < size_t(kSmallContext)) {
    ASSERT_TRUE(append(session, {5}, PROOFINFER_LOGITS_LAST).ok());
    ASSERT_TRUE(append(other, {6}, PROOFINFER_LOGITS_LAST).ok());
  }
  EXPECT_EQ(mine.allocator.calls(), my_calls);
  EXPECT_EQ(theirs.allocator.calls(), their_calls);
}

TEST(Clone, shared_pages_outlive_their_maker_in_its_memory) {
  SmallWorld world;
  Counted mine, theirs;
  Session session = make_session(world.model, mine.options.get());
  ASSERT_TRUE(append(session, small_tokens(150), PROOFINFER_LOGITS_LAST).ok());
  Session other = clone(session, theirs.options.get());
  Session third = clone(other);
  session.reset();
  EXPECT_GT(mine.allocator.held_blocks(), 0u);
  EXPECT_LT(mine.allocator.held_blocks(), 6u);  // two pages and whose they are
  expect_fresh_bits(world.model, other, {7, 8});
  other.reset();
  EXPECT_GT(mine.allocator.held_blocks(), 0u);
  expect_fresh_bits(world.model, third, {9});
  third.reset();
  EXPECT_EQ(mine.allocator.held_blocks(), 0u);
  EXPECT_EQ(theirs.allocator.held_blocks(), 0u);
}

TEST(Clone, storing_to_a_shared_page_after_a_rewind_leaves_the_others_as_they_were) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, small_tokens(200), PROOFINFER_LOGITS_LAST).ok());
  Session other = clone(session), third = clone(session);
  for (size_t position : {130, 64, 63, 20, 0}) {
    rewind(other, position);
    expect_fresh_bits(world.model, other, {9, 8, 7});
    expect_fresh_bits(world.model, other, std::vector<int32_t>(70, 6));
    expect_fresh_bits(world.model, third, {11});
    expect_fresh_bits(world.model, session, {12});
  }
  rewind(session, 100);
  expect_fresh_bits(world.model, session, {5, 6, 7});
  expect_fresh_bits(world.model, third, {8});
}

TEST(Clone, a_rewound_session_that_finds_no_memory_for_a_shared_page_stays_as_it_was) {
  SmallWorld world;
  Counted mine, theirs;
  Session session = make_session(world.model, mine.options.get());
  ASSERT_TRUE(append(session, small_tokens(200), PROOFINFER_LOGITS_LAST).ok());
  Session other = clone(session, theirs.options.get());
  rewind(other, 70);
  const std::vector<int32_t> more(100, 9);  // pages 1 and 2 are shared
  for (uint64_t k : {0, 1}) {
    theirs.allocator.fail_call(k);
    Answer answer = append(other, more, PROOFINFER_LOGITS_LAST);
    EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << answer;
    EXPECT_TRUE(answer.says("KV cache")) << answer;
    EXPECT_EQ(proofinfer_session_position(other.get()), 70u);
  }
  expect_fresh_bits(world.model, other, more);
  expect_fresh_bits(world.model, session, {3});
}

TEST(Clone, limits_are_those_of_each_session) {
  SmallWorld world;
  Options limited = make_options();
  const uint64_t whole = proofinfer_session_memory_bytes(make_session(world.model).get());
  set_u64(limited, "memory_limit_bytes", whole);
  Session session = make_session(world.model, limited.get());
  ASSERT_TRUE(append(session, small_tokens(130), PROOFINFER_LOGITS_LAST).ok());
  Session other = clone(session);  // with the limit of the session
  Options tight = make_options();
  set_u64(tight, "memory_limit_bytes", whole / 8);
  Answer answer;
  EXPECT_FALSE(clone(session, tight.get(), &answer));
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << answer;
  // The two pages that it shares would be two more than the limit leaves room for; the first is.
  const uint64_t used = proofinfer_session_memory_bytes(other.get());
  set_u64(tight, "memory_limit_bytes", used);
  Session third = clone(session, tight.get());
  rewind(third, 0);
  std::vector<int32_t> tokens(129, 4);
  answer = append(third, tokens, PROOFINFER_LOGITS_LAST);
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << answer;
  EXPECT_EQ(proofinfer_session_position(third.get()), 0u);
  expect_fresh_bits(world.model, session, {5});
  session.reset(), other.reset();
  expect_fresh_bits(world.model, third, tokens);  // its pages are now its own
}

TEST(Clone, the_context_may_be_another_one) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, small_tokens(70), PROOFINFER_LOGITS_LAST).ok());
  Options options = make_options();
  for (int64_t length : {70, 71, 128, 129, 512}) {
    set(options, "context_length", length);
    Session other = clone(session, options.get());
    EXPECT_EQ(proofinfer_session_context_length(other.get()), size_t(length));
    Answer full = append(other, std::vector<int32_t>(size_t(length) - 70 + 1, 3));
    EXPECT_EQ(full.status, PROOFINFER_E_CONTEXT) << full;
    if (length > 70) expect_fresh_bits(world.model, other, std::vector<int32_t>(size_t(length) - 70, 3));
  }
  for (int64_t length : {1, 69, 513}) {
    set(options, "context_length", length);
    Answer answer;
    EXPECT_FALSE(clone(session, options.get(), &answer));
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
    EXPECT_TRUE(answer.says(std::to_string(length))) << answer;
  }
}

TEST(Clone, clones_and_their_original_in_one_batch_get_the_bits_of_running_alone) {
  SmallWorld world;
  const std::vector<int32_t> prompt = small_tokens(70);
  std::vector<Session> sessions;
  sessions.push_back(make_session(world.model));
  ASSERT_TRUE(append(sessions[0], prompt, PROOFINFER_LOGITS_LAST).ok());
  for (int i = 0; i < 4; i++) sessions.push_back(clone(sessions[size_t(i)]));
  rewind(sessions[3], 64), rewind(sessions[4], 10);
  proofinfer_batch *made = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_batch_create, world.model.get(), size_t(16), nullptr, &made).ok());
  Batch batch(made);
  for (int32_t step = 0; step < 70; step++) {
    for (size_t i = 0; i < sessions.size(); i++)
      ASSERT_TRUE(answer_of(proofinfer_batch_add, batch.get(), sessions[i].get(), int32_t(3 + i * 7 + size_t(step)), 1).ok());
    ASSERT_TRUE(answer_of(proofinfer_batch_evaluate, batch.get(), nullptr).ok());
    if (step % 9 != 0) continue;
    for (const Session &session : sessions) {
      std::vector<int32_t> held(proofinfer_session_position(session.get()));
      size_t needed = 0;
      ASSERT_TRUE(answer_of(proofinfer_session_tokens, session.get(), held.data(), held.size(), &needed).ok());
      ASSERT_EQ(logits(session, held.size() - 1), fresh(world.model, held));
    }
  }
}

TEST(Clone, clones_on_eight_threads_share_pages_write_and_die_without_a_race) {
  SmallWorld world;
  Session session = make_session(world.model);
  const std::vector<int32_t> prompt = small_tokens(150);
  ASSERT_TRUE(append(session, prompt, PROOFINFER_LOGITS_LAST).ok());
  std::vector<std::vector<float>> expected;
  for (size_t cut = 0; cut <= 150; cut += 30) {
    std::vector<int32_t> tokens = part(prompt, 0, cut);
    tokens.insert(tokens.end(), {7, 8, 9});
    expected.push_back(fresh(world.model, tokens));
  }
  for (int round = 0; round < 4; round++) {
    std::vector<Session> clones;
    for (int i = 0; i < 8; i++) clones.push_back(clone(session));
    if (round == 3) session.reset();
    std::atomic<int> wrong{0};
    std::vector<std::thread> workers;
    for (size_t i = 0; i < 8; i++)
      workers.emplace_back([&, i] {
        Session mine = std::move(clones[i]);
        for (size_t k = 0; k < expected.size(); k++) {
          const size_t cut = 30 * ((i + k) % expected.size());
          Session other = clone(mine);
          if (!answer_of(proofinfer_session_rewind, other.get(), cut).ok()) wrong++;
          if (!append(other, {7, 8, 9}, PROOFINFER_LOGITS_LAST).ok()) wrong++;
          if (logits(other, cut + 2) != expected[cut / 30]) wrong++;
        }
      });
    for (std::thread &worker : workers) worker.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Clone, wrong_handles_are_refused) {
  SmallWorld world;
  Session session = make_session(world.model);
  proofinfer_session *made = session.get();
  EXPECT_EQ(answer_of(proofinfer_session_clone, nullptr, nullptr, &made).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(answer_of(proofinfer_session_clone, session.get(), nullptr, nullptr).status, PROOFINFER_E_ARGUMENT);
  made = session.get();
  EXPECT_EQ(answer_of(proofinfer_session_clone, reinterpret_cast<proofinfer_session *>(world.model.get()), nullptr, &made).status,
            PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(made, nullptr);
}

}  // namespace proofinfer_test
