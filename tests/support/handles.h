// Owning pointers to the handles of the C API, and short forms for the calls that most tests make. As thread-safe as the API.
#ifndef PROOFINFER_TESTS_SUPPORT_HANDLES_H
#define PROOFINFER_TESTS_SUPPORT_HANDLES_H

#include <gtest/gtest.h>
#include <proofinfer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace proofinfer_test {

template <auto free_function>
struct Free {
  template <typename T>
  void operator()(T *handle) const {
    free_function(handle);
  }
};

using Options = std::unique_ptr<proofinfer_options, Free<proofinfer_options_free>>;
using Cancel = std::unique_ptr<proofinfer_cancel, Free<proofinfer_cancel_free>>;
using Model = std::unique_ptr<proofinfer_model, Free<proofinfer_model_free>>;
using Tokenizer = std::unique_ptr<proofinfer_tokenizer, Free<proofinfer_tokenizer_free>>;
using Stream = std::unique_ptr<proofinfer_stream, Free<proofinfer_stream_free>>;
using Session = std::unique_ptr<proofinfer_session, Free<proofinfer_session_free>>;
using Batch = std::unique_ptr<proofinfer_batch, Free<proofinfer_batch_free>>;
using Sampler = std::unique_ptr<proofinfer_sampler, Free<proofinfer_sampler_free>>;
using Generation = std::unique_ptr<proofinfer_generation, Free<proofinfer_generation_free>>;
using Scheduler = std::unique_ptr<proofinfer_scheduler, Free<proofinfer_scheduler_free>>;

// What a call answered: its status and, of a failure, the message. Takes the error object over; checks that they agree.
struct Answer {
  int32_t status = PROOFINFER_OK;
  std::string message;
  bool ok() const { return status == PROOFINFER_OK; }
  bool says(std::string_view text) const { return message.find(text) != std::string::npos; }
};
std::ostream &operator<<(std::ostream &out, const Answer &answer);

// A place for a call's error: `Fault f; Answer a = f.of(proofinfer_x(..., f.out()));`
class Fault {
 public:
  proofinfer_error **out() { return &error_; }
  Answer of(int32_t status);

 private:
  proofinfer_error *error_ = nullptr;
};

// answer_of(proofinfer_session_rewind, session, 3) is the Answer of that call, its error parameter filled in.
template <typename... Parameters, typename... Arguments>
Answer answer_of(int32_t (*function)(Parameters...), Arguments... arguments) {
  Fault fault;
  return fault.of(function(arguments..., fault.out()));
}

Options make_options();
void set(const Options &options, std::string_view name, int64_t value);
void set_u64(const Options &options, std::string_view name, uint64_t value);
void set_f64(const Options &options, std::string_view name, double value);
void set_text(const Options &options, std::string_view name, std::string_view value);
void set_tokens(const Options &options, std::string_view name, const std::vector<int32_t> &value);

// Opening; `answer` receives what the call said, and without it a failure fails the test.
Model open_model(const std::string &path, const proofinfer_options *options = nullptr, Answer *answer = nullptr);
Model open_model(const std::vector<uint8_t> &bytes, const proofinfer_options *options = nullptr, Answer *answer = nullptr);
Tokenizer open_tokenizer(const std::string &path, int32_t vocab_size, Answer *answer = nullptr);
Tokenizer open_tokenizer(const std::vector<uint8_t> &bytes, int32_t vocab_size, const proofinfer_options *options = nullptr,
                         Answer *answer = nullptr);
Session make_session(const Model &model, const proofinfer_options *options = nullptr, Answer *answer = nullptr);
Sampler make_sampler(int32_t vocab_size, const proofinfer_options *options = nullptr, Answer *answer = nullptr);

// What encoding answered; *ids: what it gave, in a buffer that is always large enough. The second: a failure fails the test.
Answer encode_answer(const Tokenizer &tokenizer, const std::string &text, uint32_t flags, std::vector<int32_t> *ids);
std::vector<int32_t> encode(const Tokenizer &tokenizer, const std::string &text, uint32_t flags = 0);

int64_t model_i64(const Model &model, int32_t property);
Answer append(const Session &session, const std::vector<int32_t> &tokens, int32_t logits = PROOFINFER_LOGITS_ALL,
              proofinfer_cancel *cancel = nullptr);
// The logits of a position, [vocab_size]; a failure fails the test and gives none.
std::vector<float> logits(const Session &session, size_t position);

// The kernel sets this machine can run, by name.
std::vector<std::string> available_isas();

// Memory hooks that count, and that can be told to fail. One thread at a time.
class CountingAllocator {
 public:
  void install(const Options &options);
  uint64_t calls() const { return calls_; }         // allocations asked for so far
  uint64_t held_blocks() const { return blocks_; }  // not released yet
  uint64_t held_bytes() const { return bytes_; }
  uint64_t peak_bytes() const { return peak_bytes_; }     // most that was held at once
  void fail_call(uint64_t index) { fail_call_ = index; }  // the index-th allocation from now on (0: the next) fails once
  void fail_from(uint64_t index) { fail_from_ = index; }  // that one and every later one

 private:
  static void *allocate(void *user, size_t bytes, size_t alignment);
  static void release(void *user, void *memory, size_t bytes, size_t alignment);

  uint64_t calls_ = 0, blocks_ = 0, bytes_ = 0, peak_bytes_ = 0;
  uint64_t fail_call_ = UINT64_MAX, fail_from_ = UINT64_MAX;
};

}  // namespace proofinfer_test

#endif
