// Life and death of handles: any order of frees, frees during calls on other threads, many threads on one model, cancel, fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/files.h"
#include "support/sanitizer.h"
#include "support/small_world.h"

// ThreadSanitizer refuses threads in a forked child unless it is told that they are meant.
extern "C" const char *__tsan_default_options() { return "die_after_fork=0"; }

namespace proofinfer_test {

namespace {

struct Everything {
  Options options = make_options();
  SmallWorld world;
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab());
  Generation generation = make_generation(session, world.tokenizer, sampler, {1, 4, 5});
  Stream stream;

  Everything() {
    proofinfer_stream *made = nullptr;
    EXPECT_TRUE(answer_of(proofinfer_stream_create, world.tokenizer.get(), -1, &made).ok());
    stream.reset(made);
  }
  void free_part(int part) {
    switch (part) {
      case 0: world.model.reset(); break;
      case 1: world.tokenizer.reset(); break;
      case 2: session.reset(); break;
      case 3: sampler.reset(); break;
      case 4: generation.reset(); break;
      case 5: stream.reset(); break;
    }
  }
};

Answer next(const Generation &generation, proofinfer_cancel *cancel = nullptr, int32_t *token = nullptr, int32_t *stop_reason = nullptr) {
  int32_t id = 0, stop = 0;
  char text[256];
  size_t needed = 0;
  Answer answer = answer_of(proofinfer_generation_next, generation.get(), cancel, &id, text, sizeof(text), &needed, &stop);
  if (token) *token = id;
  if (stop_reason) *stop_reason = stop;
  return answer;
}

Cancel make_cancel() {
  proofinfer_cancel *cancel = nullptr;
  EXPECT_TRUE(answer_of(proofinfer_cancel_create, &cancel).ok());
  return Cancel(cancel);
}

// The logits after a fixed sequence: what every session of the small model must say.
std::vector<float> expected_logits() {
  SmallWorld world;
  Session session = make_session(world.model);
  EXPECT_TRUE(append(session, small_tokens(70), PROOFINFER_LOGITS_LAST).ok());
  return logits(session, 69);
}

// A checkpoint whose prefill takes long enough to be stopped in the middle.
std::vector<uint8_t> slow_checkpoint() { return legacy_checkpoint({128, 384, 6, 4, 4, 300, 4096}, 3); }

}  // namespace

