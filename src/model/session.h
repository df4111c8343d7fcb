// One sequence of tokens and its KV cache. One thread at a time (the API guards with busy()).
#ifndef PROOFINFER_MODEL_SESSION_H
#define PROOFINFER_MODEL_SESSION_H

#include "base/cancel.h"
#include "base/object.h"
#include "model/forward.h"
#include "model/kv_cache.h"
#include "model/settings.h"

namespace proofinfer {

class Model;

enum class LogitsMode { kNone, kLast, kAll };

class Session : public Object {
 public:
  static constexpr Kind kKind = Kind::kSession;
  // Reserves everything that appending one token at a time needs.
  static Status create(const Model *model, const Settings &settings, Session **session, Failure *failure);
  // A session that holds the same tokens, and the logits of the last one if this holds them; settings as in create, but for context_length 0,
  // which is this session's. The pages of keys and values that are full are shared; nothing but the last, partial page is copied.
  Status clone(const Settings &settings, Session **session, Failure *failure) const;
  // How this session was made, as far as a clone made without options takes it over.
  Settings settings() const;
  Session(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  // The positions that a session with this setting has: 0 is the default. kArgument: more than the model allows.
  static Status choose_context_length(const Model &model, int64_t wanted, size_t *length, Failure *failure);

  // Memory that a session takes which others evaluate, the object itself included.
  static uint64_t needed_bytes(const Model &model, size_t context_length);
  // What a batch does first for a session with so many tokens queued, done ahead: later on it needs no memory for it. kMemory, kLimit.
  Status prepare(size_t count, Failure *failure) { return kv_.make_private(position(), position() + count, position(), failure); }

  // On failure the position has not moved. tokens: [count].
  Status append(const int32_t *tokens, size_t count, LogitsMode mode, Cancel *cancel, Failure *failure);

  // Appends and gives the log-probability of each token behind all before it; of the first of all tokens NaN. The logits of the last one are kept. On
  // failure the position has not moved. tokens, logprobs: [count].
  Status score(const int32_t *tokens, size_t count, float *logprobs, Cancel *cancel, Failure *failure);

  // The logits of a position, [vocab_size], or nullptr where none are kept.
  const float *logits(size_t position) const;

  void rewind(size_t position);
  // Bytes that save writes (model/state.h).
  size_t state_bytes() const;
  void save(unsigned char *to) const;
  // Replaces what the session holds by a saved state. On failure it is as before.
  Status restore(const unsigned char *data, size_t data_bytes, Failure *failure);
  size_t position() const { return position_.load(std::memory_order_acquire); }
  size_t context_length() const { return kv_.context_length(); }
  const int32_t *tokens() const { return tokens_.data(); }  // [position()]
  const Model *model() const { return model_.get(); }
  uint64_t used_bytes() const { return memory()->used_bytes(); }
  BusyFlag *busy() const { return &busy_; }

 private:
  friend class Batch;
  static Status make(const Model *model, const Settings &settings, const Session *prefix, Session **session, Failure *failure);
  Status reserve(size_t context_length, bool with_workspace, const Session *prefix, Failure *failure);
  // All memory comes from the ledger, not from the object's own account: pages may outlive the session, in a clone of it.
  Account *memory() const { return ledger_->account(); }
  Status check_tokens(const int32_t *tokens, size_t count, Failure *failure) const;
  // Finds room for the logits of `count` positions, beside those that are kept.
  Status reserve_logits(size_t count, Failure *failure);
  // Gives up what was reserved.
  void unreserve_logits() { larger_logits_.reset(); }
  // Forgets the logits that are kept and takes the room that was reserved.
  void renew_logits();
  void forget_logits(size_t from_position);
  const float *last_logits() const;
  // The log-probability of `token` at the session's position, if the logits for it are kept or there can be none.
  Status score_first(int32_t token, float *logprob, Failure *failure) const;
  Status check_state(const unsigned char *data, size_t data_bytes, Failure *failure) const;
  // The place for the logits of one more position, after renew_logits.
  float *add_logits(size_t position);

  Ref<const Model> model_;
  Ref<Ledger> ledger_;  // before what takes memory from it
  const Kernels *kernels_ = nullptr;
  mutable BusyFlag busy_;
  KvCache kv_;
  Workspace workspace_;
  Buffer<float> scores_;          // scratch of scores_count floats
  Buffer<int32_t> tokens_;        // [context_length]
  Buffer<float> logits_;          // [slots][logits_stride], one slot at first
  Buffer<float> larger_logits_;   // empty between calls: what reserve_logits has found, if logits_ is too small
  Buffer<uint32_t> logits_slot_;  // [context_length]: slot + 1 of a position's logits, 0: none kept
  size_t slots_used_ = 0;
  size_t logits_begin_ = 0, logits_end_ = 0;  // positions outside have no logits
  std::atomic<size_t> position_{0};
};

}  // namespace proofinfer

#endif
