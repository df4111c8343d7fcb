// Failures: a status code and a message in a fixed buffer, so that reporting one can never fail. Not shared between threads.
#ifndef PROOFINFER_BASE_FAILURE_H
#define PROOFINFER_BASE_FAILURE_H

#include <stddef.h>
#include <stdint.h>

namespace proofinfer {

// The values of the public PROOFINFER_E_ codes; src/api asserts that they agree.
enum Status : int32_t {
  kOk = 0,
  kArgument = 1,
  kMemory = 2,
  kLimit = 3,
  kIo = 4,
  kUnrecognized = 5,
  kTruncated = 6,
  kFormat = 7,
  kUnsupported = 8,
  kContext = 9,
  kBusy = 10,
  kCancelled = 11,
  kBufferTooSmall = 12,
  kNotFinite = 13,
  kState = 14,
  kInternal = 15,
};

struct Failure {
  static constexpr size_t kCapacity = 768;
  Status status = kOk;
  char message[kCapacity] = {0};  // [kCapacity], NUL-terminated, printable UTF-8
};

// Fills `failure` and returns `status`, so that `return fail(...)` ends a function. Control characters in the result become '?'.
Status fail(Failure *failure, Status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

}  // namespace proofinfer

#endif
