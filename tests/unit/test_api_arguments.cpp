// Arguments as hostile as files: every wrong one is an error with a message, nothing is changed, nothing crashes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/small_world.h"

namespace proofinfer_test {

namespace {

// A pointer that no call may leave in an out-parameter.
template <typename T>
T *poison() {
  return reinterpret_cast<T *>(uintptr_t(0x5a5a5a5a));
}

#define EXPECT_STATUS(expected, ...)                  \
  do {                                                \
    Answer answer_ = answer_of(__VA_ARGS__);          \
    EXPECT_EQ(answer_.status, (expected)) << answer_; \
  } while (false)

#define EXPECT_ARGUMENT(...) EXPECT_STATUS(PROOFINFER_E_ARGUMENT, __VA_ARGS__)

}  // namespace

TEST(ApiArguments, null_handles_are_errors_in_every_function) {
  size_t needed = 0, count = 0;
  int64_t i64 = 5;
  int32_t id = 5, stop = 5;
  float score = 0;
  const float *view = poison<const float>();
  int32_t one = 1;
  float value = 0;
  EXPECT_ARGUMENT(proofinfer_options_create, nullptr);
  EXPECT_ARGUMENT(proofinfer_options_set_i64, nullptr, "threads", size_t(7), int64_t(1));
  EXPECT_ARGUMENT(proofinfer_options_set_u64, nullptr, "seed", size_t(4), uint64_t(1));
  EXPECT_ARGUMENT(proofinfer_options_set_f64, nullptr, "top_p", size_t(5), 0.5);
  EXPECT_ARGUMENT(proofinfer_options_set_text, nullptr, "isa", size_t(3), "auto", size_t(4));
  EXPECT_ARGUMENT(proofinfer_options_set_tokens, nullptr, "stop_tokens", size_t(11), &one, size_t(1));
  EXPECT_ARGUMENT(proofinfer_options_set_allocator, nullptr, nullptr, nullptr, nullptr);
  EXPECT_ARGUMENT(proofinfer_cancel_create, nullptr);
  EXPECT_ARGUMENT(proofinfer_model_open, "x", size_t(1), nullptr, nullptr, nullptr);
  EXPECT_ARGUMENT(proofinfer_model_open_memory, "x", size_t(1), nullptr, nullptr, nullptr);
  i64 = 7;
  EXPECT_ARGUMENT(proofinfer_model_get_i64, nullptr, PROOFINFER_MODEL_DIM, &i64);
  EXPECT_EQ(i64, 0);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_model_tensor_name, nullptr, size_t(0), nullptr, size_t(0), &needed);
  EXPECT_EQ(needed, 0u);
  i64 = 7;
  EXPECT_ARGUMENT(proofinfer_model_tensor_get_i64, nullptr, size_t(0), PROOFINFER_TENSOR_ROWS, &i64);
  EXPECT_EQ(i64, 0);
  EXPECT_ARGUMENT(proofinfer_tokenizer_open, "x", size_t(1), 10, nullptr, nullptr);
  EXPECT_ARGUMENT(proofinfer_tokenizer_open_memory, "x", size_t(1), 10, nullptr, nullptr);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_tokenizer_piece, nullptr, 0, nullptr, size_t(0), &needed, &score);
  EXPECT_EQ(needed, 0u);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_tokenizer_encode, nullptr, "a", size_t(1), 0u, nullptr, size_t(0), &needed);
  EXPECT_EQ(needed, 0u);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_tokenizer_decode, nullptr, -1, 0, 0u, nullptr, size_t(0), &needed);
  EXPECT_EQ(needed, 0u);
  EXPECT_ARGUMENT(proofinfer_stream_create, nullptr, -1, nullptr);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_stream_push, nullptr, 0, nullptr, size_t(0), &needed);
  EXPECT_EQ(needed, 0u);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_stream_flush, nullptr, nullptr, size_t(0), &needed);
  EXPECT_EQ(needed, 0u);
  EXPECT_ARGUMENT(proofinfer_session_create, nullptr, nullptr, nullptr);
  EXPECT_ARGUMENT(proofinfer_session_append, nullptr, &one, size_t(1), PROOFINFER_LOGITS_LAST, nullptr);
  EXPECT_ARGUMENT(proofinfer_session_score, nullptr, &one, size_t(1), &value, nullptr);
  EXPECT_ARGUMENT(proofinfer_model_score, nullptr, &one, &needed, size_t(1), nullptr, &value, nullptr);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_session_logits, nullptr, size_t(0), &value, size_t(1), &needed);
  EXPECT_EQ(needed, 0u);
  count = 7;
  EXPECT_ARGUMENT(proofinfer_session_logits_view, nullptr, size_t(0), &view, &count);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(view, nullptr);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_session_tokens, nullptr, &id, size_t(1), &needed);
  EXPECT_EQ(needed, 0u);
  EXPECT_ARGUMENT(proofinfer_session_rewind, nullptr, size_t(0));
  EXPECT_ARGUMENT(proofinfer_batch_create, nullptr, size_t(1), nullptr, nullptr);
  EXPECT_ARGUMENT(proofinfer_batch_add, nullptr, nullptr, 0, 1);
  EXPECT_ARGUMENT(proofinfer_batch_evaluate, nullptr, nullptr);
  EXPECT_ARGUMENT(proofinfer_batch_clear, nullptr);
  EXPECT_ARGUMENT(proofinfer_sampler_create, 10, nullptr, nullptr);
  id = 7;
  EXPECT_ARGUMENT(proofinfer_sampler_sample, nullptr, &value, size_t(1), &id);
  EXPECT_EQ(id, -1);
  EXPECT_ARGUMENT(proofinfer_sampler_reseed, nullptr, uint64_t(1));
  EXPECT_ARGUMENT(proofinfer_sampler_accept, nullptr, &one, size_t(1));
  EXPECT_ARGUMENT(proofinfer_sampler_set_bias, nullptr, &one, &value, size_t(1));
  EXPECT_ARGUMENT(proofinfer_sampler_set_banned, nullptr, &one, size_t(1));
  EXPECT_ARGUMENT(proofinfer_sampler_set_mask, nullptr, nullptr, size_t(0));
  EXPECT_ARGUMENT(proofinfer_logits_logprobs, nullptr, size_t(1), &one, size_t(1), &value);
  EXPECT_ARGUMENT(proofinfer_logits_top, nullptr, size_t(1), size_t(1), &id, &value);
  EXPECT_ARGUMENT(proofinfer_generation_create, nullptr, nullptr, nullptr, &one, size_t(1), nullptr, nullptr);
  id = 7;
  stop = 7;
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_generation_next, nullptr, nullptr, &id, nullptr, size_t(0), &needed, &stop);
  EXPECT_EQ(id, -1);
  EXPECT_EQ(stop, PROOFINFER_STOP_NONE);
  EXPECT_EQ(needed, 0u);
  EXPECT_ARGUMENT(proofinfer_generation_force, nullptr, 1);
  uint64_t number = 7;
  EXPECT_ARGUMENT(proofinfer_scheduler_create, nullptr, nullptr, nullptr, nullptr);
  number = 7;
  EXPECT_ARGUMENT(proofinfer_scheduler_submit, nullptr, &one, size_t(1), nullptr, &number);
  EXPECT_EQ(number, 0u);
  number = 7;
  EXPECT_ARGUMENT(proofinfer_scheduler_add, nullptr, nullptr, &number);
  EXPECT_EQ(number, 0u);
  EXPECT_ARGUMENT(proofinfer_scheduler_cancel, nullptr, uint64_t(1));
  count = 7;
  EXPECT_ARGUMENT(proofinfer_scheduler_step, nullptr, nullptr, &count);
  EXPECT_EQ(count, 0u);
  id = 7;
  stop = 7;
  number = 7;
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_scheduler_next, nullptr, uint64_t(0), &number, &id, nullptr, size_t(0), &needed, &stop);
  EXPECT_EQ(id, -1);
  EXPECT_EQ(stop, PROOFINFER_STOP_NONE);
  EXPECT_EQ(number, 0u);
  EXPECT_EQ(needed, 0u);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_generation_logprobs, nullptr, &value, &id, &value, size_t(1), &needed);
  EXPECT_EQ(needed, 0u);
  needed = 7;
  EXPECT_ARGUMENT(proofinfer_generation_stop_string, nullptr, &needed);
  EXPECT_EQ(needed, 0u);
}

