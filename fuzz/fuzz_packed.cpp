// Opening a packed file: from memory, and mapped from a file without looking at its weights. Input: the file.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

// Written anew for each input; removed at once, but for its place among the open files.
const char *write_file(const uint8_t *data, size_t size) {
  static char path[64];
  static int file = -1;
  if (file < 0) {
    char name[] = "/tmp/proofinfer_fuzz_XXXXXX";
    file = mkstemp(name);
    HOLDS(file >= 0 && unlink(name) == 0);
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  }
  HOLDS(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == ssize_t(size));
  return path;
}

void compute(Case *c, proofinfer_model *model) {
  int64_t vocab_size = 0;
  HOLDS(call(proofinfer_model_get_i64, model, PROOFINFER_MODEL_VOCAB_SIZE, &vocab_size) == PROOFINFER_OK && vocab_size > 0);
  HOLDS(call(proofinfer_options_set_i64, c->options(), PROOFINFER_TEXT("context_length"), int64_t(1)) == PROOFINFER_OK);
  Out<proofinfer_session> made;
  proofinfer_session *session = made.of(call(proofinfer_session_create, model, c->options(), &made.handle));
  HOLDS(session != nullptr);
  const int32_t last = int32_t(vocab_size - 1);
  HOLDS(call(proofinfer_session_append, session, &last, size_t(1), PROOFINFER_LOGITS_LAST, nullptr) == PROOFINFER_OK);
  proofinfer_session_free(session);
  const size_t count = proofinfer_model_tensor_count(model);
  for (size_t i = 0; i < count && i < 400; i++) {
    char name[64];
    size_t needed = 0;
    int64_t offset = 0, bytes = 0, file_bytes = 0;
    HOLDS(call(proofinfer_model_tensor_name, model, i, name, sizeof(name), &needed) == PROOFINFER_OK);
    HOLDS(call(proofinfer_model_tensor_get_i64, model, i, PROOFINFER_TENSOR_FILE_OFFSET, &offset) == PROOFINFER_OK);
    HOLDS(call(proofinfer_model_tensor_get_i64, model, i, PROOFINFER_TENSOR_FILE_BYTES, &bytes) == PROOFINFER_OK);
    HOLDS(call(proofinfer_model_get_i64, model, PROOFINFER_MODEL_FILE_BYTES, &file_bytes) == PROOFINFER_OK);
    HOLDS(offset >= 4096 && bytes > 0 && offset + bytes <= file_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Case c(size);
  Out<proofinfer_model> read, mapped;
  if (read.of(call(proofinfer_model_open_memory, data, size, c.options(), nullptr, &read.handle))) compute(&c, read.handle);
  const char *path = write_file(data, size);
  if (mapped.of(call(proofinfer_model_open, path, std::strlen(path), c.options(), nullptr, &mapped.handle))) {
    c.count_as_loaded();
    compute(&c, mapped.handle);
  }
  HOLDS(mapped.handle || !read.handle);  // what is refused mapped is refused read
  proofinfer_model_free(read.handle);
  proofinfer_model_free(mapped.handle);
  return 0;
}
