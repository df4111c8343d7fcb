// What the library calls things: statuses, kinds of handles, the parameter that is missing; and which kernel sets it says this CPU has.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/small_world.h"

namespace proofinfer_test {

TEST(ApiNames, every_status_has_the_name_of_its_macro) {
#define EXPECT_NAME(status) EXPECT_STREQ(proofinfer_status_name(status), #status)
  EXPECT_NAME(PROOFINFER_OK);
  EXPECT_NAME(PROOFINFER_E_ARGUMENT);
  EXPECT_NAME(PROOFINFER_E_MEMORY);
  EXPECT_NAME(PROOFINFER_E_LIMIT);
  EXPECT_NAME(PROOFINFER_E_IO);
  EXPECT_NAME(PROOFINFER_E_UNRECOGNIZED);
  EXPECT_NAME(PROOFINFER_E_TRUNCATED);
  EXPECT_NAME(PROOFINFER_E_FORMAT);
  EXPECT_NAME(PROOFINFER_E_UNSUPPORTED);
  EXPECT_NAME(PROOFINFER_E_CONTEXT);
  EXPECT_NAME(PROOFINFER_E_BUSY);
  EXPECT_NAME(PROOFINFER_E_CANCELLED);
  EXPECT_NAME(PROOFINFER_E_BUFFER);
  EXPECT_NAME(PROOFINFER_E_NOT_FINITE);
  EXPECT_NAME(PROOFINFER_E_STATE);
  EXPECT_NAME(PROOFINFER_E_INTERNAL);
#undef EXPECT_NAME
}

TEST(ApiNames, a_handle_of_another_kind_is_called_by_its_name) {
  SmallWorld world;
  Options options = make_options();
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab());
  Generation generation = make_generation(session, world.tokenizer, sampler, {1});
  proofinfer_cancel *cancel = nullptr;
  proofinfer_stream *stream = nullptr;
  proofinfer_batch *batch = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_cancel_create, &cancel).ok());
  ASSERT_TRUE(answer_of(proofinfer_stream_create, world.tokenizer.get(), -1, &stream).ok());
  ASSERT_TRUE(answer_of(proofinfer_batch_create, world.model.get(), size_t(1), nullptr, &batch).ok());
  proofinfer_error *error = nullptr;
  ASSERT_NE(proofinfer_session_rewind(nullptr, 0, &error), PROOFINFER_OK);

  int64_t value = 0;
  auto model_is = [&value](const void *handle) {
    return answer_of(proofinfer_model_get_i64, static_cast<const proofinfer_model *>(handle), PROOFINFER_MODEL_DIM, &value).message;
  };
  EXPECT_EQ(model_is(error), "model is an error; expected a model");
  EXPECT_EQ(model_is(options.get()), "model is options; expected a model");
  EXPECT_EQ(model_is(cancel), "model is a cancel; expected a model");
  EXPECT_EQ(model_is(world.tokenizer.get()), "model is a tokenizer; expected a model");
  EXPECT_EQ(model_is(stream), "model is a stream; expected a model");
  EXPECT_EQ(model_is(session.get()), "model is a session; expected a model");
  EXPECT_EQ(model_is(batch), "model is a batch; expected a model");
  EXPECT_EQ(model_is(sampler.get()), "model is a sampler; expected a model");
  EXPECT_EQ(model_is(generation.get()), "model is a generation; expected a model");
  EXPECT_EQ(model_is(nullptr), "model is NULL; expected a model");

  proofinfer_error_free(error);
  proofinfer_batch_free(batch);
  proofinfer_stream_free(stream);
  proofinfer_cancel_free(cancel);
}

// A call that lacks one thing names it.
#define EXPECT_MISSING(name, ...)                                      \
  do {                                                                 \
    Answer answer = answer_of(__VA_ARGS__);                            \
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;         \
    EXPECT_EQ(answer.message.rfind(name " is NULL", 0), 0u) << answer; \
  } while (0)

