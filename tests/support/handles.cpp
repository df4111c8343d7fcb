#include "support/handles.h"

#include <cstdlib>
#include <ostream>

namespace proofinfer_test {

std::ostream &operator<<(std::ostream &out, const Answer &answer) {
  return out << proofinfer_status_name(answer.status) << ": " << answer.message;
}

Answer Fault::of(int32_t status) {
  EXPECT_EQ(proofinfer_error_code(error_), status);
  EXPECT_EQ(error_ == nullptr, status == PROOFINFER_OK);
  Answer answer{status, proofinfer_error_message(error_)};
  EXPECT_EQ(answer.message.empty(), status == PROOFINFER_OK);
  proofinfer_error_free(error_);
  error_ = nullptr;
  return answer;
}

namespace {

// Hands an answer to the caller, or insists that it was a success.
void pass_on(const Answer &got, bool has_handle, Answer *answer) {
  EXPECT_EQ(has_handle, got.ok()) << got;
  if (answer)
    *answer = got;
  else
    EXPECT_TRUE(got.ok()) << got;
}

}  // namespace

Options make_options() {
  proofinfer_options *options = nullptr;
  Answer got = answer_of(proofinfer_options_create, &options);
  EXPECT_TRUE(got.ok()) << got;
  return Options(options);
}

void set(const Options &options, std::string_view name, int64_t value) {
  Answer got = answer_of(proofinfer_options_set_i64, options.get(), name.data(), name.size(), value);
  EXPECT_TRUE(got.ok()) << got;
}

void set_u64(const Options &options, std::string_view name, uint64_t value) {
  Answer got = answer_of(proofinfer_options_set_u64, options.get(), name.data(), name.size(), value);
  EXPECT_TRUE(got.ok()) << got;
}

void set_f64(const Options &options, std::string_view name, double value) {
  Answer got = answer_of(proofinfer_options_set_f64, options.get(), name.data(), name.size(), value);
  EXPECT_TRUE(got.ok()) << got;
}

void set_text(const Options &options, std::string_view name, std::string_view value) {
  Answer got = answer_of(proofinfer_options_set_text, options.get(), name.data(), name.size(), value.data(), value.size());
  EXPECT_TRUE(got.ok()) << got;
}

void set_tokens(const Options &options, std::string_view name, const std::vector<int32_t> &value) {
  Answer got = answer_of(proofinfer_options_set_tokens, options.get(), name.data(), name.size(), value.data(), value.size());
  EXPECT_TRUE(got.ok()) << got;
}

Model open_model(const std::string &path, const proofinfer_options *options, Answer *answer) {
  proofinfer_model *model = nullptr;
  Answer got = answer_of(proofinfer_model_open, path.data(), path.size(), options, nullptr, &model);
  pass_on(got, model != nullptr, answer);
  return Model(model);
}

Model open_model(const std::vector<uint8_t> &bytes, const proofinfer_options *options, Answer *answer) {
  proofinfer_model *model = nullptr;
  Answer got = answer_of(proofinfer_model_open_memory, bytes.data(), bytes.size(), options, nullptr, &model);
  pass_on(got, model != nullptr, answer);
  return Model(model);
}

Tokenizer open_tokenizer(const std::string &path, int32_t vocab_size, Answer *answer) {
  proofinfer_tokenizer *tokenizer = nullptr;
  Answer got = answer_of(proofinfer_tokenizer_open, path.data(), path.size(), vocab_size, nullptr, &tokenizer);
  pass_on(got, tokenizer != nullptr, answer);
  return Tokenizer(tokenizer);
}

Tokenizer open_tokenizer(const std::vector<uint8_t> &bytes, int32_t vocab_size, const proofinfer_options *options, Answer *answer) {
  proofinfer_tokenizer *tokenizer = nullptr;
  Answer got = answer_of(proofinfer_tokenizer_open_memory, bytes.data(), bytes.size(), vocab_size, options, &tokenizer);
  pass_on(got, tokenizer != nullptr, answer);
  return Tokenizer(tokenizer);
}

Session make_session(const Model &model, const proofinfer_options *options, Answer *answer) {
  proofinfer_session *session = nullptr;
  Answer got = answer_of(proofinfer_session_create, model.get(), options, &session);
  pass_on(got, session != nullptr, answer);
  return Session(session);
}

Sampler make_sampler(int32_t vocab_size, const proofinfer_options *options, Answer *answer) {
  proofinfer_sampler *sampler = nullptr;
  Answer got = answer_of(proofinfer_sampler_create, vocab_size, options, &sampler);
  pass_on(got, sampler != nullptr, answer);
  return Sampler(sampler);
}

Answer encode_answer(const Tokenizer &tokenizer, const std::string &text, uint32_t flags, std::vector<int32_t> *ids) {
  ids->resize(2 * text.size() + 3);
  size_t count = 77;  // a call that fails sets it, too
  Answer got = answer_of(proofinfer_tokenizer_encode, tokenizer.get(), text.data(), text.size(), flags, ids->data(), ids->size(), &count);
  ids->resize(count);
  return got;
}

std::vector<int32_t> encode(const Tokenizer &tokenizer, const std::string &text, uint32_t flags) {
  std::vector<int32_t> ids;
  Answer got = encode_answer(tokenizer, text, flags, &ids);
  EXPECT_TRUE(got.ok()) << got;
  return ids;
}

int64_t model_i64(const Model &model, int32_t property) {
  int64_t value = -1;
  Answer got = answer_of(proofinfer_model_get_i64, model.get(), property, &value);
  EXPECT_TRUE(got.ok()) << got;
  return value;
}

Answer append(const Session &session, const std::vector<int32_t> &tokens, int32_t logits, proofinfer_cancel *cancel) {
  return answer_of(proofinfer_session_append, session.get(), tokens.data(), tokens.size(), logits, cancel);
}

std::vector<float> logits(const Session &session, size_t position) {
  const float *view = nullptr;
  size_t count = 0;
  Answer got = answer_of(proofinfer_session_logits_view, session.get(), position, &view, &count);
  EXPECT_TRUE(got.ok()) << got;
  return view ? std::vector<float>(view, view + count) : std::vector<float>();
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (size_t i = 0; i < proofinfer_isa_count(); i++)
    if (proofinfer_isa_available(i)) names.push_back(proofinfer_isa_name(i));
  return names;
}

void CountingAllocator::install(const Options &options) {
  Answer got = answer_of(proofinfer_options_set_allocator, options.get(), allocate, release, static_cast<void *>(this));
  EXPECT_TRUE(got.ok()) << got;
}

void *CountingAllocator::allocate(void *user, size_t bytes, size_t alignment) {
  CountingAllocator *self = static_cast<CountingAllocator *>(user);
  self->calls_++;
  bool fails = self->fail_call_ == 0 || self->fail_from_ == 0;
  if (self->fail_call_ != UINT64_MAX) self->fail_call_ = self->fail_call_ == 0 ? UINT64_MAX : self->fail_call_ - 1;
  if (self->fail_from_ != UINT64_MAX && self->fail_from_ != 0) self->fail_from_--;
  if (fails) return nullptr;
  void *memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0) return nullptr;
  self->blocks_++;
  self->bytes_ += bytes;
  if (self->bytes_ > self->peak_bytes_) self->peak_bytes_ = self->bytes_;
  return memory;
}

void CountingAllocator::release(void *user, void *memory, size_t bytes, size_t) {
  CountingAllocator *self = static_cast<CountingAllocator *>(user);
  self->blocks_--;
  self->bytes_ -= bytes;
  free(memory);
}

}  // namespace proofinfer_test