TEST(ApiArguments, null_is_freed_and_asked_without_harm) {
  proofinfer_error_free(nullptr);
  proofinfer_options_free(nullptr);
  proofinfer_cancel_free(nullptr);
  proofinfer_model_free(nullptr);
  proofinfer_tokenizer_free(nullptr);
  proofinfer_stream_free(nullptr);
  proofinfer_session_free(nullptr);
  proofinfer_batch_free(nullptr);
  proofinfer_sampler_free(nullptr);
  proofinfer_generation_free(nullptr);
  proofinfer_scheduler_free(nullptr);
  EXPECT_EQ(proofinfer_scheduler_count(nullptr), 0u);
  EXPECT_EQ(proofinfer_scheduler_memory_bytes(nullptr), 0u);
  proofinfer_cancel_request(nullptr);
  proofinfer_cancel_reset(nullptr);
  proofinfer_cancel_progress(nullptr, nullptr, nullptr);
  EXPECT_EQ(proofinfer_cancel_requested(nullptr), 0);
  EXPECT_EQ(proofinfer_error_code(nullptr), PROOFINFER_OK);
  EXPECT_STREQ(proofinfer_error_message(nullptr), "");
  EXPECT_EQ(proofinfer_model_get_text(nullptr, PROOFINFER_MODEL_FORMAT), nullptr);
  EXPECT_EQ(proofinfer_model_tensor_count(nullptr), 0u);
  EXPECT_EQ(proofinfer_model_tensor_type(nullptr, 0), nullptr);
  EXPECT_EQ(proofinfer_model_metadata_count(nullptr), 0u);
  EXPECT_EQ(proofinfer_tokenizer_vocab_size(nullptr), -1);
  EXPECT_EQ(proofinfer_tokenizer_bos(nullptr), -1);
  EXPECT_EQ(proofinfer_tokenizer_eos(nullptr), -1);
  EXPECT_EQ(proofinfer_session_position(nullptr), 0u);
  EXPECT_EQ(proofinfer_session_context_length(nullptr), 0u);
  EXPECT_EQ(proofinfer_session_memory_bytes(nullptr), 0u);
}

