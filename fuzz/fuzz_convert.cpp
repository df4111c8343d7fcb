// Converting a checkpoint from a file to a file. Input: u8 format, i32 group size, then the file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

// Two names of this process in a folder for temporary files, removed at the end.
struct Paths {
  char from[200], to[200];
  Paths() {
    const char *folder = std::getenv("TMPDIR");
    if (!folder) folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";  // in memory where there is such a folder
    std::snprintf(from, sizeof(from), "%s/proofinfer-fuzz-%d-from", folder, int(getpid()));
    std::snprintf(to, sizeof(to), "%s/proofinfer-fuzz-%d-to", folder, int(getpid()));
  }
  ~Paths() {
    unlink(from);
    unlink(to);
  }
};

void write_file(const char *path, const uint8_t *data, size_t size) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  HOLDS(file >= 0 && write(file, data, size) == ssize_t(size));
  close(file);
}

void check_written(Case *c, const char *path, int32_t format) {
  static const char *const kNames[] = {"llama2.c legacy", "llama2.c version 1", "llama2.c version 2", "proofinfer packed"};
  HOLDS(format >= 0 && format < 4);
  struct stat information;
  HOLDS(stat(path, &information) == 0);
  Out<proofinfer_model> made;
  proofinfer_model *model = made.of(call(proofinfer_model_open, path, std::strlen(path), c->options(), nullptr, &made.handle));
  HOLDS(model != nullptr && std::strcmp(proofinfer_model_get_text(model, PROOFINFER_MODEL_FORMAT), kNames[format]) == 0);
  if (format == PROOFINFER_FORMAT_PACKED)
    check_packed_model(c, model);
  else
    check_model(c, model, size_t(information.st_size), 1);
  proofinfer_model_free(model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Paths paths;
  // The result may be many times as large as the input: float32 weights of int8 ones, and the legacy format's tables.
  Case c(size + (1 << 20));
  Reader in(data, size);
  const uint8_t choice = in.u8();
  const int32_t format = choice < 250 ? choice % 4 : choice < 252 ? choice - 252 : choice - 248;
  const int32_t group_size = in.i32();
  write_file(paths.from, in.data(), in.left());
  Out<proofinfer_model> made;
  proofinfer_model *model = made.of(call(proofinfer_model_open, paths.from, std::strlen(paths.from), c.options(), nullptr, &made.handle));
  if (model) {
    int64_t seq_len = 0, dim = 0;
    HOLDS(call(proofinfer_model_get_i64, model, PROOFINFER_MODEL_SEQ_LEN, &seq_len) == PROOFINFER_OK);
    HOLDS(call(proofinfer_model_get_i64, model, PROOFINFER_MODEL_DIM, &dim) == PROOFINFER_OK);
    proofinfer_model_free(model);
    if (seq_len * dim > 1 << 18) return 0;  // a header may ask for large tables
  }
  const int32_t status =
      call(proofinfer_convert, paths.from, std::strlen(paths.from), paths.to, std::strlen(paths.to), format, group_size, nullptr);
  if (status != PROOFINFER_OK) {
    HOLDS(access(paths.to, F_OK) != 0);
    return 0;
  }
  HOLDS(model != nullptr);
  c.count_as_loaded();
  check_written(&c, paths.to, format);
  unlink(paths.to);
  return 0;
}
