// Owning wrappers over the handles of the C API, and calls that throw instead of returning a status. Threads: as the C API.
#ifndef PROOFINFER_CLI_HANDLES_H
#define PROOFINFER_CLI_HANDLES_H

#include <memory>
#include <string>
#include <utility>

#include "problem.h"
#include "proofinfer.h"

namespace proofinfer::cli {

template <auto free_function>
struct Free {
  template <class Handle>
  void operator()(Handle *handle) const {
    free_function(handle);
  }
};

using Error = std::unique_ptr<proofinfer_error, Free<proofinfer_error_free>>;
using Options = std::unique_ptr<proofinfer_options, Free<proofinfer_options_free>>;
using Cancel = std::unique_ptr<proofinfer_cancel, Free<proofinfer_cancel_free>>;
using Model = std::unique_ptr<proofinfer_model, Free<proofinfer_model_free>>;
using Tokenizer = std::unique_ptr<proofinfer_tokenizer, Free<proofinfer_tokenizer_free>>;
using Stream = std::unique_ptr<proofinfer_stream, Free<proofinfer_stream_free>>;
using Session = std::unique_ptr<proofinfer_session, Free<proofinfer_session_free>>;
using Sampler = std::unique_ptr<proofinfer_sampler, Free<proofinfer_sampler_free>>;
using Generation = std::unique_ptr<proofinfer_generation, Free<proofinfer_generation_free>>;
using Scheduler = std::unique_ptr<proofinfer_scheduler, Free<proofinfer_scheduler_free>>;

// A failure of the library, with its status for those who treat one apart.
class ApiProblem : public Problem {
 public:
  ApiProblem(int32_t status, const std::string &message) : Problem(message), status_(status) {}
  int32_t status() const { return status_; }

 private:
  int32_t status_;
};

// Throws what a status other than OK stands for.
inline void check(int32_t status, const proofinfer_error *error) {
  if (status == PROOFINFER_OK) return;
  if (status == PROOFINFER_E_CANCELLED) throw Interrupted();
  const char *message = proofinfer_error_message(error);
  throw ApiProblem(status, *message ? message : proofinfer_status_name(status));
}

// Calls a function of the API with these arguments and an error slot behind them.
template <class Function, class... Arguments>
void call(Function function, Arguments &&...arguments) {
  proofinfer_error *error = nullptr;
  const int32_t status = function(std::forward<Arguments>(arguments)..., &error);
  const Error owned(error);
  check(status, error);
}

// Calls a function that makes a handle: make<Session>(proofinfer_session_create, model, options).
template <class Handle, class Function, class... Arguments>
Handle make(Function function, Arguments &&...arguments) {
  typename Handle::pointer handle = nullptr;
  call(function, std::forward<Arguments>(arguments)..., &handle);
  return Handle(handle);
}

// Asks for a text until the buffer fits: ask(buffer, capacity, &needed, &error) is the API call. `text` is the buffer and keeps its
// capacity, so that asking for many small texts allocates once.
template <class Ask>
void read_text(std::string &text, Ask ask) {
  if (text.capacity() < 256) text.reserve(256);
  for (;;) {
    size_t needed = 0;
    proofinfer_error *error = nullptr;
    text.resize(text.capacity());
    const int32_t status = ask(text.data(), text.size(), &needed, &error);
    const Error owned(error);
    if (status != PROOFINFER_E_BUFFER) {
      check(status, error);
      text.resize(needed);
      return;
    }
    text.reserve(needed);
  }
}

}  // namespace proofinfer::cli

#endif