TEST(ApiArguments, a_null_error_pointer_is_allowed_everywhere) {
  SmallWorld world;
  EXPECT_EQ(proofinfer_model_get_i64(world.model.get(), 99, nullptr, nullptr), PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(proofinfer_session_rewind(nullptr, 0, nullptr), PROOFINFER_E_ARGUMENT);
  proofinfer_model *model = poison<proofinfer_model>();
  EXPECT_EQ(proofinfer_model_open_memory("x", 1, nullptr, nullptr, &model, nullptr), PROOFINFER_E_TRUNCATED);
  EXPECT_EQ(model, nullptr);
}

TEST(ApiArguments, success_clears_the_error_pointer) {
  SmallWorld world;
  proofinfer_error *error = poison<proofinfer_error>();
  int64_t value = 0;
  EXPECT_EQ(proofinfer_model_get_i64(world.model.get(), PROOFINFER_MODEL_DIM, &value, &error), PROOFINFER_OK);
  EXPECT_EQ(error, nullptr);
}

TEST(ApiArguments, failed_makers_leave_null) {
  SmallWorld world;
  proofinfer_model *model = poison<proofinfer_model>();
  EXPECT_STATUS(PROOFINFER_E_IO, proofinfer_model_open, "/nonexistent/x", size_t(14), nullptr, nullptr, &model);
  EXPECT_EQ(model, nullptr);
  proofinfer_tokenizer *tokenizer = poison<proofinfer_tokenizer>();
  EXPECT_STATUS(PROOFINFER_E_IO, proofinfer_tokenizer_open, "/nonexistent/x", size_t(14), 10, nullptr, &tokenizer);
  EXPECT_EQ(tokenizer, nullptr);
  proofinfer_session *session = poison<proofinfer_session>();
  EXPECT_ARGUMENT(proofinfer_session_create, nullptr, nullptr, &session);
  EXPECT_EQ(session, nullptr);
  proofinfer_stream *stream = poison<proofinfer_stream>();
  EXPECT_ARGUMENT(proofinfer_stream_create, nullptr, -1, &stream);
  EXPECT_EQ(stream, nullptr);
  proofinfer_batch *batch = poison<proofinfer_batch>();
  EXPECT_ARGUMENT(proofinfer_batch_create, world.model.get(), size_t(0), nullptr, &batch);
  EXPECT_EQ(batch, nullptr);
  proofinfer_sampler *sampler = poison<proofinfer_sampler>();
  EXPECT_ARGUMENT(proofinfer_sampler_create, 0, nullptr, &sampler);
  EXPECT_EQ(sampler, nullptr);
  proofinfer_generation *generation = poison<proofinfer_generation>();
  EXPECT_ARGUMENT(proofinfer_generation_create, nullptr, nullptr, nullptr, nullptr, size_t(0), nullptr, &generation);
  EXPECT_EQ(generation, nullptr);
}

TEST(ApiArguments, a_handle_of_another_kind_is_an_error) {
  SmallWorld world;
  Session session = make_session(world.model);
  proofinfer_session *wrong_session = reinterpret_cast<proofinfer_session *>(world.model.get());
  proofinfer_model *wrong_model = reinterpret_cast<proofinfer_model *>(session.get());
  proofinfer_tokenizer *wrong_tokenizer = reinterpret_cast<proofinfer_tokenizer *>(session.get());
  proofinfer_options *wrong_options = reinterpret_cast<proofinfer_options *>(session.get());
  proofinfer_cancel *wrong_cancel = reinterpret_cast<proofinfer_cancel *>(session.get());
  const int32_t one = 1;
  size_t needed = 0;
  proofinfer_session *made = nullptr;
  proofinfer_stream *stream = nullptr;
  EXPECT_ARGUMENT(proofinfer_session_append, wrong_session, &one, size_t(1), PROOFINFER_LOGITS_LAST, nullptr);
  EXPECT_ARGUMENT(proofinfer_session_rewind, wrong_session, size_t(0));
  EXPECT_ARGUMENT(proofinfer_session_create, wrong_model, nullptr, &made);
  EXPECT_ARGUMENT(proofinfer_session_create, world.model.get(), wrong_options, &made);
  EXPECT_ARGUMENT(proofinfer_session_append, session.get(), &one, size_t(1), PROOFINFER_LOGITS_LAST, wrong_cancel);
  EXPECT_ARGUMENT(proofinfer_tokenizer_encode, wrong_tokenizer, "a", size_t(1), 0u, nullptr, size_t(0), &needed);
  EXPECT_ARGUMENT(proofinfer_stream_create, wrong_tokenizer, -1, &stream);
  EXPECT_EQ(proofinfer_session_position(session.get()), 0u);
}

TEST(ApiArguments, rewinding_forwards_is_an_error_even_by_one) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, {1, 2, 3}, PROOFINFER_LOGITS_LAST).ok());
  EXPECT_ARGUMENT(proofinfer_session_rewind, session.get(), size_t(4));
  EXPECT_ARGUMENT(proofinfer_session_rewind, session.get(), SIZE_MAX);
  EXPECT_EQ(proofinfer_session_position(session.get()), 3u);
  EXPECT_TRUE(answer_of(proofinfer_session_rewind, session.get(), size_t(3)).ok());
}

