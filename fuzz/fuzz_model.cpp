// Opening a checkpoint: all formats and their detection. Input: the file.
#include "harness.h"

using namespace proofinfer_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Case c(size);
  Out<proofinfer_model> made;
  proofinfer_model *model = made.of(call(proofinfer_model_open_memory, data, size, c.options(), nullptr, &made.handle));
  if (!model) return 0;
  c.count_as_loaded();
  check_model(&c, model, size, 2);
  proofinfer_model_free(model);
  return 0;
}
