#include "model/generation.h"

#include <math.h>
#include <string.h>

#include "base/fp_environment.h"
#include "model/logits.h"
#include "model/model.h"

namespace proofinfer {

static Status check_ids(const int32_t *ids, size_t count, size_t vocab_size, const char *what, Failure *failure) {
  for (size_t i = 0; i < count; i++)
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= vocab_size)
      return fail(failure, kArgument, "%s %zu is %d; expected 0 to %zu", what, i, ids[i], vocab_size - 1);
  return kOk;
}

Status Generation::check(const Session &session, const Tokenizer &tokenizer, const Sampler &sampler, const int32_t *prompt,
                         size_t prompt_count, const Settings &settings, Failure *failure) {
  size_t vocab_size = session.model()->vocab_size(), position = session.position(), room = session.context_length() - position;
  if (sampler.vocab_size() != vocab_size)
    return fail(failure, kArgument, "the sampler's vocab_size is %zu; expected the model's %zu", sampler.vocab_size(), vocab_size);
  if (static_cast<size_t>(tokenizer.vocab_size()) < vocab_size)
    return fail(failure, kArgument, "the tokenizer has %d pieces; expected at least the model's vocab_size %zu", tokenizer.vocab_size(),
                vocab_size);
  if (Status status = check_ids(prompt, prompt_count, vocab_size, "prompt token", failure)) return status;
  if (settings.has_stop_tokens)
    if (Status status = check_ids(settings.stop_tokens, settings.stop_token_count, vocab_size, "stop token", failure)) return status;
  if (prompt_count > room)
    return fail(failure, kContext,
                "a prompt of %zu tokens at position %zu does not fit the context of %zu positions: there is room for %zu", prompt_count,
                position, session.context_length(), room);
  if (prompt_count == 0 && position == 0)
    return fail(failure, kState, "the prompt has 0 tokens and so has the session; expected at least 1");
  if (prompt_count == 0 && !session.logits(position - 1))
    return fail(failure, kState, "the prompt has 0 tokens and the session keeps no logits of its last position, %zu", position - 1);
  return kOk;
}

Status Generation::copy_settings(const int32_t *prompt, size_t prompt_count, const Settings &settings, Failure *failure) {
  Status status = unappended_.allocate(account(), prompt_count > 0 ? prompt_count : 1, "the generation's prompt", failure);
  if (status != kOk) return status;
  if (prompt_count > 0) memcpy(unappended_.data(), prompt, prompt_count * sizeof(int32_t));
  unappended_count_ = prompt_count;

  const int32_t *stop = settings.has_stop_tokens ? settings.stop_tokens : tokenizer_->stop_tokens();
  size_t stop_count = settings.has_stop_tokens ? settings.stop_token_count : tokenizer_->stop_token_count();
  status = stop_tokens_.allocate(account(), stop_count, "the generation's stop tokens", failure);
  if (status == kOk && stop_count > 0) memcpy(stop_tokens_.data(), stop, stop_count * sizeof(int32_t));
  if (status == kOk) status = stop_strings_.create(account(), settings.stop_strings, failure);
  size_t kept = static_cast<size_t>(settings.logprobs), vocab_size = session_->model()->vocab_size();
  if (kept > vocab_size) kept = vocab_size;
  if (status == kOk) status = top_tokens_.allocate(account(), kept, "the generation's log-probabilities", failure);
  if (status == kOk) status = top_logprobs_.allocate(account(), kept, "the generation's log-probabilities", failure);
  return status;
}