TEST(ApiArguments, a_handle_of_another_kind_is_not_freed_and_not_changed) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, {1, 2, 3}, PROOFINFER_LOGITS_LAST).ok());
  const std::vector<float> before = logits(session, 2);
  void *handle = session.get();
  proofinfer_model_free(static_cast<proofinfer_model *>(handle));
  proofinfer_tokenizer_free(static_cast<proofinfer_tokenizer *>(handle));
  proofinfer_batch_free(static_cast<proofinfer_batch *>(handle));
  proofinfer_sampler_free(static_cast<proofinfer_sampler *>(handle));
  proofinfer_generation_free(static_cast<proofinfer_generation *>(handle));
  proofinfer_stream_free(static_cast<proofinfer_stream *>(handle));
  proofinfer_scheduler_free(static_cast<proofinfer_scheduler *>(handle));
  proofinfer_options_free(static_cast<proofinfer_options *>(handle));
  proofinfer_error_free(static_cast<proofinfer_error *>(handle));
  proofinfer_session_free(reinterpret_cast<proofinfer_session *>(world.model.get()));
  proofinfer_cancel *cancel = static_cast<proofinfer_cancel *>(handle);
  uint64_t done = 1, total = 1;
  proofinfer_cancel_request(cancel);
  proofinfer_cancel_reset(cancel);
  EXPECT_EQ(proofinfer_cancel_requested(cancel), 0);
  proofinfer_cancel_progress(cancel, &done, &total);
  EXPECT_EQ(done + total, 0u);
  proofinfer_cancel_free(cancel);
  EXPECT_EQ(proofinfer_error_code(static_cast<proofinfer_error *>(handle)), PROOFINFER_OK);
  EXPECT_STREQ(proofinfer_error_message(static_cast<proofinfer_error *>(handle)), "");
  EXPECT_EQ(logits(session, 2), before);
  EXPECT_TRUE(append(session, {4}, PROOFINFER_LOGITS_LAST).ok());
}

TEST(ApiArguments, token_ids_outside_the_vocabulary_change_nothing) {
  SmallWorld world;
  const int32_t vocab_size = small_shape().vocab();
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, {1, 4}, PROOFINFER_LOGITS_LAST).ok());
  std::vector<float> before = logits(session, 1);
  for (int32_t bad : {-1, vocab_size, vocab_size + 1, INT32_MAX, INT32_MIN}) {
    Answer answer = append(session, {3, 4, bad, 5});
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_TRUE(answer.says(std::to_string(bad))) << answer;
    EXPECT_TRUE(answer.says("2")) << answer;  // its index
    EXPECT_TRUE(answer.says("0 to " + std::to_string(vocab_size - 1))) << answer;
    EXPECT_EQ(proofinfer_session_position(session.get()), 2u);
    EXPECT_EQ(logits(session, 1), before);
  }
}

TEST(ApiArguments, appends_up_to_the_context_and_not_beyond) {
  SmallWorld world;
  const size_t context = 10;
  Options options = make_options();
  set(options, "context_length", int64_t(context));
  for (size_t count : {context - 1, context}) {
    Session session = make_session(world.model, options.get());
    EXPECT_EQ(proofinfer_session_context_length(session.get()), context);
    EXPECT_TRUE(append(session, small_tokens(count)).ok());
    EXPECT_EQ(proofinfer_session_position(session.get()), count);
  }
  Session session = make_session(world.model, options.get());
  Answer answer = append(session, small_tokens(context + 1));
  EXPECT_EQ(answer.status, PROOFINFER_E_CONTEXT);
  EXPECT_TRUE(answer.says("11") && answer.says("10")) << answer;
  EXPECT_EQ(proofinfer_session_position(session.get()), 0u);
  EXPECT_TRUE(append(session, small_tokens(context)).ok());
  EXPECT_EQ(append(session, {4}).status, PROOFINFER_E_CONTEXT);
  EXPECT_EQ(proofinfer_session_position(session.get()), context);
}

TEST(ApiArguments, an_append_of_nothing_keeps_the_logits) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, {1}, PROOFINFER_LOGITS_LAST).ok());
  std::vector<float> before = logits(session, 0);
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_session_append, session.get(), nullptr, size_t(0), PROOFINFER_LOGITS_ALL, nullptr);
  EXPECT_EQ(logits(session, 0), before);
  EXPECT_ARGUMENT(proofinfer_session_append, session.get(), nullptr, size_t(1), PROOFINFER_LOGITS_ALL, nullptr);
  EXPECT_EQ(logits(session, 0), before);
}

