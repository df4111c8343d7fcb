// Opening a packed file: from memory, and mapped from a file without looking at its weights. Input: the file.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

// Written anew for each input; in memory, and nowhere but among the open files. Others must not be able to write to it, or it is not mapped.
const char *write_file(const uint8_t *data, size_t size) {
  static char path[64];
  static int file = -1;
  if (file < 0) {
    file = memfd_create("proofinfer_fuzz", 0);
    HOLDS(file >= 0 && fchmod(file, 0600) == 0);
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  }
  HOLDS(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == ssize_t(size));
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Case c(size);
  Out<proofinfer_model> read, mapped;
  if (read.of(call(proofinfer_model_open_memory, data, size, c.options(), nullptr, &read.handle))) check_packed_model(&c, read.handle);
  const char *path = write_file(data, size);
  if (mapped.of(call(proofinfer_model_open, path, std::strlen(path), c.options(), nullptr, &mapped.handle))) {
    c.count_as_loaded();
    check_packed_model(&c, mapped.handle);
  }
  HOLDS(mapped.handle || !read.handle);  // what is refused mapped is refused read
  proofinfer_model_free(read.handle);
  proofinfer_model_free(mapped.handle);
  return 0;
}
