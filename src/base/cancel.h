// A request to stop, set from any thread or a signal handler, and the progress of the operation that polls it.
#ifndef PROOFINFER_BASE_CANCEL_H
#define PROOFINFER_BASE_CANCEL_H

#include <atomic>

#include "base/object.h"

namespace proofinfer {

class Cancel : public Object {
 public:
  static constexpr Kind kKind = Kind::kCancel;
  Cancel(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  void request() { requested_.store(1, std::memory_order_relaxed); }
  void reset() {
    requested_.store(0, std::memory_order_relaxed);
    set_progress(0, 0);
  }
  bool requested() const { return requested_.load(std::memory_order_relaxed) != 0; }
  void set_progress(uint64_t done, uint64_t total) {
    total_.store(total, std::memory_order_relaxed);
    done_.store(done, std::memory_order_relaxed);
  }
  uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  uint64_t total() const { return total_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> requested_{0};
  std::atomic<uint64_t> done_{0}, total_{0};
  static_assert(std::atomic<int>::is_always_lock_free, "a signal handler needs a lock-free flag");
};

inline bool cancelled(const Cancel *cancel) { return cancel && cancel->requested(); }

}  // namespace proofinfer

#endif