TEST(ApiArguments, logits_modes_other_than_the_three_are_errors) {
  SmallWorld world;
  Session session = make_session(world.model);
  for (int32_t mode : {-1, 3, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(append(session, {1}, mode).status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(proofinfer_session_position(session.get()), 0u);
  }
}

TEST(ApiArguments, logits_are_there_exactly_where_they_were_asked_for) {
  SmallWorld world;
  Session session = make_session(world.model);
  const float *view = nullptr;
  size_t count = 0;
  auto status_at = [&](size_t position) {
    return answer_of(proofinfer_session_logits_view, session.get(), position, &view, &count).status;
  };
  EXPECT_EQ(status_at(0), PROOFINFER_E_ARGUMENT);  // no such position
  ASSERT_TRUE(append(session, {1, 4, 5}, PROOFINFER_LOGITS_NONE).ok());
  EXPECT_EQ(status_at(2), PROOFINFER_E_STATE);
  EXPECT_EQ(view, nullptr);
  ASSERT_TRUE(append(session, {6, 7}, PROOFINFER_LOGITS_LAST).ok());
  EXPECT_EQ(status_at(3), PROOFINFER_E_STATE);
  EXPECT_EQ(status_at(4), PROOFINFER_OK);
  EXPECT_EQ(count, size_t(small_shape().vocab()));
  ASSERT_TRUE(append(session, {8, 9}, PROOFINFER_LOGITS_ALL).ok());
  EXPECT_EQ(status_at(4), PROOFINFER_E_STATE);  // dropped by the next append
  EXPECT_EQ(status_at(5), PROOFINFER_OK);
  EXPECT_EQ(status_at(6), PROOFINFER_OK);
  EXPECT_EQ(status_at(7), PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(status_at(SIZE_MAX), PROOFINFER_E_ARGUMENT);
  ASSERT_EQ(answer_of(proofinfer_session_rewind, session.get(), size_t(6)).status, PROOFINFER_OK);
  EXPECT_EQ(status_at(5), PROOFINFER_OK);
  EXPECT_EQ(status_at(6), PROOFINFER_E_ARGUMENT);
}

TEST(ApiArguments, small_buffers_get_the_size_needed_and_nothing_else) {
  SmallWorld world;
  const size_t vocab_size = size_t(small_shape().vocab());
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, {1, 4, 5}, PROOFINFER_LOGITS_LAST).ok());
  std::vector<float> floats(vocab_size, -7.0f);
  size_t needed = 0;
  EXPECT_STATUS(PROOFINFER_E_BUFFER, proofinfer_session_logits, session.get(), size_t(2), floats.data(), vocab_size - 1, &needed);
  EXPECT_EQ(needed, vocab_size);
  EXPECT_EQ(floats, std::vector<float>(vocab_size, -7.0f));
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_session_logits, session.get(), size_t(2), floats.data(), needed, &needed);
  EXPECT_EQ(floats, logits(session, 2));
  EXPECT_STATUS(PROOFINFER_E_BUFFER, proofinfer_session_logits, session.get(), size_t(2), nullptr, size_t(0), &needed);
  EXPECT_ARGUMENT(proofinfer_session_logits, session.get(), size_t(2), nullptr, vocab_size, &needed);

  std::vector<int32_t> ids(3, -7);
  EXPECT_STATUS(PROOFINFER_E_BUFFER, proofinfer_session_tokens, session.get(), ids.data(), size_t(2), &needed);
  EXPECT_EQ(needed, 3u);
  EXPECT_EQ(ids, std::vector<int32_t>(3, -7));
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_session_tokens, session.get(), ids.data(), size_t(3), &needed);
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 4, 5}));

  char name[64];
  EXPECT_STATUS(PROOFINFER_E_BUFFER, proofinfer_model_tensor_name, world.model.get(), size_t(0), name, size_t(1), &needed);
  EXPECT_EQ(needed, std::string("token_embedding").size());
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_model_tensor_name, world.model.get(), size_t(0), name, sizeof(name), &needed);
  EXPECT_EQ(std::string(name, needed), "token_embedding");
}

TEST(ApiArguments, rewinding_beyond_the_position_names_both) {
  SmallWorld world;
  Session session = make_session(world.model);
  ASSERT_TRUE(append(session, small_tokens(23)).ok());
  Answer answer = answer_of(proofinfer_session_rewind, session.get(), size_t(57));
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  EXPECT_TRUE(answer.says("23") && answer.says("57")) << answer;
  EXPECT_ARGUMENT(proofinfer_session_rewind, session.get(), SIZE_MAX);
  EXPECT_EQ(proofinfer_session_position(session.get()), 23u);
}

TEST(ApiArguments, model_queries_outside_their_range_are_errors) {
  SmallWorld world;
  int64_t value = 5;
  size_t needed = 0;
  for (int32_t property : {0, -1, 17, 99, INT32_MAX, INT32_MIN}) {
    value = 5;
    EXPECT_ARGUMENT(proofinfer_model_get_i64, world.model.get(), property, &value);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(proofinfer_model_get_text(world.model.get(), property == 0 ? 99 : property), nullptr);
  }
  EXPECT_ARGUMENT(proofinfer_model_get_i64, world.model.get(), PROOFINFER_MODEL_DIM, nullptr);
  size_t count = proofinfer_model_tensor_count(world.model.get());
  for (size_t index : {count, SIZE_MAX}) {
    EXPECT_ARGUMENT(proofinfer_model_tensor_name, world.model.get(), index, nullptr, size_t(0), &needed);
    EXPECT_ARGUMENT(proofinfer_model_tensor_get_i64, world.model.get(), index, PROOFINFER_TENSOR_ROWS, &value);
  }
  EXPECT_ARGUMENT(proofinfer_model_tensor_get_i64, world.model.get(), size_t(0), 0, &value);
  EXPECT_ARGUMENT(proofinfer_model_tensor_get_i64, world.model.get(), size_t(0), 6, &value);
}

