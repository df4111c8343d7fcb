// Every entry point needs at most 32 KiB of stack, also on a thread that a binding gives 64 or 128 KiB: measured on a painted stack.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "support/files.h"
#include "support/sanitizer.h"
#include "support/scheduling.h"

namespace proofinfer_test {

namespace {

constexpr size_t kStackBytes = 1 << 20;
constexpr size_t kMostBytes = 32 << 10;
constexpr uint8_t kPaint = 0xA5;

struct Work {
  const std::function<void()> *run;
  const uint8_t *from;  // where the stack was when it began
};

// The most stack that `work` had in use.
size_t stack_bytes(const std::function<void()> &work) {
  void *memory = nullptr;
  if (posix_memalign(&memory, 4096, kStackBytes) != 0) return 0;
  std::memset(memory, kPaint, kStackBytes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EXPECT_EQ(pthread_attr_setstack(&attributes, memory, kStackBytes), 0);
  Work argument{&work, nullptr};
  pthread_t thread;
  auto run = [](void *given) -> void * {
    Work *w = static_cast<Work *>(given);
    uint8_t here = 0;
    w->from = &here;
    (*w->run)();
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, run, &argument), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  const uint8_t *bottom = static_cast<uint8_t *>(memory);
  const uint8_t *deepest = std::find_if(bottom, bottom + kStackBytes, [](uint8_t byte) { return byte != kPaint; });
  size_t used = size_t(argument.from - deepest);
  std::free(memory);
  return used;
}

void expect_little(const std::string &name, const std::function<void()> &work) {
  size_t used = stack_bytes(work);
  EXPECT_GT(used, 0u) << name;
  EXPECT_LE(used, kMostBytes) << name;
  testing::Test::RecordProperty(name, std::to_string(used));
}

class Stack : public testing::Test {
 protected:
  void SetUp() override {
#if defined(PROOFINFER_TEST_SANITIZED)
    PROOFINFER_SKIP("instrumented") << "a sanitizer's frames are larger";
#endif
  }
};

// What computes, with `options` of one kernel set.
void expect_little_of_work(const std::string &isa, const std::vector<uint8_t> &checkpoint) {
  Options options = make_options();
  set_text(options, "isa", isa);
  set(options, "threads", 2);
  set_u64(options, "share_from_bytes", 0);
  set_f64(options, "temperature", 0.8);
  set_tokens(options, "stop_tokens", {});
  Model model;
  expect_little("open_" + isa, [&] {
    proofinfer_model *opened = nullptr;
    proofinfer_model_open_memory(checkpoint.data(), checkpoint.size(), options.get(), nullptr, &opened, nullptr);
    model.reset(opened);
  });
  ASSERT_NE(model, nullptr);
  int32_t vocab = int32_t(model_i64(model, PROOFINFER_MODEL_VOCAB_SIZE));
  Session session = make_session(model, options.get());
  std::vector<int32_t> tokens = small_tokens(200);
  for (int32_t &token : tokens) token %= vocab;
  int32_t status = -1;
  expect_little("append_" + isa, [&] {
    status = proofinfer_session_append(session.get(), tokens.data(), tokens.size(), PROOFINFER_LOGITS_ALL, nullptr, nullptr);
  });
  EXPECT_EQ(status, PROOFINFER_OK);
  std::vector<float> scores(tokens.size());
  const size_t counts[] = {150, 50};
  expect_little("score_" + isa, [&] {
    proofinfer_session_rewind(session.get(), 1, nullptr);
    status = proofinfer_session_score(session.get(), tokens.data(), tokens.size(), scores.data(), nullptr, nullptr);
    if (status == PROOFINFER_OK)
      status = proofinfer_model_score(model.get(), tokens.data(), counts, 2, options.get(), scores.data(), nullptr, nullptr);
  });
  EXPECT_EQ(status, PROOFINFER_OK);
  Tokenizer tokenizer = open_tokenizer(tokenizer_file(small_pieces()), vocab);
  Sampler sampler = make_sampler(vocab, options.get());
  Generation generation = make_generation(session, tokenizer, sampler, {}, options.get());
  expect_little("generate_" + isa, [&] {
    for (int i = 0; i < 20; i++) {
      int32_t id = 0, stop = 0;
      char text[64];
      size_t needed = 0;
      status = proofinfer_generation_next(generation.get(), nullptr, &id, text, sizeof(text), &needed, &stop, nullptr);
    }
  });
  EXPECT_EQ(status, PROOFINFER_OK);
  set(options, "max_generations", 200);
  set(options, "prefill_chunk", 200);
  Scheduler scheduler = make_scheduler(model, tokenizer, options.get());
  expect_little("schedule_" + isa, [&] {
    uint64_t id = 0;
    status = proofinfer_scheduler_submit(scheduler.get(), tokens.data(), tokens.size(), options.get(), &id, nullptr);
    for (int i = 0; i < 20; i++) {
      int32_t token = 0, stop = 0;
      char text[64];
      size_t needed = 0;
      status |= proofinfer_scheduler_step(scheduler.get(), nullptr, nullptr, nullptr);
      status |= proofinfer_scheduler_next(scheduler.get(), 0, &id, &token, text, sizeof(text), &needed, &stop, nullptr);
    }
  });
  EXPECT_EQ(status, PROOFINFER_OK);
}

}  // namespace

TEST_F(Stack, a_painted_stack_shows_what_was_used) {
  size_t used = stack_bytes([] {
    volatile uint8_t large[50000];
    for (volatile uint8_t &byte : large) byte = 1;
  });
  EXPECT_GE(used, 50000u);
  EXPECT_LT(used, 54000u);
}

TEST_F(Stack, loading_and_computing_need_at_most_32_KiB_on_every_kernel_set) {
  Shape shape{64, 192, 2, 4, 2, small_shape().vocab(), kSmallContext};
  for (const std::string &isa : available_isas()) {
    expect_little_of_work(isa, legacy_checkpoint(shape, 3));
    expect_little_of_work(isa, version2_checkpoint(shape, 3, 32));
  }
}

TEST_F(Stack, the_other_entry_points_need_at_most_32_KiB) {
  int32_t status = -1;
  expect_little("selftest", [&] { status = proofinfer_selftest(nullptr); });
  EXPECT_EQ(status, PROOFINFER_OK);

  ScratchFile from(legacy_checkpoint({32, 64, 1, 4, 4, 97, 32}, 3));
  std::string to = from.path() + ".v2";
  expect_little("convert", [&] {
    status =
        proofinfer_convert(from.path().data(), from.path().size(), to.data(), to.size(), PROOFINFER_FORMAT_VERSION_2, 0, nullptr, nullptr);
  });
  EXPECT_EQ(status, PROOFINFER_OK);
  std::remove(to.c_str());
  expect_little("open_path", [&] {
    proofinfer_model *opened = nullptr;
    status = proofinfer_model_open(from.path().data(), from.path().size(), nullptr, nullptr, &opened, nullptr);
    proofinfer_model_free(opened);
  });
  EXPECT_EQ(status, PROOFINFER_OK);
  expect_little("error", [&] {
    proofinfer_model *opened = nullptr;
    proofinfer_error *error = nullptr;
    status = proofinfer_model_open(PROOFINFER_TEXT("/nowhere/model.bin"), nullptr, nullptr, &opened, &error);
    proofinfer_error_free(error);
  });
  EXPECT_EQ(status, PROOFINFER_E_IO);

  SmallWorld world;
  std::string text(20000, 'a');
  std::vector<int32_t> ids(text.size() + 3);
  expect_little("encode", [&] {
    size_t count = 0;
    status = proofinfer_tokenizer_encode(world.tokenizer.get(), text.data(), text.size(), PROOFINFER_ENCODE_BOS, ids.data(), ids.size(),
                                         &count, nullptr);
  });
  EXPECT_EQ(status, PROOFINFER_OK);
  Session session = make_session(world.model);
  expect_little("batch", [&] {
    proofinfer_batch *batch = nullptr;
    status = proofinfer_batch_create(world.model.get(), 64, nullptr, &batch, nullptr);
    for (int32_t i = 0; i < 64; i++) proofinfer_batch_add(batch, session.get(), 1 + i, 1, nullptr);
    if (status == PROOFINFER_OK) status = proofinfer_batch_evaluate(batch, nullptr, nullptr);
    proofinfer_batch_free(batch);
  });
  EXPECT_EQ(status, PROOFINFER_OK);
}

}  // namespace proofinfer_test
