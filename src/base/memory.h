// Memory through the caller's hooks, counted against a limit, in owning buffers that report failure. Account: any thread.
#ifndef PROOFINFER_BASE_MEMORY_H
#define PROOFINFER_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <new>

#include "base/failure.h"

namespace proofinfer {

struct MemoryHooks {
  void *(*allocate)(void *user, size_t bytes, size_t alignment) = nullptr;  // nullptr: the C library and the system
  void (*release)(void *user, void *memory, size_t bytes, size_t alignment) = nullptr;
  void *user = nullptr;
};

// Where one object's memory comes from and how much it holds. Must outlive what was allocated from it.
class Account {
 public:
  Account(const MemoryHooks &hooks, uint64_t limit_bytes) : hooks_(hooks), limit_bytes_(limit_bytes) {}
  Account(const Account &) = delete;
  Account &operator=(const Account &) = delete;

  // `what` names the thing in the message. Memory is aligned to `alignment` (a power of two, at most 4096); bytes > 0.
  void *allocate(size_t bytes, size_t alignment, const char *what, Failure *failure);
  void release(void *memory, size_t bytes, size_t alignment);
  // Counts memory that is allocated and released elsewhere.
  Status charge(size_t bytes, const char *what, Failure *failure);
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  const MemoryHooks &hooks() const { return hooks_; }
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  MemoryHooks hooks_;
  uint64_t limit_bytes_;  // 0: none
  std::atomic<uint64_t> used_bytes_{0};
};

// An owned array of trivially copyable elements, aligned to 64 bytes (a cache line and the widest vector).
template <typename T>
class Buffer {
 public:
  static constexpr size_t kAlignment = 64;
  Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { reset(); }

  // Replaces the contents by `count` elements of unspecified value. count 0 leaves it empty.
  Status allocate(Account *account, size_t count, const char *what, Failure *failure) {
    reset();
    if (count == 0) return kOk;
    if (count > SIZE_MAX / sizeof(T))
      return fail(failure, kMemory, "%s: %zu elements of %zu bytes are more than this machine can address", what, count, sizeof(T));
    void *memory = account->allocate(count * sizeof(T), kAlignment, what, failure);
    if (!memory) return failure->status;
    account_ = account;
    data_ = static_cast<T *>(memory);
    count_ = count;
    return kOk;
  }
  void reset() {
    if (data_) account_->release(data_, count_ * sizeof(T), kAlignment);
    data_ = nullptr;
    count_ = 0;
  }
  void swap(Buffer &other) {
    Account *account = account_;
    T *data = data_;
    size_t count = count_;
    account_ = other.account_, data_ = other.data_, count_ = other.count_;
    other.account_ = account, other.data_ = data, other.count_ = count;
  }
  T *data() { return data_; }
  const T *data() const { return data_; }
  size_t count() const { return count_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }

 private:
  Account *account_ = nullptr;
  T *data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace proofinfer

#endif
