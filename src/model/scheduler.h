// Many generations of one model, advanced together: a step is one pass over the weights. submit, add, cancel and the counts: any thread;
// step and next: one thread at a time (guarded by busy()).
#ifndef PROOFINFER_MODEL_SCHEDULER_H
#define PROOFINFER_MODEL_SCHEDULER_H

#include "model/batch.h"
#include "model/generation.h"

namespace proofinfer {

// Each generation stands in a slot. A slot belongs to the thread that claimed it until it is live, from then on to the thread inside step or next;
// other threads look at its id and leave a request to cancel, nothing else. No thread ever waits for another.
class Scheduler : public Object {
 public:
  static constexpr Kind kKind = Kind::kScheduler;
  static Status create(const Model *model, const Tokenizer *tokenizer, const Settings &settings, Scheduler **scheduler, Failure *failure);
  Scheduler(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}
  ~Scheduler();

  // A generation of its own, in memory of this scheduler. kLimit: no slot, or not enough memory.
  Status submit(const int32_t *prompt, size_t prompt_count, const Settings &settings, uint64_t *id, Failure *failure) const;
  // The caller's generation.
  Status add(Generation *generation, uint64_t *id, Failure *failure) const;
  // kArgument: no such id was ever given. One that has ended stays ended.
  Status cancel(uint64_t id, Failure *failure) const;

  // Evaluates *row_count tokens. kCancelled: nothing has moved. What is wrong with one generation ends that one and is told by next().
  Status step(Cancel *cancel, size_t *row_count, Failure *failure);
  // A piece of the generation `only` (0: of any, in turns), or its end, with which it leaves. *id: whose; 0: there is none.
  // kBufferTooSmall: it stays. Any other failure with *id != 0 is why that generation has left.
  Status next(uint64_t only, uint64_t *id, char *buffer, size_t capacity, Generation::Step *step, Failure *failure);

  size_t count() const;
  uint64_t used_bytes() const { return account()->used_bytes(); }
  BusyFlag *busy() { return &busy_; }

 private:
  enum SlotState : uint32_t { kFree, kClaimed, kLive };
  // Hands requests for memory on to the scheduler's account, so that everything made here shares its limit.
  struct Grant {
    Account *account = nullptr;
    uint64_t held_bytes = 0;
    uint64_t refused_bytes = 0;  // what it would hold, had the limit not refused the last of it
  };
  struct Slot {
    std::atomic<uint32_t> state{kFree};
    std::atomic<uint64_t> id{0};         // 0: not live
    std::atomic<uint64_t> cancelled{0};  // the id that is to leave
    Grant grant;
    Generation *generation = nullptr;  // one reference
    Failure failure;                   // why it leaves; kOk: it does not
    bool entered = false;              // claimed for this step
    size_t rows = 0;                   // of it in this step
  };

  static void *grant_memory(void *grant, size_t bytes, size_t alignment);
  static void take_memory_back(void *grant, void *memory, size_t bytes, size_t alignment);
  static MemoryHooks hooks_of(Grant *grant) { return MemoryHooks{grant_memory, take_memory_back, grant}; }

  Slot *claim_slot(Failure *failure) const;
  Status make_generation(Slot *slot, const int32_t *prompt, size_t prompt_count, const Settings &settings, Failure *failure) const;
  // The claimed slot goes live, or is free again.
  uint64_t publish(Slot *slot) const;
  static void vacate(Slot *slot);

  // The parts of a step.
  void enter(Slot *slot);
  void leave(Slot *slot);
  void queue(Slot *slot, size_t rows);
  void queue_prompts();
  void finish(Slot *slot);
  // Of next(): whether this slot had something to give.
  bool give(Slot *slot, char *buffer, size_t capacity, Generation::Step *step, Failure *failure);

  Ref<const Model> model_;
  Ref<const Tokenizer> tokenizer_;
  const Kernels *kernels_ = nullptr;
  uint64_t memory_limit_bytes_ = 0;
  size_t prefill_chunk_ = 0;
  Grant batch_grant_;  // before what takes memory from it
  Ref<Batch> batch_;
  mutable Buffer<Slot> slots_;  // [max_generations]
  mutable std::atomic<uint64_t> last_id_{0};
  BusyFlag busy_;
  size_t prompt_turn_ = 0;  // the slot whose prompt comes first
  size_t piece_turn_ = 0;   // the slot that is asked first for a piece
};

}  // namespace proofinfer

#endif