TEST(ApiArguments, a_cancel_has_no_progress_when_it_is_new_or_reset) {
  proofinfer_cancel *cancel = nullptr;
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_cancel_create, &cancel);
  uint64_t done = 7, total = 7;
  proofinfer_cancel_progress(cancel, &done, &total);
  EXPECT_EQ(done, 0u);
  EXPECT_EQ(total, 0u);
  Model model;
  {
    proofinfer_model *opened = nullptr;
    const std::vector<uint8_t> &bytes = small_checkpoint();
    EXPECT_STATUS(PROOFINFER_OK, proofinfer_model_open_memory, bytes.data(), bytes.size(), nullptr, cancel, &opened);
    model.reset(opened);
  }
  proofinfer_cancel_progress(cancel, &done, &total);
  EXPECT_GT(total, 0u);
  EXPECT_EQ(done, total);
  proofinfer_cancel_reset(cancel);
  proofinfer_cancel_progress(cancel, &done, &total);
  EXPECT_EQ(done, 0u);
  EXPECT_EQ(total, 0u);
  proofinfer_cancel_free(cancel);
}

TEST(ApiArguments, a_quantized_model_tells_its_group_size) {
  Model model = open_model(version2_checkpoint(small_shape(), 7, 4));
  ASSERT_TRUE(model);
  EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_GROUP_SIZE), 4);
  EXPECT_STREQ(proofinfer_model_get_text(model.get(), PROOFINFER_MODEL_ELEMENT_TYPE), "q8_0");
}

TEST(ApiArguments, model_queries_say_what_the_file_holds) {
  Shape shape = small_shape();
  SmallWorld world;
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_DIM), shape.dim);
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_HIDDEN_DIM), shape.hidden_dim);
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_N_LAYERS), shape.n_layers);
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_N_HEADS), shape.n_heads);
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_N_KV_HEADS), shape.n_kv_heads);
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_VOCAB_SIZE), shape.vocab());
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_SEQ_LEN), shape.seq_len);
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_HEAD_SIZE), shape.head_size());
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_SHARED_CLASSIFIER), 1);
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_GROUP_SIZE), 0);
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_FILE_BYTES), int64_t(small_checkpoint().size()));
  EXPECT_EQ(model_i64(world.model, PROOFINFER_MODEL_THREADS), 1);
  EXPECT_GE(model_i64(world.model, PROOFINFER_MODEL_MEMORY_BYTES), model_i64(world.model, PROOFINFER_MODEL_WEIGHT_BYTES));
  EXPECT_STREQ(proofinfer_model_get_text(world.model.get(), PROOFINFER_MODEL_FORMAT), "llama2.c legacy");
  EXPECT_STREQ(proofinfer_model_get_text(world.model.get(), PROOFINFER_MODEL_ELEMENT_TYPE), "f32");

  std::vector<TensorPlace> places = legacy_places(shape);
  ASSERT_EQ(proofinfer_model_tensor_count(world.model.get()), places.size());
  for (size_t i = 0; i < places.size(); i++) {
    char name[64];
    size_t needed = 0;
    int64_t offset = 0, bytes = 0, rows = 0, columns = 0, quantized = 7;
    EXPECT_STATUS(PROOFINFER_OK, proofinfer_model_tensor_name, world.model.get(), i, name, sizeof(name), &needed);
    EXPECT_EQ(std::string(name, needed), places[i].name);
    EXPECT_STATUS(PROOFINFER_OK, proofinfer_model_tensor_get_i64, world.model.get(), i, PROOFINFER_TENSOR_FILE_OFFSET, &offset);
    EXPECT_STATUS(PROOFINFER_OK, proofinfer_model_tensor_get_i64, world.model.get(), i, PROOFINFER_TENSOR_FILE_BYTES, &bytes);
    EXPECT_STATUS(PROOFINFER_OK, proofinfer_model_tensor_get_i64, world.model.get(), i, PROOFINFER_TENSOR_ROWS, &rows);
    EXPECT_STATUS(PROOFINFER_OK, proofinfer_model_tensor_get_i64, world.model.get(), i, PROOFINFER_TENSOR_COLUMNS, &columns);
    EXPECT_STATUS(PROOFINFER_OK, proofinfer_model_tensor_get_i64, world.model.get(), i, PROOFINFER_TENSOR_IS_QUANTIZED, &quantized);
    EXPECT_EQ(uint64_t(offset), places[i].offset) << places[i].name;
    EXPECT_EQ(uint64_t(bytes), places[i].bytes) << places[i].name;
    EXPECT_EQ(uint64_t(rows * columns * 4), places[i].bytes) << places[i].name;
    EXPECT_EQ(quantized, 0);
  }
}

