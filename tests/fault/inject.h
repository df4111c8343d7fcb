// Stands between the library and the C library and makes chosen calls fail. For programs that link the static library and wrap the calls named
// in tests/fault/CMakeLists.txt. Counting is safe from any thread; arming and reading only while no call is running.
#ifndef PROOFINFER_TESTS_FAULT_INJECT_H
#define PROOFINFER_TESTS_FAULT_INJECT_H

#include <cstdint>

namespace proofinfer_test {

enum class SystemFault {
  kNone,
  kAllocation,       // posix_memalign, malloc and mmap find no memory
  kOpen,             // open and fstat: too many files, a bad disk
  kRead,             // pread: a bad disk
  kReadShort,        // pread gives one byte
  kReadInterrupted,  // pread is interrupted by a signal
  kReadEnd,          // pread says that the file has ended
  kReadTruncate,     // the file is truncated to nothing before pread
  kReadUnlink,       // the file is removed before pread
  kReadOther,        // pread gives the bytes of another file: somebody writes to this one
  kWrite,            // pwrite: the disk is full
  kWriteShort,       // pwrite takes one byte
  kWriteNothing,     // pwrite takes no byte and gives no reason
  kWriteInterrupted,
  kFinish,  // fsync and rename: a bad disk
  kThread,  // pthread_create: no more threads
};

// From now on the at-th call that this fault concerns fails (0: the next), and with from_then_on every later one too. path: for kReadTruncate,
// kReadUnlink and kReadOther; must live until disarm.
void arm(SystemFault fault, uint64_t at, bool from_then_on, const char *path = nullptr);
// Ends that. How many calls failed.
uint64_t disarm();

// Blocks that the library holds at the moment, from all allocators.
int64_t held_blocks();

// Files that were opened so that a program which is started meanwhile has them too.
int64_t inheritable_files();

// The most bytes that one pread was asked for.
int64_t longest_read();

}  // namespace proofinfer_test

#endif
