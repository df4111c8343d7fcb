// A file that appears whole or not at all: written under a temporary name beside its own and renamed. One thread at a time.
#ifndef PROOFINFER_BASE_SINK_H
#define PROOFINFER_BASE_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/memory.h"

namespace proofinfer {

class Sink {
 public:
  Sink() = default;
  Sink(const Sink &) = delete;
  Sink &operator=(const Sink &) = delete;
  // Removes the temporary file unless commit succeeded.
  ~Sink();

  Status open(const char *path, size_t path_bytes, Account *account, Failure *failure);
  Status write(uint64_t offset, const void *from, size_t bytes, Failure *failure);
  // Gives the file its name; an existing file of that name is replaced.
  Status commit(Failure *failure);

 private:
  static constexpr int64_t kNoFile = -1;
  int64_t file_ = kNoFile;
  Buffer<char> names_;  // the path and the temporary name, each NUL-terminated
  const char *path_ = nullptr;
  const char *temporary_ = nullptr;
};

}  // namespace proofinfer

#endif
