// Decoding allocates nothing: counted by the caller's hooks and, outside the sanitizers, by standing in for the C library's allocator.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "support/sanitizer.h"
#include "support/small_world.h"

#if defined(__GLIBC__) && !defined(PROOFINFER_TEST_SANITIZED)
#define PROOFINFER_TEST_INTERPOSES 1
#else
#define PROOFINFER_TEST_INTERPOSES 0
#endif

static std::atomic<bool> g_counting{false};
static std::atomic<uint64_t> g_count{0};

static void count_one() {
  if (g_counting.load(std::memory_order_relaxed)) g_count.fetch_add(1, std::memory_order_relaxed);
}

#if PROOFINFER_TEST_INTERPOSES
extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t bytes) {
  count_one();
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  count_one();
  return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  count_one();
  return __libc_realloc(memory, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  count_one();
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  count_one();
  return __libc_memalign(alignment, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  count_one();
  return __libc_memalign(alignment, bytes);
}
void free(void *memory) { __libc_free(memory); }
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  count_one();
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

}  // extern "C"
#endif

namespace proofinfer_test {

namespace {

class Counting {
 public:
  Counting() {
    g_count = 0;
    g_counting = true;
  }
  ~Counting() { g_counting = false; }
  uint64_t count() const { return g_count; }
};

}  // namespace

TEST(Allocations, the_counters_see_what_allocates) {
  Options options = make_options();
  CountingAllocator allocator;
  SmallWorld world;
  {
    Counting counting;
    Session session = make_session(world.model);
#if PROOFINFER_TEST_INTERPOSES
    EXPECT_GT(counting.count(), 0u);
#endif
  }
  allocator.install(options);
  Session session = make_session(world.model, options.get());
  EXPECT_GT(allocator.calls(), 0u);
}

TEST(Allocations, two_hundred_sampled_tokens_with_their_text_take_none) {
  for (int64_t threads : {1, 3}) {
    Options options = make_options();
    CountingAllocator allocator;
    allocator.install(options);
    set(options, "threads", threads);
    set_u64(options, "share_from_bytes", 0);
    set_f64(options, "temperature", 1.0);
    set_f64(options, "top_p", 0.9);
    set_tokens(options, "stop_tokens", {});
    SmallWorld world(options.get());
    Session session = make_session(world.model, options.get());
    Sampler sampler = make_sampler(small_shape().vocab(), options.get());
    Generation generation = make_generation(session, world.tokenizer, sampler, small_tokens(50), options.get());
    proofinfer_stream *made = nullptr;
    ASSERT_TRUE(answer_of(proofinfer_stream_create, world.tokenizer.get(), -1, &made).ok());
    Stream stream(made);

    uint64_t by_hooks = allocator.calls(), by_interposition = 0;
    size_t text_bytes = 0, streamed_bytes = 0;
    int32_t failures = 0;
    {
      Counting counting;
      for (int i = 0; i < 200; i++) {
        char text[256];
        size_t needed = 0;
        int32_t id = -1, stop = -1;
        failures += proofinfer_generation_next(generation.get(), nullptr, &id, text, sizeof(text), &needed, &stop, nullptr);
        text_bytes += needed;
        failures += proofinfer_stream_push(stream.get(), id, text, sizeof(text), &needed, nullptr);
        streamed_bytes += needed;
      }
      by_interposition = counting.count();
    }
    EXPECT_EQ(failures, 0);
    EXPECT_GT(text_bytes, 0u);
    EXPECT_GT(streamed_bytes, 0u);
    EXPECT_EQ(proofinfer_session_position(session.get()), 249u);
    EXPECT_EQ(allocator.calls() - by_hooks, 0u) << "threads " << threads;
    EXPECT_EQ(by_interposition, 0u) << "threads " << threads;
  }
}

TEST(Allocations, the_steps_of_a_scheduler_take_none) {
  for (int64_t threads : {1, 3}) {
    Options options = make_options();
    CountingAllocator allocator;
    allocator.install(options);
    set(options, "threads", threads);
    set_u64(options, "share_from_bytes", 0);
    set_f64(options, "temperature", 1.0);
    set(options, "max_tokens", 100);
    SmallWorld world(options.get());
    proofinfer_scheduler *made = nullptr;
    ASSERT_TRUE(answer_of(proofinfer_scheduler_create, world.model.get(), world.tokenizer.get(), options.get(), &made).ok());
    Scheduler scheduler(made);
    std::vector<int32_t> prompt = small_tokens(50);
    uint64_t whose = 0;
    for (size_t i = 0; i < 5; i++)
      ASSERT_TRUE(
          answer_of(proofinfer_scheduler_submit, scheduler.get(), prompt.data(), prompt.size() - i * 7, options.get(), &whose).ok());
    uint64_t by_hooks = allocator.calls(), by_interposition = 0;
    size_t tokens = 0;
    int32_t failures = 0;
    {
      Counting counting;
      while (proofinfer_scheduler_count(scheduler.get()) > 0) {
        failures += proofinfer_scheduler_step(scheduler.get(), nullptr, nullptr, nullptr);
        do {
          char text[256];
          size_t needed = 0;
          int32_t id = -1, stop = -1;
          failures += proofinfer_scheduler_next(scheduler.get(), 0, &whose, &id, text, sizeof(text), &needed, &stop, nullptr);
          tokens += id >= 0;
        } while (whose != 0);
      }
      by_interposition = counting.count();
    }
    EXPECT_EQ(failures, 0);
    EXPECT_GT(tokens, 100u);
    EXPECT_EQ(allocator.calls() - by_hooks, 0u) << "threads " << threads;
    EXPECT_EQ(by_interposition, 0u) << "threads " << threads;
  }
}

TEST(Allocations, two_hundred_tokens_through_every_filter_a_mask_a_step_stop_strings_and_log_probabilities_take_none) {
  Options options = make_options();
  CountingAllocator allocator;
  allocator.install(options);
  for (const char *name : {"temperature", "top_p", "typical_p"}) set_f64(options, name, 0.95);
  for (const char *name : {"min_p", "frequency_penalty", "presence_penalty"}) set_f64(options, name, 0.01);
  set_f64(options, "repetition_penalty", 1.1);
  set(options, "top_k", 100);
  set(options, "logprobs", 5);
  set_tokens(options, "stop_tokens", {});
  const size_t bytes[] = {9, 9};
  ASSERT_TRUE(answer_of(proofinfer_options_set_texts, options.get(), PROOFINFER_TEXT("stop_strings"), "not there nor here",
                        static_cast<const size_t *>(bytes), size_t(2))
                  .ok());
  SmallWorld world(options.get());
  const int32_t vocab = small_shape().vocab(), banned = 7;
  const float bias = 0.5f;
  Session session = make_session(world.model, options.get());
  Sampler sampler = make_sampler(vocab, options.get());
  Generation generation = make_generation(session, world.tokenizer, sampler, small_tokens(50), options.get());
  std::vector<uint32_t> mask((size_t(vocab) + 31) / 32, 0xFFFFFFF0u);
  ASSERT_TRUE(answer_of(proofinfer_sampler_set_mask, sampler.get(), mask.data(), mask.size()).ok());
  ASSERT_TRUE(answer_of(proofinfer_sampler_set_banned, sampler.get(), &banned, size_t(1)).ok());
  ASSERT_TRUE(answer_of(proofinfer_sampler_set_bias, sampler.get(), &banned, &bias, size_t(1)).ok());
  uint64_t by_hooks = allocator.calls(), by_interposition = 0;
  int32_t failures = 0;
  {
    Counting counting;
    for (int i = 0; i < 200; i++) {
      char text[256];
      size_t needed = 0;
      int32_t id = -1, stop = -1, tokens[5];
      float logprob = 0, logprobs[5];
      mask[0] ^= 1u << i % 20;
      failures += proofinfer_sampler_set_mask(sampler.get(), mask.data(), mask.size(), nullptr);
      failures += proofinfer_generation_next(generation.get(), nullptr, &id, text, sizeof(text), &needed, &stop, nullptr);
      failures += proofinfer_generation_logprobs(generation.get(), &logprob, tokens, logprobs, 5, &needed, nullptr);
    }
    by_interposition = counting.count();
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(proofinfer_session_position(session.get()), 249u);
  EXPECT_EQ(allocator.calls() - by_hooks, 0u);
  EXPECT_EQ(by_interposition, 0u);
}

TEST(Allocations, rewinding_and_reading_logits_take_none) {
  Options options = make_options();
  CountingAllocator allocator;
  allocator.install(options);
  SmallWorld world(options.get());
  Session session = make_session(world.model, options.get());
  std::vector<int32_t> tokens = small_tokens(70);
  std::vector<float> values(size_t(small_shape().vocab()));
  uint64_t by_hooks = allocator.calls(), by_interposition = 0;
  int32_t failures = 0;
  {
    Counting counting;
    for (size_t position : {0, 5, 64, 65}) {
      size_t needed = 0;
      failures += proofinfer_session_rewind(session.get(), 0, nullptr);
      failures += proofinfer_session_append(session.get(), tokens.data(), position + 1, PROOFINFER_LOGITS_LAST, nullptr, nullptr);
      failures += proofinfer_session_logits(session.get(), position, values.data(), values.size(), &needed, nullptr);
    }
    by_interposition = counting.count();
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(allocator.calls() - by_hooks, 0u);
  EXPECT_EQ(by_interposition, 0u);
}

}  // namespace proofinfer_test
