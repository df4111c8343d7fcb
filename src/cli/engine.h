// What the commands set up alike: options from flags, a model with progress, the tokenizer that belongs to it, a session. One thread.
#ifndef PROOFINFER_CLI_ENGINE_H
#define PROOFINFER_CLI_ENGINE_H

#include <stdint.h>

#include <string>
#include <string_view>
#include <vector>

#include "args.h"
#include "handles.h"

namespace proofinfer::cli {

// --threads, --isa and the flags of the sampler's options, as far as they are given, over the program's defaults.
Options read_options(const Arguments &arguments);
// Sets "context_length"; 0: the library's default.
void set_context_length(proofinfer_options *options, int64_t positions);

struct LoadedModel {
  std::string path;
  Model model;
  double load_seconds = 0;

  int64_t get(int32_t property) const;       // a PROOFINFER_MODEL_ integer
  const char *text(int32_t property) const;  // a PROOFINFER_MODEL_ text
};

// Opens a checkpoint, with a progress line unless `quiet`.
LoadedModel load_model(const std::string &path, const proofinfer_options *options, bool quiet);

// The file that --tokenizer names; otherwise the model's own file if it is GGUF, or the first that fits of those beside it; the error lists what was
// tried.
Tokenizer load_tokenizer(const Arguments &arguments, const LoadedModel &model);

// Opens a tokenizer file; messages name it.
Tokenizer open_tokenizer(const std::string &path, int64_t vocab_size);

// Text to ids; flags: PROOFINFER_ENCODE_ bits.
std::vector<int32_t> encode(const proofinfer_tokenizer *tokenizer, std::string_view text, uint32_t flags);

// The bytes of a file, or of the standard input for "-"; `what` names it in the message.
std::string read_file(const char *what, const std::string &path);

// Appends tokens and keeps the logits of the last; with a progress line if `show_progress`. Throws Interrupted.
void append_tokens(proofinfer_session *session, const int32_t *tokens, size_t count, bool show_progress);
// The sampler's choice from the last logits.
int32_t sample_last(proofinfer_session *session, proofinfer_sampler *sampler);

// A model with its tokenizer, a sampler and one sequence: all that generate and chat need.
class Engine {
 public:
  // default_steps: what -n means when it is absent; 0 is the whole context.
  Engine(const Arguments &arguments, const std::string &model_path, int64_t default_steps);

  const LoadedModel &model() const { return model_; }
  const proofinfer_tokenizer *tokenizer() const { return tokenizer_.get(); }
  // Whether the vocabulary comes from a GGUF file, where pieces have kinds; a tokenizer.bin has none.
  bool has_kinds() const;
  // Positions that may be used, and those that are.
  size_t steps() const { return steps_; }
  size_t position() const { return proofinfer_session_position(session_.get()); }

  // With BOS and EOS as the vocabulary has them; at least one token. special: control pieces spelled in the text become their ids.
  std::vector<int32_t> encode_prompt(std::string_view text, bool special = false) const;
  // Rewinds to where the tokens of the session are no longer those of `prompt`, or to before its last one. How many are left.
  size_t rewind_to_common(const std::vector<int32_t> &prompt);
  void append_prompt(const std::vector<int32_t> &tokens);
  void append(int32_t token);
  int32_t sample();
  // A generation that goes on behind what was appended, to the end of the positions at most. stop_tokens: nullptr: those of the vocabulary;
  // max_tokens: 0: no limit.
  Generation generate(const std::vector<int32_t> *stop_tokens, const std::vector<std::string> &stop_strings, int64_t max_tokens = 0);
  // Draws `count` random numbers, as that many samples would; none at temperature 0.
  void skip_draws(size_t count);

 private:
  LoadedModel model_;
  Tokenizer tokenizer_;
  Sampler sampler_;
  Session session_;
  size_t steps_ = 0;
  bool quiet_ = false;
  bool draws_ = false;
};

}  // namespace proofinfer::cli

#endif
