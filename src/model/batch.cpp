#include "model/batch.h"

#include "base/fp_environment.h"

namespace proofinfer {

Status Batch::create(const Model *model, size_t max_rows, const Settings &settings, Batch **batch, Failure *failure) {
  if (max_rows < 1 || max_rows > kMaxRows) return fail(failure, kArgument, "max_rows is %zu; expected 1 to %zu", max_rows, kMaxRows);
  Ref<Batch> made(Object::make<Batch>(settings.hooks, settings.memory_limit_bytes, "batch", failure));
  if (!made) return failure->status;
  made->model_ = Ref<const Model>::share(model);
  made->kernels_ = settings.kernels ? settings.kernels : model->kernels();
  Status status = made->items_.allocate(made->account(), max_rows, "batch queue", failure);
  if (status == kOk) status = made->workspace_.create(made->account(), *model, max_rows, failure);
  if (status == kOk) *batch = made.take();
  return status;
}

size_t Batch::queued_of(const Session *session) const {
  size_t queued = 0;
  for (size_t i = 0; i < count_; i++) queued += items_[i].session == session;
  return queued;
}

Status Batch::add(Session *session, int32_t token, bool wants_logits, Failure *failure) {
  if (session->model() != model_.get()) return fail(failure, kArgument, "the session belongs to another model than the batch");
  if (token < 0 || static_cast<size_t>(token) >= model_->vocab_size())
    return fail(failure, kArgument, "token is %d; expected 0 to %zu", token, model_->vocab_size() - 1);
  if (count_ == items_.count()) return fail(failure, kState, "the batch already holds its max_rows %zu tokens", count_);
  size_t queued = queued_of(session);
  size_t position = session->position() + queued;
  if (position >= session->context_length())
    return fail(failure, kContext, "a token at position %zu does not fit the session's context of %zu positions", position,
                session->context_length());
  session->retain();
  items_[count_++] = Item{session, token, wants_logits, queued == 0, position};
  return kOk;
}

void Batch::clear() {
  for (size_t i = 0; i < count_; i++) Object::release(items_[i].session);
  count_ = 0;
}

void Batch::leave_sessions(size_t item_count) {
  for (size_t i = 0; i < item_count; i++)
    if (items_[i].first) items_[i].session->busy()->leave();
}

Status Batch::enter_sessions(Failure *failure) {
  for (size_t i = 0; i < count_; i++) {
    const Item &item = items_[i];
    if (!item.first) continue;
    if (!item.session->busy()->try_enter()) {
      leave_sessions(i);
      return fail(failure, kBusy, "the session of queued token %zu is in use by another thread", i);
    }
    if (item.session->position() == item.position) continue;
    leave_sessions(i + 1);
    return fail(failure, kState, "the session of queued token %zu is at position %zu; it was at %zu when the token was queued", i,
                item.session->position(), item.position);
  }
  return kOk;
}

Status Batch::prepare_pages(Failure *failure) {
  for (size_t i = 0; i < count_; i++) {
    const Item &item = items_[i];
    if (!item.first) continue;
    Status status = item.session->prepare(queued_of(item.session), failure);
    if (status != kOk) return status;
  }
  return kOk;
}

Status Batch::prepare_logits(Failure *failure) {
  for (size_t i = 0; i < count_; i++) {
    if (!items_[i].first) continue;
    size_t wanted = 0;
    for (size_t k = i; k < count_; k++) wanted += items_[k].session == items_[i].session && items_[k].wants_logits;
    Status status = items_[i].session->reserve_logits(wanted, failure);
    if (status == kOk) continue;
    for (size_t k = 0; k < i; k++) items_[k].session->unreserve_logits();
    return status;
  }
  // Nothing can fail any more but by a cancel.
  for (size_t i = 0; i < count_; i++)
    if (items_[i].first) items_[i].session->renew_logits();
  return kOk;
}

Status Batch::evaluate_rows(Cancel *cancel, Failure *failure) {
  Team team(model_->pool());
  Row rows[Workspace::kMaxRows];
  for (size_t done = 0; done < count_;) {
    if (cancel) cancel->set_progress(done, count_);
    size_t now = workspace_.next_rows(count_ - done);
    for (size_t i = 0; i < now; i++) {
      const Item &item = items_[done + i];
      Session *s = item.session;
      float *logits = item.wants_logits ? s->add_logits(item.position) : nullptr;
      rows[i] = Row{&s->kv_, item.position, item.token, -1, logits, s->scores_.data(), nullptr};
    }
    Status status = forward(*model_, *kernels_, rows, now, &workspace_, &team, cancel, failure);
    if (status != kOk) return status;
    done += now;
  }
  if (cancel) cancel->set_progress(count_, count_);
  return kOk;
}

void Batch::move_sessions() {
  for (size_t i = 0; i < count_; i++) {
    Session *s = items_[i].session;
    s->tokens_[items_[i].position] = items_[i].token;
    s->position_.store(items_[i].position + 1, std::memory_order_release);
  }
}

Status Batch::evaluate(Cancel *cancel, Failure *failure) {
  Status status = enter_sessions(failure);
  if (status != kOk) return status;
  status = evaluate_entered(cancel, failure);
  leave_sessions(count_);
  if (status == kOk) clear();
  return status;
}

Status Batch::evaluate_entered(Cancel *cancel, Failure *failure) {
  Status status = prepare_pages(failure);
  if (status == kOk) status = prepare_logits(failure);
  if (status != kOk) return status;
  FpScope contract;
  status = evaluate_rows(cancel, failure);
  for (size_t i = 0; status != kOk && i < count_; i++) items_[i].session->forget_logits(0);
  if (status == kOk) move_sessions();
  return status;
}

}  // namespace proofinfer
