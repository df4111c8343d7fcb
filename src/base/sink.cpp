#include "base/sink.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"

namespace proofinfer {

namespace {

// Longer ones no system takes.
constexpr size_t kMaxPathBytes = size_t(1) << 16;
// Temporary names that are tried.
constexpr unsigned kMostTaken = 1000;

Status fail_write(Failure *failure, const char *path, const char *what, int error_number) {
  char text[128];
  os_error_text(error_number, text, sizeof(text));
  return fail(failure, kIo, "%s: cannot %s: %s", path, what, text);
}

}  // namespace

Sink::~Sink() {
  if (file_ == kNoFile) return;
  os_close_file(file_);
  os_remove_file(temporary_);
}

Status Sink::open(const char *path, size_t path_bytes, Account *account, Failure *failure) {
  if (path_bytes == 0 || path_bytes > kMaxPathBytes || memchr(path, 0, path_bytes))
    return fail(failure, kArgument, "the path to write has %zu bytes; expected 1 to %zu, none of them NUL", path_bytes, kMaxPathBytes);
  constexpr size_t kTemporaryBytes = 64;  // ".proofinfer-<process>-<number>.partial"
  Status status = names_.allocate(account, 2 * path_bytes + 1 + kTemporaryBytes, "path", failure);
  if (status != kOk) return status;
  char *name = names_.data(), *temporary = name + path_bytes + 1;
  memcpy(name, path, path_bytes);
  name[path_bytes] = 0;
  if (!os_may_replace(name))
    return fail(failure, kIo, "%s: is a link, a device, a pipe or a directory; expected a regular file to replace, or nothing", name);
  size_t folder_bytes = path_bytes;
  while (folder_bytes > 0 && name[folder_bytes - 1] != '/') folder_bytes--;
  memcpy(temporary, name, folder_bytes);
  // The name does not grow with the file's, which may be as long as the system allows. A taken one was left by a process that was killed, or is
  // another thread's.
  for (unsigned number = 0;; number++) {
    snprintf(temporary + folder_bytes, kTemporaryBytes, ".proofinfer-%llu-%u.partial", (unsigned long long)os_process_id(), number);
    bool taken = false;
    int error_number = 0;
    if (os_create_file(temporary, &file_, &taken, &error_number)) break;
    file_ = kNoFile;
    if (!taken || number == kMostTaken) return fail_write(failure, temporary, "create", error_number);
  }
  path_ = name;
  temporary_ = temporary;
  return kOk;
}

Status Sink::write(uint64_t offset, const void *from, size_t bytes, Failure *failure) {
  int error_number = 0;
  if (os_write_file(file_, offset, from, bytes, &error_number)) return kOk;
  return fail_write(failure, temporary_, "write", error_number);
}

Status Sink::commit(Failure *failure) {
  int error_number = 0;
  if (!os_finish_file(file_, temporary_, path_, &error_number))
    return fail_write(failure, path_, "give the finished file its name", error_number);
  os_close_file(file_);
  file_ = kNoFile;
  return kOk;
}

}  // namespace proofinfer