Status Generation::create(Session *session, const Tokenizer *tokenizer, Sampler *sampler, const int32_t *prompt, size_t prompt_count,
                          const Settings &settings, Generation **generation, Failure *failure) {
  BusyScope lock(session->busy());
  if (!lock.entered()) return fail(failure, kBusy, "another thread is inside the session");
  if (Status status = check(*session, *tokenizer, *sampler, prompt, prompt_count, settings, failure)) return status;
  Ref<Generation> made(Object::make<Generation>(settings.hooks, 0, "generation", failure));
  if (!made) return failure->status;
  Generation *g = made.get();
  g->session_ = Ref<Session>::share(session);
  g->tokenizer_ = Ref<const Tokenizer>::share(tokenizer);
  g->sampler_ = Ref<Sampler>::share(sampler);
  g->position_ = session->position();
  g->max_tokens_ = settings.max_tokens;
  g->previous_ = prompt_count > 0 ? prompt[prompt_count - 1] : session->tokens()[g->position_ - 1];
  if (Status status = g->copy_settings(prompt, prompt_count, settings, failure)) return status;
  *generation = made.take();
  return kOk;
}

Status Generation::next(Cancel *cancel, char *buffer, size_t capacity, Step *step, Failure *failure) {
  *step = {-1, 0, StopReason::kNone};
  BusyScope lock(&busy_);
  if (!lock.entered()) return fail(failure, kBusy, "another thread is inside this generation");
  if (!has_piece() && !ended())
    if (Status status = advance(cancel, failure)) return status;
  return deliver(buffer, capacity, step, failure);
}

Status Generation::enter_session(Failure *failure) {
  if (!session_->busy()->try_enter()) return fail(failure, kBusy, "another thread is inside the generation's session");
  if (session_->position() == position_) return kOk;
  session_->busy()->leave();
  return fail(failure, kState, "the session stands at position %zu; the generation left it at %zu", session_->position(), position_);
}

Status Generation::claim(Failure *failure) {
  if (!busy_.try_enter()) return fail(failure, kBusy, "another thread is inside this generation");
  Status status = enter_session(failure);
  if (status != kOk) busy_.leave();
  return status;
}

void Generation::unclaim() {
  session_->busy()->leave();
  busy_.leave();
}

void Generation::appended(size_t count) {
  position_ += count;
  appended_count_ += count;
}

Status Generation::advance(Cancel *cancel, Failure *failure) {
  if (Status status = enter_session(failure)) return status;
  Wanted tokens = wanted();
  Status status = session_->append(tokens.tokens, tokens.count, LogitsMode::kLast, cancel, failure);
  if (status == kOk) {
    appended(tokens.count);
    status = choose(failure);
  }
  session_->busy()->leave();
  return status;
}

Status Generation::choose(Failure *failure) {
  int32_t token = -1;
  if (Status status = pick(&token, failure)) return status;
  forced_ = -1;
  pending_ = token;
  chosen_count_++;
  if (top_tokens_.count() > 0) keep_logprobs();
  judge();
  return kOk;
}

Status Generation::pick(int32_t *token, Failure *failure) {
  BusyScope sampler_lock(sampler_->busy());
  if (!sampler_lock.entered()) return fail(failure, kBusy, "another thread is inside the generation's sampler");
  if (forced_ >= 0) {
    *token = forced_;
    return sampler_->accept(token, 1, failure);
  }
  const float *logits = session_->logits(position_ - 1);
  if (!logits) return fail(failure, kState, "the session no longer keeps the logits of position %zu", position_ - 1);
  return sampler_->sample(logits, token, failure);
}

void Generation::keep_logprobs() {
  FpScope contract;
  const float *logits = session_->logits(position_ - 1);
  size_t n = session_->model()->vocab_size();
  Failure not_finite;
  bool known = logits && check_finite(logits, n, &not_finite) == kOk;
  top_count_ = known ? top_tokens_.count() : 0;
  logprob_ = NAN;
  if (!known) return;
  LogSoftmax log_p = log_softmax(logits, n);
  logprob_ = log_p.of(logits[pending_]);
  largest_logits(logits, n, top_tokens_.data(), top_count_);
  for (size_t i = 0; i < top_count_; i++) top_logprobs_[i] = log_p.of(logits[top_tokens_[i]]);
}

