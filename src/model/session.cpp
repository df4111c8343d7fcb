#include "model/session.h"

#include "base/fp_environment.h"

namespace proofinfer {

// Positions reserved when the caller names no number and the model would allow more.
static constexpr size_t kDefaultContextLength = 4096;

Status Session::choose_context_length(const Model &model, int64_t wanted, size_t *length, Failure *failure) {
  size_t most = model.seq_len();
  if (wanted < 0 || static_cast<uint64_t>(wanted) > most)
    return fail(failure, kArgument, "context_length is %lld; expected 0 (default) to the model's seq_len %zu", (long long)wanted, most);
  *length = wanted > 0 ? static_cast<size_t>(wanted) : most < kDefaultContextLength ? most : kDefaultContextLength;
  return kOk;
}

Status Session::create(const Model *model, const Settings &settings, Session **session, Failure *failure) {
  return make(model, settings, nullptr, session, failure);
}

Status Session::clone(const Settings &settings, Session **session, Failure *failure) const {
  Settings wanted = settings;
  if (wanted.context_length == 0) wanted.context_length = static_cast<int64_t>(context_length());
  if (wanted.context_length > 0 && static_cast<uint64_t>(wanted.context_length) < position())
    return fail(failure, kArgument, "context_length is %lld; the session to clone holds %zu positions", (long long)wanted.context_length,
                position());
  return make(model(), wanted, this, session, failure);
}

Settings Session::settings() const {
  Settings settings;
  settings.hooks = memory()->hooks();
  settings.memory_limit_bytes = memory()->limit_bytes();
  settings.kernels = kernels_;
  return settings;
}

Status Session::make(const Model *model, const Settings &settings, const Session *prefix, Session **session, Failure *failure) {
  size_t length = 0;
  Status status = choose_context_length(*model, settings.context_length, &length, failure);
  if (status != kOk) return status;
  Ref<Ledger> ledger(Object::make<Ledger>(settings.hooks, settings.memory_limit_bytes, "session", failure));
  if (!ledger) return failure->status;
  status = ledger->account()->charge(sizeof(Session), "session", failure);
  if (status != kOk) return status;
  Ref<Session> made(Object::make<Session>(settings.hooks, 0, "session", failure));
  if (!made) return failure->status;
  Session *s = made.get();
  s->model_ = Ref<const Model>::share(model);
  s->kernels_ = settings.kernels ? settings.kernels : model->kernels();
  s->ledger_ = static_cast<Ref<Ledger> &&>(ledger);
  status = s->reserve(length, !settings.evaluated_by_others, prefix, failure);
  if (status != kOk) return status;
  Team started(model->pool());  // starts the pool's threads, so that no append needs memory for them
  *session = made.take();
  return kOk;
}

uint64_t Session::needed_bytes(const Model &m, size_t context_length) {
  pi_kv_shape shape = {m.n_layers(), m.n_kv_heads(), m.n_heads() / m.n_kv_heads(), m.head_size()};
  return sizeof(Session) + sizeof(Ledger) + KvCache::needed_bytes(shape, context_length) +
         (scores_count(m, context_length) + logits_stride(m)) * sizeof(float) +
         context_length * (sizeof(*tokens_.data()) + sizeof(*logits_slot_.data()));
}

Status Session::reserve(size_t context_length, bool with_workspace, const Session *prefix, Failure *failure) {
  const Model &m = *model_;
  size_t position = prefix ? prefix->position() : 0;
  pi_kv_shape shape = {m.n_layers(), m.n_kv_heads(), m.n_heads() / m.n_kv_heads(), m.head_size()};
  Status status = kv_.create(ledger_.get(), shape, context_length, prefix ? &prefix->kv_ : nullptr, position, failure);
  if (status == kOk && with_workspace) status = workspace_.create(memory(), m, context_length, failure);
  if (status == kOk) status = scores_.allocate(memory(), scores_count(m, context_length), "attention scores", failure);
  if (status == kOk) status = tokens_.allocate(memory(), context_length, "token list", failure);
  if (status == kOk) status = logits_slot_.allocate(memory(), context_length, "token list", failure);
  if (status == kOk) status = logits_.allocate(memory(), logits_stride(m), "logits", failure);
  if (status != kOk) return status;
  for (size_t i = 0; i < context_length; i++) logits_slot_[i] = 0;
  if (position == 0) return kOk;
  memcpy(tokens_.data(), prefix->tokens(), position * sizeof(int32_t));
  const float *last = prefix->logits(position - 1);
  if (last) memcpy(add_logits(position - 1), last, m.vocab_size() * sizeof(float));
  position_.store(position, std::memory_order_release);
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

Status Session::reserve_logits(size_t count, Failure *failure) {
  size_t stride = logits_stride(*model_);
  if (count <= logits_.count() / stride) return kOk;
  if (count > SIZE_MAX / stride) return fail(failure, kMemory, "logits of %zu positions: more than this machine can address", count);
  return larger_logits_.allocate(memory(), count * stride, "logits", failure);
}

void Session::renew_logits() {
  forget_logits(0);
  slots_used_ = 0;
  if (larger_logits_.count() == 0) return;
  logits_.swap(larger_logits_);
  larger_logits_.reset();
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
  size_t begin = position();
  if (status == kOk) status = kv_.make_private(begin, begin + count, begin, failure);
  if (status == kOk) status = reserve_logits(mode == LogitsMode::kAll ? count : 1, failure);
  if (status != kOk) return status;
  renew_logits();
  FpScope contract;
  Team team(model_->pool());
  Row rows[Workspace::kMaxRows];
  for (size_t done = 0; done < count;) {
    if (cancel) cancel->set_progress(done, count);
    size_t rows_now = workspace_.next_rows(count - done);
    for (size_t i = 0; i < rows_now; i++) {
      size_t index = done + i;
      bool wanted = mode == LogitsMode::kAll || (mode == LogitsMode::kLast && index + 1 == count);
      rows[i] = Row{&kv_, begin + index, tokens[index], -1, wanted ? add_logits(begin + index) : nullptr, scores_.data(), nullptr};
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