TEST(LifeCycle, every_order_of_frees_is_safe) {
  std::vector<int> order = {0, 1, 2, 3, 4, 5};
  do {
    Everything all;
    ASSERT_TRUE(next(all.generation).ok());
    for (int part : order) all.free_part(part);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(LifeCycle, what_is_left_still_works_after_its_parts_are_freed) {
  Everything all;
  all.world.model.reset();
  all.world.tokenizer.reset();
  all.sampler.reset();
  ASSERT_TRUE(append(all.session, {}, PROOFINFER_LOGITS_LAST).ok());
  all.session.reset();
  for (int i = 0; i < 5; i++) ASSERT_TRUE(next(all.generation).ok());
  char text[64];
  size_t needed = 0;
  EXPECT_TRUE(answer_of(proofinfer_stream_push, all.stream.get(), 4, text, sizeof(text), &needed).ok());
}

TEST(LifeCycle, a_free_during_a_call_on_another_thread_takes_effect_when_the_call_ends) {
  std::vector<uint8_t> bytes = slow_checkpoint();
  for (int round = 0; round < 8; round++) {
    Options options = make_options();
    CountingAllocator allocator;
    allocator.install(options);
    Model model = open_model(bytes, options.get());
    Session session = make_session(model, options.get());
    proofinfer_session *raw = session.release();
    Cancel progress = make_cancel();
    Answer answer;
    std::thread worker([&] {
      std::vector<int32_t> tokens(400, 5);
      answer = answer_of(proofinfer_session_append, raw, tokens.data(), tokens.size(), PROOFINFER_LOGITS_NONE, progress.get());
    });
    for (uint64_t total = 0; total == 0;) proofinfer_cancel_progress(progress.get(), nullptr, &total);  // the call is inside
    proofinfer_session_free(raw);
    model.reset();
    worker.join();
    EXPECT_TRUE(answer.ok()) << answer;
    EXPECT_EQ(allocator.held_blocks(), 0u);
  }
}

TEST(LifeCycle, eight_threads_on_one_model_get_the_bits_of_one) {
  const std::vector<float> expected = expected_logits();
  for (int64_t threads : {1, 3}) {
    Options options = make_options();
    set(options, "threads", threads);
    set_u64(options, "share_from_bytes", 0);
    SmallWorld world(options.get());
    std::atomic<int> wrong{0};
    std::vector<std::thread> workers;
    for (int i = 0; i < 8; i++)
      workers.emplace_back([&, i] {
        for (int round = 0; round < 10; round++) {
          Session session = make_session(world.model);
          std::vector<int32_t> tokens = small_tokens(70);
          size_t cut = size_t(1 + (i * 10 + round) % 69);
          std::vector<int32_t> head(tokens.begin(), tokens.begin() + std::ptrdiff_t(cut)),
              tail(tokens.begin() + std::ptrdiff_t(cut), tokens.end());
          if (!append(session, head, PROOFINFER_LOGITS_NONE).ok() || !append(session, tail, PROOFINFER_LOGITS_LAST).ok()) wrong++;
          if (logits(session, 69) != expected) wrong++;
        }
      });
    for (std::thread &worker : workers) worker.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(LifeCycle, two_threads_in_one_session_get_busy_and_no_race) {
  Model model = open_model(slow_checkpoint());
  Session session = make_session(model);
  std::atomic<int> busy{0}, ok{0}, other{0};
  auto work = [&] {
    for (int i = 0; i < 50; i++) {
      Answer answer = append(session, {1, 2, 3}, PROOFINFER_LOGITS_LAST);
      (answer.ok() ? ok : answer.status == PROOFINFER_E_BUSY ? busy : other)++;
    }
  };
  std::thread a(work), b(work);
  a.join(), b.join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(ok + busy, 100);
  EXPECT_EQ(proofinfer_session_position(session.get()), size_t(ok) * 3);
}

TEST(LifeCycle, a_cancel_from_another_thread_stops_a_long_prompt_and_nothing_else) {
  Model model = open_model(slow_checkpoint());
  Session session = make_session(model), other = make_session(model);
  ASSERT_TRUE(append(session, {1, 2}, PROOFINFER_LOGITS_LAST).ok());
  Cancel cancel = make_cancel();
  std::vector<int32_t> prompt(4000, 5);
  std::thread stopper([&] {
    uint64_t done = 0, total = 0;
    while (done == 0) proofinfer_cancel_progress(cancel.get(), &done, &total);
    EXPECT_EQ(total, prompt.size());
    proofinfer_cancel_request(cancel.get());
  });
  Answer answer = append(session, prompt, PROOFINFER_LOGITS_LAST, cancel.get());
  stopper.join();
  EXPECT_EQ(answer.status, PROOFINFER_E_CANCELLED) << answer;
  EXPECT_EQ(proofinfer_session_position(session.get()), 2u);
  EXPECT_EQ(proofinfer_cancel_requested(cancel.get()), 1);
  EXPECT_TRUE(append(other, {1}, PROOFINFER_LOGITS_LAST).ok());                                        // without a cancel
  EXPECT_EQ(append(other, {1}, PROOFINFER_LOGITS_LAST, cancel.get()).status, PROOFINFER_E_CANCELLED);  // until it is reset
  proofinfer_cancel_reset(cancel.get());
  EXPECT_EQ(proofinfer_cancel_requested(cancel.get()), 0);
  EXPECT_TRUE(append(session, {3}, PROOFINFER_LOGITS_LAST, cancel.get()).ok());
  Session fresh = make_session(model);
  ASSERT_TRUE(append(fresh, {1, 2, 3}, PROOFINFER_LOGITS_LAST).ok());
  EXPECT_EQ(logits(session, 2), logits(fresh, 2));
}

TEST(LifeCycle, a_cancelled_load_gives_no_model_and_leaks_nothing) {
  Options options = make_options();
  CountingAllocator allocator;
  allocator.install(options);
  Cancel cancel = make_cancel();
  proofinfer_cancel_request(cancel.get());
  std::vector<uint8_t> bytes = slow_checkpoint();
  proofinfer_model *model = nullptr;
  Answer answer = answer_of(proofinfer_model_open_memory, bytes.data(), bytes.size(), options.get(), cancel.get(), &model);
  EXPECT_EQ(answer.status, PROOFINFER_E_CANCELLED);
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(allocator.held_blocks(), 0u);
}

TEST(LifeCycle, a_cancelled_generation_goes_on_where_it_was) {
  SmallWorld world;
  Sampler sampler = make_sampler(small_shape().vocab());
  std::vector<int32_t> expected, found;
  for (int round = 0; round < 2; round++) {
    Session session = make_session(world.model);
    Generation generation = make_generation(session, world.tokenizer, sampler, {1, 4, 5});
    Cancel cancel = make_cancel();
    for (int i = 0; i < 10; i++) {
      int32_t id = 0;
      if (round == 1) {
        proofinfer_cancel_request(cancel.get());
        ASSERT_EQ(next(generation, cancel.get(), &id).status, PROOFINFER_E_CANCELLED);
        proofinfer_cancel_reset(cancel.get());
      }
      ASSERT_TRUE(next(generation, cancel.get(), &id).ok());
      (round ? found : expected).push_back(id);
    }
  }
  EXPECT_EQ(found, expected);
}

static proofinfer_cancel *g_cancel;

TEST(LifeCycle, a_cancel_may_be_requested_in_a_signal_handler) {
  Cancel cancel = make_cancel();
  g_cancel = cancel.get();
  auto before = std::signal(SIGUSR1, [](int) { proofinfer_cancel_request(g_cancel); });
  raise(SIGUSR1);
  std::signal(SIGUSR1, before);
  EXPECT_EQ(proofinfer_cancel_requested(cancel.get()), 1);
}

TEST(LifeCycle, a_forked_child_computes_with_its_parents_model) {
  const std::vector<float> expected = expected_logits();
  Options options = make_options();
  set(options, "threads", 3);
  set_u64(options, "share_from_bytes", 0);
  SmallWorld world(options.get());
  Session session = make_session(world.model);
  std::vector<int32_t> tokens = small_tokens(70);
  ASSERT_TRUE(append(session, {tokens.begin(), tokens.begin() + 40}, PROOFINFER_LOGITS_NONE).ok());
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    bool good = append(session, {tokens.begin() + 40, tokens.end()}, PROOFINFER_LOGITS_LAST).ok() && logits(session, 69) == expected;
    Session another = make_session(world.model);
    good = good && append(another, tokens, PROOFINFER_LOGITS_LAST).ok() && logits(another, 69) == expected;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_TRUE(append(session, {tokens.begin() + 40, tokens.end()}, PROOFINFER_LOGITS_LAST).ok());
  EXPECT_EQ(logits(session, 69), expected);
}

[[noreturn]] static void work_and_exit_without_freeing() {
  Options options = make_options();
  set(options, "threads", 3);
  set_u64(options, "share_from_bytes", 0);
  static SmallWorld *world = new SmallWorld(options.get());
  static Session *session = new Session(make_session(world->model));
  std::exit(append(*session, small_tokens(70)).ok() ? 0 : 1);
}

TEST(LifeCycle, exit_with_live_handles_is_clean) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(work_and_exit_without_freeing(), testing::ExitedWithCode(0), "");
}

TEST(LifeCycle, sixty_four_threads_finish) {
  const std::vector<float> expected = expected_logits();
  Options options = make_options();
  set(options, "threads", 64);
  set_u64(options, "share_from_bytes", 0);
  SmallWorld world(options.get());
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, small_tokens(70), PROOFINFER_LOGITS_LAST).ok());
  EXPECT_EQ(logits(session, 69), expected);
}

// Bytes of memory that this process has in use, and its open descriptors.
static size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * size_t(sysconf(_SC_PAGESIZE));
}
// Valgrind, like the sanitizers, keeps freed memory for a while and looks for leaks itself.
static bool keeps_freed_memory() {
#if defined(PROOFINFER_TEST_SANITIZED)
  return true;
#else
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  return text.find("vgpreload") != std::string::npos;
#endif
}
static size_t descriptor_count() {
  return size_t(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

TEST(LifeCycle, ten_thousand_loads_and_frees_half_of_them_failing_hold_no_memory_and_no_descriptor) {
  constexpr int kCycles = 10000, kWarmUp = 1000;
  constexpr size_t kMostGrowth = size_t(1) << 20;  // less than 128 bytes a cycle
  const std::vector<uint8_t> good = version2_checkpoint({16, 24, 1, 2, 1, 40, 16}, 1, 8), pieces = tokenizer_file(small_pieces());
  const std::vector<uint8_t> cut(good.begin(), good.end() - 1), cut_pieces(pieces.begin(), pieces.end() - 1);
  ScratchFile good_file(good), cut_file(cut);
  size_t resident = 0, descriptors = 0;
  for (int i = 0; i < kCycles; i++) {
    if (i == kWarmUp) resident = resident_bytes(), descriptors = descriptor_count();
    Answer answer;
    const bool fails = i % 2;
    Model model = i % 4 < 2 ? open_model(fails ? cut : good, nullptr, &answer)
                            : open_model(fails ? cut_file.path() : good_file.path(), nullptr, &answer);
    ASSERT_EQ(answer.status, fails ? PROOFINFER_E_TRUNCATED : PROOFINFER_OK);
    open_tokenizer(fails ? cut_pieces : pieces, small_shape().vocab(), nullptr, &answer);
    ASSERT_EQ(answer.status, fails ? PROOFINFER_E_TRUNCATED : PROOFINFER_OK);
    if (model) {
      Session session = make_session(model);
      ASSERT_TRUE(append(session, {1, 2}, PROOFINFER_LOGITS_ALL).ok());
    }
  }
  EXPECT_EQ(descriptor_count(), descriptors);
  if (!keeps_freed_memory()) {
    EXPECT_LE(resident_bytes(), resident + kMostGrowth);
  }
}

TEST(LifeCycle, shared_handles_may_be_freed_while_eight_threads_use_what_was_made_from_them) {
  const std::vector<float> expected = expected_logits();
  for (int round = 0; round < 5; round++) {
    SmallWorld world;
    std::vector<Session> sessions;
    std::vector<Stream> streams;
    for (int i = 0; i < 8; i++) {
      sessions.push_back(make_session(world.model));
      proofinfer_stream *stream = nullptr;
      ASSERT_TRUE(answer_of(proofinfer_stream_create, world.tokenizer.get(), -1, &stream).ok());
      streams.emplace_back(stream);
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> workers;
    for (size_t i = 0; i < 8; i++)
      workers.emplace_back([&, i] {
        if (!append(sessions[i], small_tokens(70), PROOFINFER_LOGITS_LAST).ok() || logits(sessions[i], 69) != expected) wrong++;
        char text[16];
        size_t needed = 0;
        if (!answer_of(proofinfer_stream_push, streams[i].get(), 262, text, sizeof(text), &needed).ok()) wrong++;
        sessions[i].reset(), streams[i].reset();  // the last one takes model and tokenizer with it
      });
    world.model.reset(), world.tokenizer.reset();
    for (std::thread &worker : workers) worker.join();
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace proofinfer_test
