#include "model/score.h"

#include <math.h>

#include "base/fp_environment.h"
#include "model/forward.h"
#include "model/logits.h"
#include "model/session.h"

namespace proofinfer {

// ---- One session ----

Status Session::score_first(int32_t token, float *logprob, Failure *failure) const {
  size_t position = this->position();
  *logprob = NAN;
  const float *kept = position > 0 ? logits(position - 1) : nullptr;
  if (!kept) return kOk;
  if (Status status = check_finite(kept, model_->vocab_size(), failure)) return status;
  *logprob = log_softmax(kept, model_->vocab_size()).of(kept[token]);
  return kOk;
}

Status Session::score(const int32_t *tokens, size_t count, float *logprobs, Cancel *cancel, Failure *failure) {
  if (count == 0) return kOk;
  Status status = check_tokens(tokens, count, failure);
  size_t position = this->position();
  // Where no logits of the last token are kept, it is evaluated once more: the same bits.
  size_t again = position > 0 && !logits(position - 1) ? 1 : 0, begin = position - again, total = again + count;
  if (status == kOk) status = kv_.make_private(begin, position + count, position, failure);
  if (status == kOk) status = reserve_logits(1, failure);
  if (status != kOk) return status;
  FpScope contract;
  status = score_first(tokens[0], &logprobs[0], failure);
  if (status != kOk) return unreserve_logits(), status;
  renew_logits();
  Team team(model_->pool());
  Row rows[Workspace::kMaxRows];
  for (size_t done = 0; done < total;) {
    if (cancel) cancel->set_progress(done, total);
    size_t rows_now = workspace_.next_rows(total - done);
    for (size_t i = 0; i < rows_now; i++) {
      size_t index = done + i, next = index + 1 - again;  // in tokens
      int32_t token = index < again ? tokens_[begin] : tokens[index - again];
      bool scored = next < count;
      rows[i] = Row{&kv_,
                    begin + index,
                    token,
                    scored ? tokens[next] : -1,
                    scored ? nullptr : add_logits(begin + index),
                    scores_.data(),
                    scored ? &logprobs[next] : nullptr};
    }
    status = forward(*model_, *kernels_, rows, rows_now, &workspace_, &team, cancel, failure);
    if (status != kOk) return forget_logits(0), status;
    done += rows_now;
  }
  for (size_t i = 0; i < count; i++) tokens_[position + i] = tokens[i];
  position_.store(position + count, std::memory_order_release);
  if (cancel) cancel->set_progress(total, total);
  return kOk;
}

// ---- Many texts ----

namespace {

// Texts go through in order, as many rows a pass as the workspace takes. A text is in a lane from its first row to its last, so that those of one
// pass and no more hold memory. The last token of a text is only scored, never evaluated.
class TextScorer {
 public:
  TextScorer(const Model *model, const TokenTexts &texts, float *logprobs) : model_(*model), texts_(texts), logprobs_(logprobs) {}

  Status check(Failure *failure);
  Status run(const Settings &settings, Cancel *cancel, Failure *failure);

 private:
  static constexpr size_t kLanes = 32;  // texts that one pass has rows of

  struct Lane {
    KvCache kv;
    Buffer<float> scores;
  };

  size_t count() const { return texts_.counts[text_]; }
  // To the next text that has a row, `text_` being done.
  void skip();
  Status open_lane(Lane *lane, Failure *failure);
  // The rows of the next pass, at most `capacity`.
  Status fill(Row *rows, size_t capacity, size_t *row_count, Failure *failure);

