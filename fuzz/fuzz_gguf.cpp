// Opening a GGUF model and evaluating tokens: keys, tensors, every element type. Input: the file.
#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

int64_t number(proofinfer_model *model, int32_t property) {
  int64_t value = 0;
  HOLDS(call(proofinfer_model_get_i64, model, property, &value) == PROOFINFER_OK);
  return value;
}

int64_t tensor_number(proofinfer_model *model, size_t index, int32_t property) {
  int64_t value = 0;
  HOLDS(call(proofinfer_model_tensor_get_i64, model, index, property, &value) == PROOFINFER_OK);
  return value;
}

// Every tensor has a name and a type, and lies inside the file.
void check_tensors(proofinfer_model *model, size_t file_bytes) {
  int64_t weights = 0;
  for (size_t i = 0; i < proofinfer_model_tensor_count(model); i++) {
    char name[64];
    size_t needed = 0;
    HOLDS(call(proofinfer_model_tensor_name, model, i, name, sizeof(name), &needed) == PROOFINFER_OK && needed > 0);
    const char *type = proofinfer_model_tensor_type(model, i);
    HOLDS(type != nullptr && type[0] != 0);
    const int64_t begin = tensor_number(model, i, PROOFINFER_TENSOR_FILE_OFFSET),
                  bytes = tensor_number(model, i, PROOFINFER_TENSOR_FILE_BYTES);
    HOLDS(begin > 0 && begin < int64_t(file_bytes) && bytes > 0 && bytes <= int64_t(file_bytes) - begin);
    weights += tensor_number(model, i, PROOFINFER_TENSOR_ROWS) * tensor_number(model, i, PROOFINFER_TENSOR_COLUMNS);
  }
  HOLDS(number(model, PROOFINFER_MODEL_PARAMETER_COUNT) <= weights && weights < 2 * int64_t(file_bytes));
}

void check_metadata(proofinfer_model *model, size_t file_bytes) {
  size_t all = 0;
  std::vector<char> buffer(16384);
  const size_t count = proofinfer_model_metadata_count(model);
  for (size_t i = 0; i < count; i++) {
    size_t needed = 0;
    HOLDS(call(proofinfer_model_metadata_key, model, i, buffer.data(), size_t(0), &needed) == PROOFINFER_E_BUFFER && needed > 0);
    HOLDS(call(proofinfer_model_metadata_text, model, i, buffer.data(), buffer.size(), &needed) == PROOFINFER_OK);
    all += needed;
  }
  HOLDS(count > 0 && all <= 12 * file_bytes);
  size_t needed = 0;
  HOLDS(call(proofinfer_model_metadata_key, model, count, buffer.data(), buffer.size(), &needed) == PROOFINFER_E_ARGUMENT);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Case c(size);
  if (size < 4 || std::memcmp(data, "GGUF", 4) != 0) return 0;  // another target's
  Out<proofinfer_model> made;
  proofinfer_model *model = made.of(call(proofinfer_model_open_memory, data, size, c.options(), nullptr, &made.handle));
  if (!model) return 0;
  c.count_as_loaded();
  HOLDS(number(model, PROOFINFER_MODEL_FILE_BYTES) == int64_t(size));
  HOLDS(number(model, PROOFINFER_MODEL_WEIGHT_BYTES) <= number(model, PROOFINFER_MODEL_MEMORY_BYTES));
  check_tensors(model, size);
  check_metadata(model, size);
  check_evaluation(&c, model, 2);
  proofinfer_model_free(model);
  return 0;
}
