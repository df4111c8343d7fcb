#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif

#include "base/os.h"

namespace proofinfer {

namespace {

constexpr size_t kHugePageBytes = size_t(2) << 20;

// Paths up to this length fit the entry points' stack budget; longer ones the system would refuse anyway.
constexpr size_t kPathCapacity = PATH_MAX;

// What is mapped for so many bytes: what is left of a huge page is in small ones.
size_t mapped_bytes(size_t bytes) {
  size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

void *os_map_memory(size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kHugePageBytes) return nullptr;
  size_t length = mapped_bytes(bytes);
  // One huge page more than needed, so that an aligned start exists; the rest is given back at once.
  void *memory = mmap(nullptr, length + kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char *start = static_cast<char *>(memory);
  size_t skip = (kHugePageBytes - reinterpret_cast<uintptr_t>(start) % kHugePageBytes) % kHugePageBytes;
  if (skip) munmap(start, skip);
  if (kHugePageBytes - skip) munmap(start + skip + length, kHugePageBytes - skip);
#if defined(MADV_HUGEPAGE)
  madvise(start + skip, length, MADV_HUGEPAGE);  // a hint: without it the pages are small and the bits the same
#endif
  return start + skip;
}

void os_unmap_memory(void *memory, size_t bytes) { munmap(memory, mapped_bytes(bytes)); }

void *os_heap_allocate(size_t bytes, size_t alignment) {
  void *memory = nullptr;
  if (alignment < sizeof(void *)) alignment = sizeof(void *);
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

void os_heap_free(void *memory) { free(memory); }

void os_error_text(int error_number, char *text, size_t capacity) {
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  const char *known = strerror_r(error_number, text, capacity);
  if (known != text) snprintf(text, capacity, "%s", known);
#else
  if (strerror_r(error_number, text, capacity) != 0) snprintf(text, capacity, "error %d", error_number);
#endif
}

static Status fail_open(Failure *failure, const char *path, int error_number) {
  char text[128];
  os_error_text(error_number, text, sizeof(text));
  return fail(failure, kIo, "%s: cannot open: %s", path, text);
}

Status os_open_file(const char *path, size_t path_bytes, int64_t *file, uint64_t *size_bytes, Failure *failure) {
  if (path_bytes == 0) return fail(failure, kArgument, "the path is empty");
  if (memchr(path, 0, path_bytes)) return fail(failure, kArgument, "the path has a NUL byte among its %zu bytes", path_bytes);
  if (path_bytes >= kPathCapacity)
    return fail(failure, kArgument, "the path has %zu bytes; at most %zu are possible", path_bytes, kPathCapacity - 1);
  char name[kPathCapacity];
  memcpy(name, path, path_bytes);
  name[path_bytes] = 0;
  // O_NONBLOCK: opening a FIFO that nobody writes to must not hang; on regular files it changes nothing.
  int descriptor = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return fail_open(failure, name, errno);
  struct stat information;
  if (fstat(descriptor, &information) != 0) {
    int error_number = errno;
    close(descriptor);
    return fail_open(failure, name, error_number);
  }
  if (!S_ISREG(information.st_mode)) {
    close(descriptor);
    const char *kind = S_ISDIR(information.st_mode) ? "a directory" : S_ISFIFO(information.st_mode) ? "a FIFO" : "a device or socket";
    return fail(failure, kIo, "%s: is %s; expected a regular file", name, kind);
  }
  *file = descriptor;
  *size_bytes = static_cast<uint64_t>(information.st_size);
  return kOk;
}

void os_close_file(int64_t file) { close(static_cast<int>(file)); }

bool os_read_file(int64_t file, uint64_t offset, void *to, size_t bytes, size_t *got, int *error_number) {
  // Some systems refuse single reads of 2 GiB and more.
  size_t chunk = bytes < (size_t(1) << 30) ? bytes : (size_t(1) << 30);
  for (;;) {
    ssize_t n = pread(static_cast<int>(file), to, chunk, static_cast<off_t>(offset));
    if (n >= 0) return *got = static_cast<size_t>(n), true;
    if (errno != EINTR) return *error_number = errno, false;
  }
}

void *os_map_file(int64_t file, size_t bytes, int *error_number) {
  void *memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, static_cast<int>(file), 0);
  if (memory != MAP_FAILED) return memory;
  *error_number = errno == ENOMEM ? 0 : errno;
  return nullptr;
}

void os_unmap_file(void *memory, size_t bytes) { munmap(memory, bytes); }

bool os_others_may_write(int64_t file) {
  struct stat information;
  return fstat(static_cast<int>(file), &information) != 0 || (information.st_mode & S_IWOTH) != 0;
}

bool os_may_replace(const char *name) {
  struct stat information;
  return lstat(name, &information) != 0 || S_ISREG(information.st_mode);
}

bool os_create_file(const char *name, int64_t *file, bool *taken, int *error_number) {
  int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
  if (descriptor < 0) return *error_number = errno, *taken = errno == EEXIST, false;
  *file = descriptor;
  return true;
}

bool os_write_file(int64_t file, uint64_t offset, const void *from, size_t bytes, int *error_number) {
  // Past the limit a write raises SIGXFSZ, which ends a process that does not expect it.
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      (bytes > limit.rlim_cur || offset > limit.rlim_cur - bytes))
    return *error_number = EFBIG, false;
  const char *at = static_cast<const char *>(from);
  while (bytes > 0) {
    size_t chunk = bytes < (size_t(1) << 30) ? bytes : (size_t(1) << 30);
    ssize_t n = pwrite(static_cast<int>(file), at, chunk, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return *error_number = errno, false;
    if (n == 0) return *error_number = EIO, false;  // else this could go on for ever
    at += n, offset += static_cast<uint64_t>(n), bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool os_finish_file(int64_t file, const char *from, const char *to, int *error_number) {
  struct stat replaced;
  bool done = lstat(to, &replaced) != 0 || !S_ISREG(replaced.st_mode) || fchmod(static_cast<int>(file), replaced.st_mode & 07777) == 0;
  if (done && fsync(static_cast<int>(file)) == 0 && rename(from, to) == 0) return true;
  *error_number = errno;
  return false;
}

void os_remove_file(const char *name) { unlink(name); }

uint64_t os_process_id() { return static_cast<uint64_t>(getpid()); }

size_t os_cpu_count() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) return static_cast<size_t>(CPU_COUNT(&set));
#endif
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<size_t>(online) : 1;
}

bool os_has_dot_products() {
#if defined(__linux__) && defined(__aarch64__)
  constexpr unsigned long kDotProducts = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kDotProducts) != 0;
#else
  return false;
#endif
}

namespace {

struct Start {
  void (*run)(void *);
  void *argument;
};

void *thread_main(void *raw) {
  Start start = *static_cast<Start *>(raw);
  free(raw);
  start.run(start.argument);
  return nullptr;
}

}  // namespace

static_assert(sizeof(pthread_t) <= sizeof(OsThread), "OsThread too small");

bool os_thread_start(OsThread *thread, size_t stack_bytes, void (*run)(void *), void *argument) {
  Start *start = static_cast<Start *>(malloc(sizeof(Start)));
  if (!start) return false;
  *start = Start{run, argument};
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return free(start), false;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  // Signals belong to the host's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int result = pthread_create(reinterpret_cast<pthread_t *>(thread->storage), &attributes, thread_main, start);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (result != 0) free(start);
  return result == 0;
}

void os_thread_join(OsThread *thread) { pthread_join(*reinterpret_cast<pthread_t *>(thread->storage), nullptr); }

#if defined(__linux__)
void os_wait(const uint32_t *word, uint32_t expected) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0); }
void os_wake(const uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }
#else
// One lock and condition for all words: wakes may be spurious, which os_wait allows.
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_condition = PTHREAD_COND_INITIALIZER;
void os_wait(const uint32_t *word, uint32_t expected) {
  pthread_mutex_lock(&wait_lock);
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == expected) pthread_cond_wait(&wait_condition, &wait_lock);
  pthread_mutex_unlock(&wait_lock);
}
void os_wake(const uint32_t *) {
  pthread_mutex_lock(&wait_lock);
  pthread_cond_broadcast(&wait_condition);
  pthread_mutex_unlock(&wait_lock);
}
#endif

}  // namespace proofinfer