void Generation::judge() {
  reason_ = reason_after(pending_);
  Bytes bytes = reason_ == StopReason::kToken ? Bytes{nullptr, 0} : tokenizer_->decode(previous_, pending_, false);
  StopStrings::Shown shown = stop_strings_.push(bytes);
  if (shown.matched != StopStrings::kNone) {
    reason_ = StopReason::kString;
    stop_string_ = shown.matched;
  } else if (reason_ != StopReason::kNone) {  // nothing can complete any more
    shown.held_count = shown.held.count;
    shown.new_count = bytes.count;
  }
  held_ = {shown.held.data, shown.held_count};
  fresh_ = {bytes.data, shown.new_count};
}

StopReason Generation::reason_after(int32_t token) const {
  for (size_t i = 0; i < stop_tokens_.count(); i++)
    if (stop_tokens_[i] == token) return StopReason::kToken;
  if (max_tokens_ > 0 && chosen_count_ >= max_tokens_) return StopReason::kLength;
  return position_ == session_->context_length() ? StopReason::kContext : StopReason::kNone;
}

Status Generation::take(char *buffer, size_t capacity, Step *step, Failure *failure) {
  *step = {-1, 0, StopReason::kNone};
  BusyScope lock(&busy_);
  if (!lock.entered()) return fail(failure, kBusy, "another thread is inside this generation");
  return deliver(buffer, capacity, step, failure);
}

size_t Generation::put_text(Utf8Filter *filter, char *out) const {
  size_t written = filter->push(held_, out);
  written += filter->push(fresh_, out ? out + written : nullptr);
  if (reason_ != StopReason::kNone) written += filter->flush(out ? out + written : nullptr);
  return written;
}

Status Generation::deliver(char *buffer, size_t capacity, Step *step, Failure *failure) {
  if (!has_piece()) {
    step->reason = reason_;
    return kOk;
  }
  bool ends = reason_ != StopReason::kNone;
  Utf8Filter ahead = filter_;
  step->needed = put_text(&ahead, nullptr);
  if (step->needed > capacity) return fail(failure, kBufferTooSmall, "text: needs a capacity of %zu; found %zu", step->needed, capacity);
  put_text(&filter_, buffer);
  step->token = previous_ = pending_;
  step->reason = reason_;
  pending_ = -1;
  unappended_[0] = step->token;
  unappended_count_ = ends ? 0 : 1;
  appended_count_ = 0;
  return kOk;
}

Status Generation::logprobs(Logprobs *found, Failure *failure) {
  BusyScope lock(&busy_);
  if (!lock.entered()) return fail(failure, kBusy, "another thread is inside this generation");
  if (top_tokens_.count() == 0) return fail(failure, kState, "the generation was made with the option logprobs at 0");
  if (pending_ >= 0) return fail(failure, kState, "token %d is pending: take it with proofinfer_generation_next first", pending_);
  if (chosen_count_ == 0) return fail(failure, kState, "the generation has yielded no token yet");
  *found = {logprob_, top_tokens_.data(), top_logprobs_.data(), top_count_};
  return kOk;
}

Status Generation::stop_string(size_t *index, Failure *failure) {
  BusyScope lock(&busy_);
  if (!lock.entered()) return fail(failure, kBusy, "another thread is inside this generation");
  if (!ended() || reason_ != StopReason::kString) return fail(failure, kState, "no stop string has ended the generation");
  *index = stop_string_;
  return kOk;
}

Status Generation::force(int32_t token, Failure *failure) {
  BusyScope lock(&busy_);
  if (!lock.entered()) return fail(failure, kBusy, "another thread is inside this generation");
  if (Status status = check_ids(&token, 1, session_->model()->vocab_size(), "forced token", failure)) return status;
  if (pending_ >= 0) return fail(failure, kState, "token %d is pending: take it with proofinfer_generation_next first", pending_);
  if (reason_ != StopReason::kNone) return fail(failure, kState, "the generation has ended");
  forced_ = token;
  return kOk;
}

}  // namespace proofinfer