TEST(ApiArguments, paths_that_name_no_regular_file_are_io_errors) {
  proofinfer_model *model = nullptr;
  auto open_status = [&](const std::string &path) {
    Answer answer = answer_of(proofinfer_model_open, path.data(), path.size(), nullptr, nullptr, &model);
    EXPECT_EQ(model, nullptr);
    return answer.status;
  };
  EXPECT_EQ(open_status("/nonexistent/model.bin"), PROOFINFER_E_IO);
  EXPECT_EQ(open_status("/"), PROOFINFER_E_IO);
  EXPECT_EQ(open_status("/dev/null"), PROOFINFER_E_IO);
  EXPECT_EQ(open_status("/dev/zero"), PROOFINFER_E_IO);
  EXPECT_EQ(open_status(""), PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(open_status(std::string("a\0b", 3)), PROOFINFER_E_ARGUMENT);
  EXPECT_NE(open_status(std::string(1 << 20, 'x')), PROOFINFER_OK);
  EXPECT_ARGUMENT(proofinfer_model_open, nullptr, size_t(3), nullptr, nullptr, &model);
  EXPECT_ARGUMENT(proofinfer_model_open_memory, nullptr, size_t(3), nullptr, nullptr, &model);
}

TEST(ApiArguments, sampling_takes_exactly_the_vocabulary) {
  Sampler sampler = make_sampler(4);
  std::vector<float> values = {0, 1, 2, 3, 4};
  int32_t token = -5;
  EXPECT_ARGUMENT(proofinfer_sampler_sample, sampler.get(), values.data(), size_t(3), &token);
  EXPECT_ARGUMENT(proofinfer_sampler_sample, sampler.get(), values.data(), size_t(5), &token);
  EXPECT_ARGUMENT(proofinfer_sampler_sample, sampler.get(), nullptr, size_t(4), &token);
  EXPECT_ARGUMENT(proofinfer_sampler_sample, sampler.get(), values.data(), size_t(4), nullptr);
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_sampler_sample, sampler.get(), values.data(), size_t(4), &token);
  EXPECT_ARGUMENT(proofinfer_sampler_accept, sampler.get(), nullptr, size_t(1));
  EXPECT_ARGUMENT(proofinfer_sampler_set_bias, sampler.get(), nullptr, values.data(), size_t(1));
  EXPECT_ARGUMENT(proofinfer_sampler_set_bias, sampler.get(), &token, nullptr, size_t(1));
  EXPECT_ARGUMENT(proofinfer_sampler_set_banned, sampler.get(), nullptr, size_t(1));
  EXPECT_ARGUMENT(proofinfer_sampler_set_mask, sampler.get(), nullptr, size_t(1));
  EXPECT_EQ(token, 3);
  for (int32_t vocab_size : {0, -1, INT32_MIN}) {
    proofinfer_sampler *made = nullptr;
    EXPECT_ARGUMENT(proofinfer_sampler_create, vocab_size, nullptr, &made);
  }
}

TEST(ApiArguments, logits_that_are_not_finite_are_named) {
  Sampler sampler = make_sampler(4);
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> values = {0, 1, bad, bad};
    int32_t token = -5;
    Answer answer = answer_of(proofinfer_sampler_sample, sampler.get(), values.data(), values.size(), &token);
    EXPECT_EQ(answer.status, PROOFINFER_E_NOT_FINITE);
    EXPECT_TRUE(answer.says("2")) << answer;
  }
}

TEST(ApiArguments, a_vocabulary_of_one_always_gives_it) {
  Options options = make_options();
  set_f64(options, "temperature", 1.0);
  for (double top_p : {0.0, 0.5, 1.0}) {
    set_f64(options, "top_p", top_p);
    Sampler sampler = make_sampler(1, options.get());
    const float value = -3;
    int32_t token = -5;
    EXPECT_STATUS(PROOFINFER_OK, proofinfer_sampler_sample, sampler.get(), &value, size_t(1), &token);
    EXPECT_EQ(token, 0);
  }
}