TEST(ApiNames, a_parameter_that_is_missing_is_named) {
  SmallWorld world;
  const proofinfer_model *model = world.model.get();
  const proofinfer_tokenizer *tokenizer = world.tokenizer.get();
  Options options = make_options();
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab());
  Generation generation = make_generation(session, world.tokenizer, sampler, {1});
  proofinfer_model *made_model = nullptr;
  proofinfer_tokenizer *made_tokenizer = nullptr;
  proofinfer_session *made_session = nullptr;
  proofinfer_batch *made_batch = nullptr;
  proofinfer_stream *made_stream = nullptr;
  proofinfer_generation *made_generation = nullptr;
  const int32_t vocab_size = small_shape().vocab(), one = 1;
  const float *view = nullptr;
  int64_t value = 0;
  size_t needed = 0;
  int32_t id = 0, stop = 0;
  char text[8];
  float logits[1] = {};

  EXPECT_MISSING("model", proofinfer_model_open, "x", size_t(1), nullptr, nullptr, nullptr);
  EXPECT_MISSING("path", proofinfer_model_open, nullptr, size_t(1), nullptr, nullptr, &made_model);
  EXPECT_MISSING("model", proofinfer_model_open_memory, "x", size_t(1), nullptr, nullptr, nullptr);
  EXPECT_MISSING("data", proofinfer_model_open_memory, nullptr, size_t(1), nullptr, nullptr, &made_model);
  EXPECT_MISSING("from", proofinfer_convert, nullptr, size_t(1), "x", size_t(1), PROOFINFER_FORMAT_LEGACY, 0, nullptr);
  EXPECT_MISSING("to", proofinfer_convert, "x", size_t(1), nullptr, size_t(1), PROOFINFER_FORMAT_LEGACY, 0, nullptr);
  EXPECT_MISSING("model", proofinfer_model_get_i64, nullptr, PROOFINFER_MODEL_DIM, &value);
  EXPECT_MISSING("value", proofinfer_model_get_i64, model, PROOFINFER_MODEL_DIM, nullptr);
  EXPECT_MISSING("model", proofinfer_model_tensor_name, nullptr, size_t(0), text, sizeof(text), &needed);
  EXPECT_MISSING("model", proofinfer_model_tensor_get_i64, nullptr, size_t(0), PROOFINFER_TENSOR_ROWS, &value);
  EXPECT_MISSING("model", proofinfer_model_metadata_key, nullptr, size_t(0), text, sizeof(text), &needed);
  EXPECT_MISSING("model", proofinfer_model_metadata_text, nullptr, size_t(0), text, sizeof(text), &needed);
  EXPECT_MISSING("value", proofinfer_model_tensor_get_i64, model, size_t(0), PROOFINFER_TENSOR_ROWS, nullptr);
  EXPECT_MISSING("tokenizer", proofinfer_tokenizer_open, "x", size_t(1), vocab_size, nullptr, nullptr);
  EXPECT_MISSING("path", proofinfer_tokenizer_open, nullptr, size_t(1), vocab_size, nullptr, &made_tokenizer);
  EXPECT_MISSING("data", proofinfer_tokenizer_open_memory, nullptr, size_t(1), vocab_size, nullptr, &made_tokenizer);
  EXPECT_MISSING("tokenizer", proofinfer_tokenizer_piece, nullptr, 0, text, sizeof(text), &needed, nullptr);
  EXPECT_MISSING("tokenizer", proofinfer_tokenizer_encode, nullptr, "a", size_t(1), 0u, &id, size_t(1), &needed);
  EXPECT_MISSING("text", proofinfer_tokenizer_encode, tokenizer, nullptr, size_t(1), 0u, &id, size_t(1), &needed);
  EXPECT_MISSING("tokens", proofinfer_tokenizer_encode, tokenizer, "a", size_t(1), 0u, nullptr, size_t(1), &needed);
  EXPECT_MISSING("tokenizer", proofinfer_tokenizer_decode, nullptr, -1, 0, 0u, text, sizeof(text), &needed);
  EXPECT_MISSING("tokenizer", proofinfer_stream_create, nullptr, -1, &made_stream);
  EXPECT_MISSING("stream", proofinfer_stream_create, tokenizer, -1, nullptr);
  EXPECT_MISSING("stream", proofinfer_stream_push, nullptr, 0, text, sizeof(text), &needed);
  EXPECT_MISSING("stream", proofinfer_stream_flush, nullptr, text, sizeof(text), &needed);
  EXPECT_MISSING("model", proofinfer_session_create, nullptr, nullptr, &made_session);
  EXPECT_MISSING("session", proofinfer_session_create, model, nullptr, nullptr);
  EXPECT_MISSING("session", proofinfer_session_append, nullptr, &one, size_t(1), PROOFINFER_LOGITS_LAST, nullptr);
  EXPECT_MISSING("tokens", proofinfer_session_append, session.get(), nullptr, size_t(1), PROOFINFER_LOGITS_LAST, nullptr);
  EXPECT_MISSING("session", proofinfer_session_score, nullptr, &one, size_t(1), logits, nullptr);
  EXPECT_MISSING("tokens", proofinfer_session_score, session.get(), nullptr, size_t(1), logits, nullptr);
  EXPECT_MISSING("logprobs", proofinfer_session_score, session.get(), &one, size_t(1), nullptr, nullptr);
  const size_t one_each = 1;
  EXPECT_MISSING("model", proofinfer_model_score, nullptr, &one, &one_each, size_t(1), nullptr, logits, nullptr);
  EXPECT_MISSING("counts", proofinfer_model_score, model, &one, nullptr, size_t(1), nullptr, logits, nullptr);
  EXPECT_MISSING("tokens", proofinfer_model_score, model, nullptr, &one_each, size_t(1), nullptr, logits, nullptr);
  EXPECT_MISSING("logprobs", proofinfer_model_score, model, &one, &one_each, size_t(1), nullptr, nullptr, nullptr);
  EXPECT_MISSING("session", proofinfer_session_logits, nullptr, size_t(0), logits, size_t(1), &needed);
  EXPECT_MISSING("logits", proofinfer_session_logits_view, session.get(), size_t(0), nullptr, &needed);
  EXPECT_MISSING("count", proofinfer_session_logits_view, session.get(), size_t(0), &view, nullptr);
  EXPECT_MISSING("session", proofinfer_session_tokens, nullptr, &id, size_t(1), &needed);
  EXPECT_MISSING("session", proofinfer_session_rewind, nullptr, size_t(0));
  EXPECT_MISSING("model", proofinfer_batch_create, nullptr, size_t(1), nullptr, &made_batch);
  EXPECT_MISSING("batch", proofinfer_batch_create, model, size_t(1), nullptr, nullptr);
  EXPECT_MISSING("session", proofinfer_batch_add, nullptr, nullptr, 0, 1);
  EXPECT_MISSING("batch", proofinfer_batch_add, nullptr, session.get(), 0, 1);
  EXPECT_MISSING("batch", proofinfer_batch_evaluate, nullptr, nullptr);
  EXPECT_MISSING("batch", proofinfer_batch_clear, nullptr);
  EXPECT_MISSING("sampler", proofinfer_sampler_create, vocab_size, nullptr, nullptr);
  EXPECT_MISSING("sampler", proofinfer_sampler_sample, nullptr, logits, size_t(1), &id);
  EXPECT_MISSING("logits", proofinfer_sampler_sample, sampler.get(), nullptr, size_t(vocab_size), &id);
  EXPECT_MISSING("token", proofinfer_sampler_sample, sampler.get(), logits, size_t(1), nullptr);
  EXPECT_MISSING("sampler", proofinfer_sampler_reseed, nullptr, uint64_t(1));
  EXPECT_MISSING("session", proofinfer_generation_create, nullptr, tokenizer, sampler.get(), &one, size_t(1), nullptr, &made_generation);
  EXPECT_MISSING("tokenizer", proofinfer_generation_create, session.get(), nullptr, sampler.get(), &one, size_t(1), nullptr,
                 &made_generation);
  EXPECT_MISSING("sampler", proofinfer_generation_create, session.get(), tokenizer, nullptr, &one, size_t(1), nullptr, &made_generation);
  EXPECT_MISSING("prompt", proofinfer_generation_create, session.get(), tokenizer, sampler.get(), nullptr, size_t(1), nullptr,
                 &made_generation);
  EXPECT_MISSING("generation", proofinfer_generation_create, session.get(), tokenizer, sampler.get(), &one, size_t(1), nullptr, nullptr);
  EXPECT_MISSING("generation", proofinfer_generation_next, nullptr, nullptr, &id, text, sizeof(text), &needed, &stop);
  EXPECT_MISSING("token", proofinfer_generation_next, generation.get(), nullptr, nullptr, text, sizeof(text), &needed, &stop);
  EXPECT_MISSING("buffer", proofinfer_generation_next, generation.get(), nullptr, &id, nullptr, sizeof(text), &needed, &stop);
  EXPECT_MISSING("stop_reason", proofinfer_generation_next, generation.get(), nullptr, &id, text, sizeof(text), &needed, nullptr);
  EXPECT_MISSING("generation", proofinfer_generation_force, nullptr, 1);
  EXPECT_MISSING("options", proofinfer_options_set_i64, nullptr, "threads", size_t(7), int64_t(1));
  EXPECT_MISSING("name", proofinfer_options_set_i64, options.get(), nullptr, size_t(7), int64_t(1));
  EXPECT_MISSING("value", proofinfer_options_set_text, options.get(), "isa", size_t(3), nullptr, size_t(4));
  EXPECT_MISSING("tokens", proofinfer_options_set_tokens, options.get(), "stop_tokens", size_t(11), nullptr, size_t(1));
  EXPECT_MISSING("options", proofinfer_options_create, nullptr);
  EXPECT_MISSING("cancel", proofinfer_cancel_create, nullptr);

  proofinfer_scheduler *made_scheduler = nullptr;
  EXPECT_MISSING("scheduler", proofinfer_scheduler_create, model, tokenizer, nullptr, nullptr);
  EXPECT_MISSING("model", proofinfer_scheduler_create, nullptr, tokenizer, nullptr, &made_scheduler);
  EXPECT_MISSING("tokenizer", proofinfer_scheduler_create, model, nullptr, nullptr, &made_scheduler);
  Answer created = answer_of(proofinfer_scheduler_create, model, tokenizer, nullptr, &made_scheduler);
  ASSERT_TRUE(created.ok()) << created;
  Scheduler owner(made_scheduler);
  const proofinfer_scheduler *scheduler = made_scheduler;
  uint64_t number = 0;
  EXPECT_MISSING("scheduler", proofinfer_scheduler_submit, nullptr, &one, size_t(1), nullptr, &number);
  EXPECT_MISSING("prompt", proofinfer_scheduler_submit, scheduler, nullptr, size_t(1), nullptr, &number);
  EXPECT_MISSING("id", proofinfer_scheduler_submit, scheduler, &one, size_t(1), nullptr, nullptr);
  EXPECT_MISSING("scheduler", proofinfer_scheduler_add, nullptr, generation.get(), &number);
  EXPECT_MISSING("generation", proofinfer_scheduler_add, scheduler, nullptr, &number);
  EXPECT_MISSING("id", proofinfer_scheduler_add, scheduler, generation.get(), nullptr);
  EXPECT_MISSING("scheduler", proofinfer_scheduler_cancel, nullptr, uint64_t(1));
  EXPECT_MISSING("scheduler", proofinfer_scheduler_step, nullptr, nullptr, &needed);
  EXPECT_MISSING("scheduler", proofinfer_scheduler_next, nullptr, uint64_t(0), &number, &id, text, sizeof(text), &needed, &stop);
  EXPECT_MISSING("id", proofinfer_scheduler_next, made_scheduler, uint64_t(0), nullptr, &id, text, sizeof(text), &needed, &stop);
  EXPECT_MISSING("token", proofinfer_scheduler_next, made_scheduler, uint64_t(0), &number, nullptr, text, sizeof(text), &needed, &stop);
  EXPECT_MISSING("buffer", proofinfer_scheduler_next, made_scheduler, uint64_t(0), &number, &id, nullptr, size_t(1), &needed, &stop);
  EXPECT_MISSING("stop_reason", proofinfer_scheduler_next, made_scheduler, uint64_t(0), &number, &id, text, sizeof(text), &needed, nullptr);

  float value_of[1] = {};
  const uint32_t mask = 1;
  EXPECT_MISSING("sampler", proofinfer_sampler_accept, nullptr, &one, size_t(1));
  EXPECT_MISSING("tokens", proofinfer_sampler_accept, sampler.get(), nullptr, size_t(1));
  EXPECT_MISSING("sampler", proofinfer_sampler_set_bias, nullptr, &one, logits, size_t(1));
  EXPECT_MISSING("tokens", proofinfer_sampler_set_bias, sampler.get(), nullptr, logits, size_t(1));
  EXPECT_MISSING("biases", proofinfer_sampler_set_bias, sampler.get(), &one, nullptr, size_t(1));
  EXPECT_MISSING("sampler", proofinfer_sampler_set_banned, nullptr, &one, size_t(1));
  EXPECT_MISSING("tokens", proofinfer_sampler_set_banned, sampler.get(), nullptr, size_t(1));
  EXPECT_MISSING("sampler", proofinfer_sampler_set_mask, nullptr, &mask, size_t(1));
  EXPECT_MISSING("mask", proofinfer_sampler_set_mask, sampler.get(), nullptr, size_t(1));
  EXPECT_MISSING("logits", proofinfer_logits_logprobs, nullptr, size_t(1), &one, size_t(1), value_of);
  EXPECT_MISSING("tokens", proofinfer_logits_logprobs, logits, size_t(1), nullptr, size_t(1), value_of);
  EXPECT_MISSING("logprobs", proofinfer_logits_logprobs, logits, size_t(1), &one, size_t(1), nullptr);
  EXPECT_MISSING("logits", proofinfer_logits_top, nullptr, size_t(1), size_t(1), &id, value_of);
  EXPECT_MISSING("tokens", proofinfer_logits_top, logits, size_t(1), size_t(1), nullptr, value_of);
  EXPECT_MISSING("generation", proofinfer_generation_logprobs, nullptr, value_of, &id, logits, size_t(1), &needed);
  EXPECT_MISSING("logprob", proofinfer_generation_logprobs, generation.get(), nullptr, &id, logits, size_t(1), &needed);
  EXPECT_MISSING("tokens", proofinfer_generation_logprobs, generation.get(), value_of, nullptr, logits, size_t(1), &needed);
  EXPECT_MISSING("logprobs", proofinfer_generation_logprobs, generation.get(), value_of, &id, nullptr, size_t(1), &needed);
  EXPECT_MISSING("generation", proofinfer_generation_stop_string, nullptr, &needed);
  EXPECT_MISSING("index", proofinfer_generation_stop_string, generation.get(), nullptr);

  EXPECT_MISSING("clone", proofinfer_session_clone, session.get(), nullptr, nullptr);
  EXPECT_MISSING("session", proofinfer_session_clone, nullptr, nullptr, &made_session);
  EXPECT_MISSING("session", proofinfer_session_save, nullptr, text, sizeof(text), &needed);
  EXPECT_MISSING("buffer", proofinfer_session_save, session.get(), nullptr, size_t(1), &needed);
  EXPECT_MISSING("session", proofinfer_session_restore, nullptr, text, sizeof(text));
  EXPECT_MISSING("data", proofinfer_session_restore, session.get(), nullptr, size_t(1));
  EXPECT_MISSING("buffer", proofinfer_tokenizer_decode, tokenizer, -1, 0, 0u, nullptr, size_t(1), &needed);
}

