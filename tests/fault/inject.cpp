#include "fault/inject.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

namespace proofinfer_test {

namespace {

struct Plan {
  SystemFault fault = SystemFault::kNone;
  uint64_t at = 0;
  bool from_then_on = false;
  const char *path = nullptr;
} g_plan;
std::atomic<uint64_t> g_seen{0}, g_fired{0};
std::atomic<int64_t> g_blocks{0}, g_inheritable{0}, g_longest_read{0};

// Whether this call, which `fault` concerns, is to fail.
bool hits(SystemFault fault) {
  if (g_plan.fault != fault) return false;
  uint64_t index = g_seen.fetch_add(1);
  if (index != g_plan.at && !(g_plan.from_then_on && index > g_plan.at)) return false;
  g_fired.fetch_add(1);
  return true;
}

}  // namespace

void arm(SystemFault fault, uint64_t at, bool from_then_on, const char *path) {
  g_seen = 0, g_fired = 0;
  g_plan = {fault, at, from_then_on, path};
}

uint64_t disarm() {
  g_plan = Plan();
  return g_fired;
}

int64_t held_blocks() { return g_blocks; }

int64_t inheritable_files() { return g_inheritable; }

int64_t longest_read() { return g_longest_read; }

}  // namespace proofinfer_test

using proofinfer_test::g_blocks;
using proofinfer_test::g_inheritable;
using proofinfer_test::g_longest_read;
using proofinfer_test::g_plan;
using proofinfer_test::hits;
using proofinfer_test::SystemFault;

extern "C" {

int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *__real_malloc(size_t bytes);
void __real_free(void *memory);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_open(const char *name, int flags, ...);
int __real_fstat(int file, struct stat *information);
ssize_t __real_pread(int file, void *to, size_t bytes, off_t offset);
ssize_t __real_pwrite(int file, const void *from, size_t bytes, off_t offset);
int __real_fsync(int file);
int __real_rename(const char *from, const char *to);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
  if (hits(SystemFault::kAllocation)) return ENOMEM;
  int result = __real_posix_memalign(memory, alignment, bytes);
  if (result == 0) g_blocks++;
  return result;
}

void *__wrap_malloc(size_t bytes) {
  void *memory = hits(SystemFault::kAllocation) ? nullptr : __real_malloc(bytes);
  if (memory) g_blocks++;
  return memory;
}

void __wrap_free(void *memory) {
  if (memory) g_blocks--;
  __real_free(memory);
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (hits(SystemFault::kAllocation)) return errno = ENOMEM, MAP_FAILED;
  return __real_mmap(address, bytes, protection, flags, file, offset);
}

int __wrap_open(const char *name, int flags, ...) {
  if (!(flags & O_CLOEXEC)) g_inheritable++;
  if (hits(SystemFault::kOpen)) return errno = EMFILE, -1;
  va_list arguments;
  va_start(arguments, flags);
  int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return __real_open(name, flags, mode);
}

int __wrap_fstat(int file, struct stat *information) {
  if (hits(SystemFault::kOpen)) return errno = EIO, -1;
  return __real_fstat(file, information);
}

ssize_t __wrap_pread(int file, void *to, size_t bytes, off_t offset) {
  // Threads may read at once: the longer one stays.
  for (int64_t seen = g_longest_read; seen < int64_t(bytes) && !g_longest_read.compare_exchange_weak(seen, int64_t(bytes));) {
  }
  if (hits(SystemFault::kRead)) return errno = EIO, -1;
  if (hits(SystemFault::kReadInterrupted)) return errno = EINTR, -1;
  if (hits(SystemFault::kReadEnd)) return 0;
  if (hits(SystemFault::kReadShort)) bytes = bytes ? 1 : 0;
  if (hits(SystemFault::kReadTruncate) && truncate(g_plan.path, 0) != 0) return -1;
  if (hits(SystemFault::kReadUnlink) && unlink(g_plan.path) != 0) return -1;
  if (!hits(SystemFault::kReadOther)) return __real_pread(file, to, bytes, offset);
  const int other = __real_open(g_plan.path, O_RDONLY);
  const ssize_t got = __real_pread(other, to, bytes, offset);
  close(other);
  return got;
}

ssize_t __wrap_pwrite(int file, const void *from, size_t bytes, off_t offset) {
  if (hits(SystemFault::kWrite)) return errno = ENOSPC, -1;
  if (hits(SystemFault::kWriteInterrupted)) return errno = EINTR, -1;
  if (hits(SystemFault::kWriteNothing)) return 0;
  if (hits(SystemFault::kWriteShort)) bytes = bytes ? 1 : 0;
  return __real_pwrite(file, from, bytes, offset);
}

int __wrap_fsync(int file) {
  if (hits(SystemFault::kFinish)) return errno = EIO, -1;
  return __real_fsync(file);
}

int __wrap_rename(const char *from, const char *to) {
  if (hits(SystemFault::kFinish)) return errno = EACCES, -1;
  return __real_rename(from, to);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  if (hits(SystemFault::kThread)) return EAGAIN;
  return __real_pthread_create(thread, attributes, run, argument);
}

}  // extern "C"
