#include "model/session.h"

#include "base/fp_environment.h"

namespace proofinfer {

// Positions reserved when the caller names no number and the model would allow more.
static constexpr size_t kDefaultContextLength = 4096;

static Status choose_context_length(const Model &model, int64_t wanted, size_t *length, Failure *failure) {
  size_t most = model.seq_len();
  if (wanted < 0 || static_cast<uint64_t>(wanted) > most)
    return fail(failure, kArgument, "context_length is %lld; expected 0 (default) to the model's seq_len %zu", (long long)wanted, most);
  *length = wanted > 0 ? static_cast<size_t>(wanted) : most < kDefaultContextLength ? most : kDefaultContextLength;
  return kOk;
}

Status Session::create(const Model *model, const Settings &settings, Session **session, Failure *failure) {
  size_t length = 0;
  Status status = choose_context_length(*model, settings.context_length, &length, failure);
  if (status != kOk) return status;
  Ref<Session> made(Object::make<Session>(settings.hooks, settings.memory_limit_bytes, "session", failure));
  if (!made) return failure->status;
  Session *s = made.get();
  s->model_ = Ref<const Model>::share(model);
  s->kernels_ = settings.kernels ? settings.kernels : model->kernels();
  pi_kv_shape shape = {model->n_layers(), model->n_kv_heads(), model->n_heads() / model->n_kv_heads(), model->head_size()};
  status = s->kv_.create(s->account(), shape, length, failure);
  if (status == kOk) status = s->workspace_.create(s->account(), *model, length, failure);
  if (status == kOk) status = s->scores_.allocate(s->account(), scores_count(*model, length), "attention scores", failure);
  if (status == kOk) status = s->tokens_.allocate(s->account(), length, "token list", failure);
  if (status == kOk) status = s->logits_slot_.allocate(s->account(), length, "token list", failure);
  if (status == kOk) status = s->logits_.allocate(s->account(), logits_stride(*model), "logits", failure);
  if (status != kOk) return status;
  for (size_t i = 0; i < length; i++) s->logits_slot_[i] = 0;
  Team started(model->pool());  // starts the pool's threads, so that no append needs memory for them
  *session = made.take();
  return kOk;
}

Status Session::check_tokens(const int32_t *tokens, size_t count, Failure *failure) const {
  size_t position = this->position(), length = context_length();
  if (count > length - position)
    return fail(failure, kContext, "%zu tokens at position %zu do not fit the context of %zu positions: there is room for %zu", count,
                position, length, length - position);
  for (size_t i = 0; i < count; i++)
    if (tokens[i] < 0 || static_cast<size_t>(tokens[i]) >= model_->vocab_size())
      return fail(failure, kArgument, "token %zu is %d; expected 0 to %zu", i, tokens[i], model_->vocab_size() - 1);
  return kOk;
}

void Session::forget_logits(size_t from_position) {
  if (from_position < logits_begin_) from_position = logits_begin_;
  for (size_t i = from_position; i < logits_end_; i++) logits_slot_[i] = 0;
  if (from_position < logits_end_) logits_end_ = from_position;
}

Status Session::renew_logits(size_t count, Failure *failure) {
  size_t stride = logits_stride(*model_);
  if (count > logits_.count() / stride) {
    if (count > SIZE_MAX / stride) return fail(failure, kMemory, "logits of %zu positions: more than this machine can address", count);
    Buffer<float> larger;
    Status status = larger.allocate(account(), count * stride, "logits", failure);
    if (status != kOk) return status;
    larger.swap(logits_);
  }
  forget_logits(0);
  slots_used_ = 0;
  return kOk;
}

float *Session::add_logits(size_t position) {
  if (slots_used_ == 0) logits_begin_ = position;
  logits_end_ = position + 1;
  logits_slot_[position] = static_cast<uint32_t>(++slots_used_);
  return logits_.data() + (slots_used_ - 1) * logits_stride(*model_);
}

const float *Session::logits(size_t position) const {
  uint32_t slot = logits_slot_[position];
  return slot ? logits_.data() + (slot - 1) * logits_stride(*model_) : nullptr;
}

void Session::rewind(size_t position) {
  forget_logits(position);
  position_.store(position, std::memory_order_release);
}

Status Session::append(const int32_t *tokens, size_t count, LogitsMode mode, Cancel *cancel, Failure *failure) {
  if (count == 0) return kOk;
  Status status = check_tokens(tokens, count, failure);
  if (status == kOk) status = renew_logits(mode == LogitsMode::kAll ? count : 1, failure);
  if (status != kOk) return status;
  FpScope contract;
  Team team(model_->pool());
  size_t begin = position();
  Row rows[Workspace::kMaxRows];
  for (size_t done = 0; done < count;) {
    if (cancel) cancel->set_progress(done, count);
    size_t rows_now = workspace_.next_rows(count - done);
    for (size_t i = 0; i < rows_now; i++) {
      size_t index = done + i;
      bool wanted = mode == LogitsMode::kAll || (mode == LogitsMode::kLast && index + 1 == count);
      rows[i] = Row{&kv_, begin + index, tokens[index], wanted ? add_logits(begin + index) : nullptr, scores_.data()};
    }
    status = forward(*model_, *kernels_, rows, rows_now, &workspace_, &team, cancel, failure);
    if (status != kOk) return forget_logits(0), status;
    done += rows_now;
  }
  for (size_t i = 0; i < count; i++) tokens_[begin + i] = tokens[i];
  position_.store(begin + count, std::memory_order_release);
  if (cancel) cancel->set_progress(count, count);
  return kOk;
}

}  // namespace proofinfer