// A handle of another kind where one may be left out is an error as well.
TEST(ApiNames, a_cancel_that_is_none_is_named) {
  SmallWorld world;
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab());
  Generation generation = make_generation(session, world.tokenizer, sampler, {1});
  auto *cancel = reinterpret_cast<proofinfer_cancel *>(sampler.get());
  const int32_t one = 1;
  int32_t id = 0, stop = 0;
  size_t needed = 0;
  char text[8];
  proofinfer_model *model = nullptr;
  proofinfer_batch *batch = nullptr;
  proofinfer_scheduler *scheduler = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_batch_create, world.model.get(), size_t(1), nullptr, &batch).ok());
  ASSERT_TRUE(answer_of(proofinfer_scheduler_create, world.model.get(), world.tokenizer.get(), nullptr, &scheduler).ok());
  const std::string expected = "cancel is a sampler; expected a cancel";
  EXPECT_EQ(answer_of(proofinfer_session_append, session.get(), &one, size_t(1), PROOFINFER_LOGITS_LAST, cancel).message, expected);
  EXPECT_EQ(answer_of(proofinfer_batch_evaluate, batch, cancel).message, expected);
  EXPECT_EQ(answer_of(proofinfer_generation_next, generation.get(), cancel, &id, text, sizeof(text), &needed, &stop).message, expected);
  EXPECT_EQ(answer_of(proofinfer_scheduler_step, scheduler, cancel, &needed).message, expected);
  EXPECT_EQ(answer_of(proofinfer_model_open_memory, "x", size_t(1), nullptr, cancel, &model).message, expected);
  EXPECT_EQ(answer_of(proofinfer_convert, "x", size_t(1), "y", size_t(1), PROOFINFER_FORMAT_LEGACY, 0, cancel).message, expected);
  proofinfer_scheduler_free(scheduler);
  proofinfer_batch_free(batch);
}