TEST(ApiArguments, generations_want_parts_that_fit_together) {
  SmallWorld world, other;
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab()), small_sampler = make_sampler(5);
  Tokenizer small_tokenizer = open_tokenizer(tokenizer_file(small_pieces()), 200);
  Answer answer;
  make_generation(session, world.tokenizer, small_sampler, {1}, nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
  EXPECT_TRUE(answer.says("5")) << answer;
  make_generation(session, small_tokenizer, sampler, {1}, nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
  EXPECT_TRUE(answer.says("200")) << answer;
  make_generation(session, world.tokenizer, sampler, {1, -4}, nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
  make_generation(session, world.tokenizer, sampler, {}, nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_STATE) << answer;
  make_generation(session, world.tokenizer, sampler, small_tokens(kSmallContext + 1), nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_CONTEXT) << answer;
  EXPECT_EQ(proofinfer_session_position(session.get()), 0u);
  Generation good = make_generation(session, world.tokenizer, sampler, {1});
  EXPECT_TRUE(good);
}

TEST(ApiArguments, generations_end_at_the_context_and_stay_ended) {
  SmallWorld world;
  Options options = make_options();
  set(options, "context_length", 6);
  set_tokens(options, "stop_tokens", {});
  set(options, "max_tokens", 1000000);
  for (size_t prompt : {size_t(5), size_t(6)}) {
    Session session = make_session(world.model, options.get());
    Sampler sampler = make_sampler(small_shape().vocab());
    Generation generation = make_generation(session, world.tokenizer, sampler, small_tokens(prompt), options.get());
    int32_t id = 0, stop = PROOFINFER_STOP_NONE;
    char text[64];
    size_t needed = 0, yielded = 0;
    while (stop == PROOFINFER_STOP_NONE) {
      ASSERT_EQ(answer_of(proofinfer_generation_next, generation.get(), nullptr, &id, text, sizeof(text), &needed, &stop).status,
                PROOFINFER_OK);
      if (id >= 0) yielded++;
      ASSERT_LT(yielded, 10u);
    }
    EXPECT_EQ(stop, PROOFINFER_STOP_CONTEXT);
    EXPECT_EQ(proofinfer_session_position(session.get()), 6u);
    for (int again = 0; again < 3; again++) {
      EXPECT_STATUS(PROOFINFER_OK, proofinfer_generation_next, generation.get(), nullptr, &id, text, sizeof(text), &needed, &stop);
      EXPECT_EQ(id, -1);
      EXPECT_EQ(needed, 0u);
      EXPECT_EQ(stop, PROOFINFER_STOP_CONTEXT);
    }
    EXPECT_STATUS(PROOFINFER_E_STATE, proofinfer_generation_force, generation.get(), 1);
  }
}

TEST(ApiArguments, batches_want_sessions_of_their_model) {
  SmallWorld world, other;
  Session mine = make_session(world.model), foreign = make_session(other.model);
  for (size_t rows : {size_t(0), size_t(4097), SIZE_MAX}) {
    proofinfer_batch *none = poison<proofinfer_batch>();
    EXPECT_ARGUMENT(proofinfer_batch_create, world.model.get(), rows, nullptr, &none);
    EXPECT_EQ(none, nullptr);
  }
  proofinfer_batch *made = nullptr;
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_batch_create, world.model.get(), size_t(2), nullptr, &made);
  Batch batch(made);
  EXPECT_ARGUMENT(proofinfer_batch_add, batch.get(), foreign.get(), 1, 1);
  EXPECT_ARGUMENT(proofinfer_batch_add, batch.get(), nullptr, 1, 1);
  EXPECT_ARGUMENT(proofinfer_batch_add, batch.get(), mine.get(), -1, 1);
  EXPECT_ARGUMENT(proofinfer_batch_add, batch.get(), mine.get(), small_shape().vocab(), 1);
  EXPECT_ARGUMENT(proofinfer_batch_add, batch.get(), mine.get(), 1, 2);
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_batch_add, batch.get(), mine.get(), 1, 1);
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_batch_add, batch.get(), mine.get(), 4, 1);
  EXPECT_STATUS(PROOFINFER_E_STATE, proofinfer_batch_add, batch.get(), mine.get(), 4, 1);
  EXPECT_EQ(proofinfer_session_position(mine.get()), 0u);
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_batch_evaluate, batch.get(), nullptr);
  EXPECT_EQ(proofinfer_session_position(mine.get()), 2u);
  Session alone = make_session(world.model);
  ASSERT_TRUE(append(alone, {1, 4}).ok());
  EXPECT_EQ(logits(mine, 1), logits(alone, 1));
  EXPECT_STATUS(PROOFINFER_OK, proofinfer_batch_evaluate, batch.get(), nullptr);  // nothing queued
}

TEST(ApiArguments, status_names_are_those_of_the_header) {
  EXPECT_STREQ(proofinfer_status_name(PROOFINFER_OK), "PROOFINFER_OK");
  EXPECT_STREQ(proofinfer_status_name(PROOFINFER_E_IO), "PROOFINFER_E_IO");
  EXPECT_STREQ(proofinfer_status_name(PROOFINFER_E_INTERNAL), "PROOFINFER_E_INTERNAL");
  for (int32_t status : {-1, 16, INT32_MAX, INT32_MIN}) EXPECT_STREQ(proofinfer_status_name(status), "PROOFINFER_E_?");
}

TEST(ApiArguments, version_and_build_are_those_of_the_header) {
  EXPECT_EQ(proofinfer_version_number(), PROOFINFER_VERSION_NUMBER);
  std::string expected = std::to_string(PROOFINFER_VERSION_MAJOR) + "." + std::to_string(PROOFINFER_VERSION_MINOR) + "." +
                         std::to_string(PROOFINFER_VERSION_PATCH);
  EXPECT_EQ(proofinfer_version_text(), expected);
  EXPECT_GT(std::string(proofinfer_build_text()).size(), 5u);
  EXPECT_EQ(std::string(proofinfer_build_text()).find('\n'), std::string::npos);
}

TEST(ApiArguments, isa_queries_stay_in_their_range) {
  ASSERT_GE(proofinfer_isa_count(), 1u);
  EXPECT_STREQ(proofinfer_isa_name(0), "scalar");
  EXPECT_EQ(proofinfer_isa_available(0), 1);
  for (size_t index : {proofinfer_isa_count(), SIZE_MAX}) {
    EXPECT_EQ(proofinfer_isa_name(index), nullptr);
    EXPECT_EQ(proofinfer_isa_available(index), 0);
  }
}

TEST(ApiArguments, the_selftest_passes) { EXPECT_STATUS(PROOFINFER_OK, proofinfer_selftest); }

}  // namespace proofinfer_test
