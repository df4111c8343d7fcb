#include "base/thread_pool.h"

#include "base/fp_environment.h"

namespace proofinfer {

namespace {

// The kernels need a few KiB; the rest is room for the C library's thread-local data and signal frames with AVX-512 state.
constexpr size_t kWorkerStackBytes = size_t(256) << 10;

// How long a thread looks for the next round before it sleeps: longer than the gaps between the matrices of one pass (some
// microseconds), short enough that an idle pool is asleep within about a tenth of a millisecond.
constexpr uint32_t kSpinCount = 4000;

// No process has this number.
constexpr uint64_t kTakingOver = UINT64_MAX;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

const uint32_t *word(const std::atomic<uint32_t> *value) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the system waits on plain words");
  return reinterpret_cast<const uint32_t *>(value);
}

}  // namespace

Status ThreadPool::create(Account *account, size_t thread_count, Failure *failure) {
  wanted_count_ = thread_count;
  // More threads than CPUs must not burn the CPUs that the others need.
  spin_count_ = thread_count <= os_cpu_count() ? kSpinCount : 0;
  return workers_.allocate(account, thread_count - 1, "thread pool", failure);
}

bool ThreadPool::try_acquire() {
  uint64_t owner = process_.load(std::memory_order_acquire);
  if (owner != 0 && owner != os_process_id()) {
    // After a fork the flag may say busy for a caller that exists only in the parent. One thread of the child takes over; until it has, the
    // others compute alone, as nothing here is true yet.
    if (owner == kTakingOver || !process_.compare_exchange_strong(owner, kTakingOver, std::memory_order_acq_rel)) return false;
    started_count_ = 0;
    sleeping_.store(0, std::memory_order_relaxed);
    pending_.store(0, std::memory_order_relaxed);
    busy_.store(1, std::memory_order_relaxed);
    start();
    return true;
  }
  if (busy_.exchange(1, std::memory_order_acquire) != 0) return false;
  if (started_count_ == 0) start();
  return true;
}

void ThreadPool::start() {
  process_.store(os_process_id(), std::memory_order_release);
  for (size_t i = 0; i < workers_.count(); i++) {
    Worker *worker = &workers_[i];
    worker->pool = this;
    worker->index = i + 1;
    worker->first_round = round_.load(std::memory_order_relaxed);
    if (!os_thread_start(&worker->thread, kWorkerStackBytes, worker_main, worker)) return;
    started_count_++;
  }
}

void ThreadPool::stop() {
  if (started_count_ == 0 || process_.load(std::memory_order_acquire) != os_process_id()) return;
  stopping_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_seq_cst);
  os_wake(word(&round_));
  for (size_t i = 0; i < started_count_; i++) os_thread_join(&workers_[i].thread);
  started_count_ = 0;
}

void ThreadPool::worker_main(void *raw) {
  Worker *worker = static_cast<Worker *>(raw);
  FpScope contract;  // the thread inherited its maker's environment
  worker->pool->work(worker->index);
}

uint32_t ThreadPool::wait_for_round(uint32_t seen) {
  for (uint32_t spin = 0; spin < spin_count_; spin++) {
    uint32_t round = round_.load(std::memory_order_acquire);
    if (round != seen) return round;
    pause_cpu();
  }
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  uint32_t round;
  while ((round = round_.load(std::memory_order_seq_cst)) == seen) os_wait(word(&round_), seen);
  sleeping_.fetch_sub(1, std::memory_order_relaxed);
  return round;
}

void ThreadPool::work(size_t index) {
  uint32_t seen = workers_[index - 1].first_round;
  for (;;) {
    seen = wait_for_round(seen);
    if (stopping_.load(std::memory_order_relaxed)) return;
    task_(context_, index, started_count_ + 1);
    bool last = pending_.fetch_sub(1, std::memory_order_seq_cst) == 1;
    if (last && caller_sleeps_.load(std::memory_order_seq_cst)) os_wake(word(&pending_));
  }
}

void ThreadPool::run(TeamTask task, void *context) {
  task_ = task;
  context_ = context;
  pending_.store(static_cast<uint32_t>(started_count_), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst)) os_wake(word(&round_));
  task(context, 0, started_count_ + 1);
  for (uint32_t spin = 0; spin < spin_count_ && pending_.load(std::memory_order_acquire) != 0; spin++) pause_cpu();
  if (pending_.load(std::memory_order_acquire) == 0) return;
  caller_sleeps_.store(1, std::memory_order_seq_cst);
  for (uint32_t left; (left = pending_.load(std::memory_order_seq_cst)) != 0;) os_wait(word(&pending_), left);
  caller_sleeps_.store(0, std::memory_order_relaxed);
}

}  // namespace proofinfer