TEST(ApiNames, a_name_that_is_nearly_that_of_an_option_is_none) {
  Options options = make_options();
  ASSERT_GT(proofinfer_option_count(), 0u);
  for (size_t i = 0; i < proofinfer_option_count(); i++) {
    const std::string name = proofinfer_option_name(i);
    std::vector<std::string> others = {name.substr(1), name + "s", name.substr(0, name.size() - 1)};
    for (size_t at : {size_t(0), name.size() - 1})
      for (int step : {-1, 1}) {
        others.push_back(name);
        others.back()[at] = char(others.back()[at] + step);
      }
    for (const std::string &other : others) {
      Answer answer = answer_of(proofinfer_options_set_i64, options.get(), other.data(), other.size(), int64_t(1));
      EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << other;
      EXPECT_EQ(answer.message, "there is no option \"" + other + "\"");
    }
  }
}

TEST(ApiNames, a_tensor_that_is_none_is_told_how_many_there_are) {
  SmallWorld world;
  const size_t count = proofinfer_model_tensor_count(world.model.get());
  ASSERT_GT(count, 0u);
  int64_t value = 0;
  Answer answer = answer_of(proofinfer_model_tensor_get_i64, world.model.get(), count, PROOFINFER_TENSOR_ROWS, &value);
  EXPECT_EQ(answer.message, "tensor index is " + std::to_string(count) + "; expected 0 to " + std::to_string(count - 1));
}

#if defined(__x86_64__)
// The other tests run what is said to be available: a set that is hidden would be tested by none of them.
TEST(ApiNames, kernel_sets_are_available_exactly_where_the_compiler_finds_their_instructions) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  const std::vector<std::string> names = {"scalar", "sse2", "avx2", "avx512", "avx512vnni"};
  const std::vector<bool> expected = {true, true, avx2, avx512, vnni};
  ASSERT_EQ(proofinfer_isa_count(), names.size());
  for (size_t i = 0; i < names.size(); i++) {
    EXPECT_STREQ(proofinfer_isa_name(i), names[i].c_str());
    EXPECT_EQ(proofinfer_isa_available(i), expected[i] ? 1 : 0) << names[i];
  }
}
#endif

}  // namespace proofinfer_test
