// Tokens of many sessions of one model, evaluated in one pass over the weights. One thread at a time (the API guards with busy()).
#ifndef PROOFINFER_MODEL_BATCH_H
#define PROOFINFER_MODEL_BATCH_H

#include "model/session.h"

namespace proofinfer {

class Batch : public Object {
 public:
  static constexpr Kind kKind = Kind::kBatch;
  static constexpr size_t kMaxRows = 4096;
  Batch(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}
  ~Batch() { clear(); }

  static Status create(const Model *model, size_t max_rows, const Settings &settings, Batch **batch, Failure *failure);
  Status add(Session *session, int32_t token, bool wants_logits, Failure *failure);
  // On failure no session has moved, the queue is kept, and logits are gone only after kCancelled.
  Status evaluate(Cancel *cancel, Failure *failure);
  // The same for a caller that has entered every session of the queue.
  Status evaluate_entered(Cancel *cancel, Failure *failure);
  size_t count() const { return count_; }
  void clear();
  BusyFlag *busy() { return &busy_; }

 private:
  struct Item {
    Session *session;  // one reference each
    int32_t token;
    bool wants_logits;
    bool first;       // of its session in the queue
    size_t position;  // where the token lands
  };
  size_t queued_of(const Session *session) const;
  // Locks every session of the queue; on failure none is locked.
  Status enter_sessions(Failure *failure);
  void leave_sessions(size_t item_count);
  // Makes the pages that will be stored to each session's own.
  Status prepare_pages(Failure *failure);
  // Every session gets room for its new logits, or all keep those that they have.
  Status prepare_logits(Failure *failure);
  Status evaluate_rows(Cancel *cancel, Failure *failure);
  void move_sessions();

  Ref<const Model> model_;
  const Kernels *kernels_ = nullptr;
  BusyFlag busy_;
  Workspace workspace_;
  Buffer<Item> items_;  // [max_rows], count_ used
  size_t count_ = 0;
};

}  // namespace proofinfer

#endif
