// What every object behind a handle has: its kind, its references, its memory, and a lock that refuses instead of waiting. Any thread.
#ifndef PROOFINFER_BASE_OBJECT_H
#define PROOFINFER_BASE_OBJECT_H

#include <atomic>
#include <new>

#include "base/memory.h"

namespace proofinfer {

// First member of every object, so that a handle of the wrong kind is noticed before anything else is read.
enum class Kind : uint32_t {
  kError = 0x70696531,
  kOptions,
  kCancel,
  kModel,
  kTokenizer,
  kStream,
  kSession,
  kBatch,
  kSampler,
  kGeneration,
  kLedger,
  kScheduler,
};

class Object {
 public:
  Object(const Object &) = delete;
  Object &operator=(const Object &) = delete;

  Kind kind() const { return kind_; }
  // Memory of the object and of what it owns.
  Account *account() const { return &account_; }

  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }

  // Drops a reference; the last one destroys the object. The pointer is dead afterwards. nullptr does nothing.
  template <typename T>
  static void release(const T *object) {
    if (!object || object->references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    MemoryHooks hooks = object->account_.hooks();
    T *last = const_cast<T *>(object);
    last->~T();
    Account(hooks, 0).release(last, sizeof(T), alignof(T));
  }

  // Makes a T(hooks, limit_bytes, arguments...) with one reference, in memory from the hooks. nullptr: `failure` says why.
  template <typename T, typename... Arguments>
  static T *make(const MemoryHooks &hooks, uint64_t limit_bytes, const char *what, Failure *failure, Arguments... arguments) {
    void *memory = Account(hooks, limit_bytes).allocate(sizeof(T), alignof(T), what, failure);
    if (!memory) return nullptr;
    T *made = new (memory) T(hooks, limit_bytes, arguments...);
    made->account()->charge(sizeof(T), what, failure);  // it holds itself, within the limit as was just seen
    return made;
  }

 protected:
  Object(Kind kind, const MemoryHooks &hooks, uint64_t limit_bytes) : kind_(kind), account_(hooks, limit_bytes) {}
  ~Object() = default;

 private:
  Kind kind_;
  mutable std::atomic<uint32_t> references_{1};
  mutable Account account_;
};

// A counted pointer to an Object.
template <typename T>
class Ref {
 public:
  Ref() = default;
  // Adopts one reference.
  explicit Ref(T *object) : object_(object) {}
  Ref(Ref &&other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Ref &operator=(Ref &&other) noexcept {
    T *mine = object_;
    object_ = other.object_;
    other.object_ = mine;
    return *this;
  }
  Ref(const Ref &) = delete;
  Ref &operator=(const Ref &) = delete;
  ~Ref() { Object::release(object_); }

  static Ref share(T *object) {
    object->retain();
    return Ref(object);
  }
  T *get() const { return object_; }
  T *operator->() const { return object_; }
  T &operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // Gives the reference to the caller.
  T *take() {
    T *mine = object_;
    object_ = nullptr;
    return mine;
  }

 private:
  T *object_ = nullptr;
};

// An account with a life of its own, for memory that may outlive the object that took it.
class Ledger : public Object {
 public:
  static constexpr Kind kKind = Kind::kLedger;
  Ledger(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}
};

// One thread at a time inside an object; a second one is told so.
class BusyFlag {
 public:
  bool try_enter() { return busy_.exchange(1, std::memory_order_acquire) == 0; }
  void leave() { busy_.store(0, std::memory_order_release); }

 private:
  std::atomic<uint32_t> busy_{0};  // a word: exchanging a byte needs a library on riscv64
};

// Holds a BusyFlag for its own lifetime if it could be had.
class BusyScope {
 public:
  explicit BusyScope(BusyFlag *flag) : flag_(flag->try_enter() ? flag : nullptr) {}
  ~BusyScope() {
    if (flag_) flag_->leave();
  }
  BusyScope(const BusyScope &) = delete;
  BusyScope &operator=(const BusyScope &) = delete;
  bool entered() const { return flag_ != nullptr; }

 private:
  BusyFlag *flag_;
};

}  // namespace proofinfer

#endif
