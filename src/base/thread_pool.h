// A fixed team of threads that runs one task at a time, each thread its share. Acquired by one caller at a time; others compute alone.
#ifndef PROOFINFER_BASE_THREAD_POOL_H
#define PROOFINFER_BASE_THREAD_POOL_H

#include <atomic>

#include "base/memory.h"
#include "base/os.h"

namespace proofinfer {

// One thread's share of a task: index in [0, count).
using TeamTask = void (*)(void *context, size_t index, size_t count);

class ThreadPool {
 public:
  ThreadPool() = default;
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool() { stop(); }

  // thread_count: the caller's included. Threads start with the first acquire; where the system gives fewer, fewer compute.
  Status create(Account *account, size_t thread_count, Failure *failure);
  size_t thread_count() const { return wanted_count_; }

  // False while another caller has it. In a forked child the parent's threads do not exist: the first acquire there starts new ones.
  bool try_acquire();
  void release() { busy_.store(0, std::memory_order_release); }

  // Runs the task on every thread of the pool, the caller's as index 0, and returns when all are done. Only between acquire and release.
  void run(TeamTask task, void *context);
  // Threads that take part in run(), the caller's included.
  size_t running_count() const { return started_count_ + 1; }

 private:
  struct Worker {
    ThreadPool *pool;
    size_t index;          // 1 and up
    uint32_t first_round;  // the round before its first
    OsThread thread;
  };
  static void worker_main(void *raw);
  void work(size_t index);
  void start();
  void stop();
  uint32_t wait_for_round(uint32_t seen);

  Buffer<Worker> workers_;  // [wanted_count_ - 1]
  size_t wanted_count_ = 1;
  size_t started_count_ = 0;
  uint32_t spin_count_ = 0;
  std::atomic<uint64_t> process_{0};  // whose threads these are; 0: none started
  std::atomic<uint32_t> busy_{0};     // a word, see BusyFlag
  TeamTask task_ = nullptr;
  void *context_ = nullptr;
  std::atomic<uint32_t> round_{0};     // counts tasks; workers sleep on it
  std::atomic<uint32_t> sleeping_{0};  // workers that may be asleep on round_
  std::atomic<uint32_t> pending_{0};   // workers that have not finished the round; the caller sleeps on it
  std::atomic<uint32_t> caller_sleeps_{0};
  std::atomic<bool> stopping_{false};
};

// The pool for one operation, or the caller's thread alone where the pool is busy or absent.
class Team {
 public:
  explicit Team(ThreadPool *pool) : pool_(pool && pool->thread_count() > 1 && pool->try_acquire() ? pool : nullptr) {}
  ~Team() {
    if (pool_) pool_->release();
  }
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  size_t count() const { return pool_ ? pool_->running_count() : 1; }
  void run(TeamTask task, void *context) {
    if (pool_)
      pool_->run(task, context);
    else
      task(context, 0, 1);
  }

 private:
  ThreadPool *pool_;
};

// The part of [0, total) that falls to share `index` of `count`, cut at multiples of `unit`.
struct Range {
  size_t begin, end;
};
inline Range share_of(size_t total, size_t unit, size_t index, size_t count) {
  size_t units = total / unit + (total % unit != 0);
  size_t begin = units / count * index + (index < units % count ? index : units % count);
  size_t end = begin + units / count + (index < units % count);
  return Range{begin * unit < total ? begin * unit : total, end * unit < total ? end * unit : total};
}

}  // namespace proofinfer

#endif