  const Model &model_;
  TokenTexts texts_;
  float *logprobs_;
  size_t row_count_ = 0;          // of all texts
  size_t text_ = 0, offset_ = 0;  // the text that the next row is of, and where its tokens begin
  size_t at_ = 0;                 // the row within it
  Ref<Ledger> ledger_;            // before what takes memory from it
  Workspace workspace_;
  Lane lanes_[kLanes];  // that of a text: its number modulo kLanes
};

Status TextScorer::check(Failure *failure) {
  size_t offset = 0;
  for (size_t text = 0; text < texts_.text_count; text++) {
    size_t count = texts_.counts[text];
    if (count > model_.seq_len())
      return fail(failure, kContext, "text %zu has %zu tokens; the model's seq_len is %zu", text, count, model_.seq_len());
    for (size_t i = 0; i < count; i++) {
      int32_t token = texts_.tokens[offset + i];
      if (token < 0 || static_cast<size_t>(token) >= model_.vocab_size())
        return fail(failure, kArgument, "token %zu of text %zu is %d; expected 0 to %zu", i, text, token, model_.vocab_size() - 1);
    }
    if (count > 0) row_count_ += count - 1;
    offset += count;
  }
  return kOk;
}

void TextScorer::skip() {
  for (; text_ < texts_.text_count && at_ + 1 >= count(); text_++, at_ = 0) {
    if (count() > 0) logprobs_[offset_] = NAN;
    offset_ += count();
  }
}

Status TextScorer::open_lane(Lane *lane, Failure *failure) {
  lane->~Lane();
  new (lane) Lane;
  pi_kv_shape shape = {model_.n_layers(), model_.n_kv_heads(), model_.n_heads() / model_.n_kv_heads(), model_.head_size()};
  Status status = lane->kv.create(ledger_.get(), shape, count() - 1, nullptr, 0, failure);
  if (status == kOk) status = lane->scores.allocate(ledger_->account(), scores_count(model_, count() - 1), "attention scores", failure);
  return status;
}

Status TextScorer::fill(Row *rows, size_t capacity, size_t *row_count, Failure *failure) {
  size_t first = text_, n = 0;
  for (; n < capacity && text_ < texts_.text_count && text_ - first < kLanes; skip()) {
    Lane *lane = &lanes_[text_ % kLanes];
    if (at_ == 0)
      if (Status status = open_lane(lane, failure)) return status;
    size_t end = count() - 1 - at_ < capacity - n ? count() - 1 : at_ + capacity - n;
    for (; at_ < end; at_++) {
      const int32_t *token = texts_.tokens + offset_ + at_;
      rows[n++] = Row{&lane->kv, at_, token[0], token[1], nullptr, lane->scores.data(), logprobs_ + offset_ + at_ + 1};
    }
  }
  *row_count = n;
  return kOk;
}

Status TextScorer::run(const Settings &settings, Cancel *cancel, Failure *failure) {
  ledger_ = Ref<Ledger>(Object::make<Ledger>(settings.hooks, settings.memory_limit_bytes, "scoring", failure));
  if (!ledger_) return failure->status;
  skip();
  // At least two rows: a pass of one has no room for logits that nobody keeps.
  if (Status status = workspace_.create(ledger_->account(), model_, row_count_ < 2 ? 2 : row_count_, failure)) return status;
  const Kernels *kernels = settings.kernels ? settings.kernels : model_.kernels();
  FpScope contract;
  Team team(model_.pool());
  Row rows[Workspace::kMaxRows];
  for (size_t done = 0, now = 0; done < row_count_; done += now) {
    if (cancel) cancel->set_progress(done, row_count_);
    if (cancelled(cancel)) return fail(failure, kCancelled, "scoring was cancelled after %zu of %zu tokens", done, row_count_);
    Status status = fill(rows, workspace_.row_capacity(), &now, failure);
    if (status == kOk) status = forward(model_, *kernels, rows, now, &workspace_, &team, cancel, failure);
    if (status != kOk) return status;
  }
  if (cancel) cancel->set_progress(row_count_, row_count_);
  return kOk;
}

}  // namespace

Status score_texts(const Model *model, const TokenTexts &texts, const Settings &settings, float *logprobs, Cancel *cancel,
                   Failure *failure) {
  TextScorer scorer(model, texts, logprobs);
  if (Status status = scorer.check(failure)) return status;
  return scorer.run(settings, cancel, failure);
}

}  // namespace proofinfer
