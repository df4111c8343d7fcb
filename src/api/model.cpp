#include "model/model.h"

#include <string.h>

#include "api/options.h"
#include "format/convert.h"

namespace proofinfer {

// Opens a model from a source that was opened by one of the two entry points.
static int32_t load_model(Call *call, Source *source, const proofinfer_options *options, proofinfer_cancel *cancel,
                          proofinfer_model **model) {
  Settings settings;
  Cancel *polled = call->nullable_object<Cancel>(cancel, "cancel");
  if (call->failed() || !read_settings(call, options, &settings)) return call->end();
  Model *loaded = nullptr;
  Status status = Model::load(source, settings, polled, &loaded, call->failure());
  if (status == kOk) *model = reinterpret_cast<proofinfer_model *>(loaded);
  return call->end(status);
}

// Packs in memory: the file is what a loaded model holds.
static Status pack_file(Source *source, const char *to, size_t to_bytes, int32_t group_size, Cancel *cancel, Failure *failure) {
  if (group_size != 0) return fail(failure, kArgument, "group_size is %d; expected 0 for the packed format", group_size);
  Account account(MemoryHooks(), 0);
  ModelFile file;
  Status status = file.open(source, &account, failure);
  if (status == kOk && file.packed()) return fail(failure, kUnsupported, "this is a packed file already");
  if (status == kOk && file.is_gguf())
    return fail(failure, kUnsupported,
                "packed files hold float32 weights and the int8 groups of llama2.c's version 2: a GGUF file cannot be packed. If its "
                "weights are F32, F16 "
                "or BF16, it may be converted to version 1 or 2 first");
  Sink sink;
  if (status == kOk) status = sink.open(to, to_bytes, &account, failure);
  Model *loaded = nullptr;
  if (status == kOk) status = Model::load(source, Settings(), cancel, &loaded, failure);
  if (status != kOk) return status;
  Ref<Model> model(loaded);
  status = model->write_packed(&sink, cancel, failure);
  return status == kOk ? sink.commit(failure) : status;
}

static Status convert_file(Source *source, const char *to, size_t to_bytes, const ConvertTarget &target, Cancel *cancel, Failure *failure) {
  Account account(MemoryHooks(), 0);
  ModelFile file;
  Status status = file.open(source, &account, failure);
  Sink sink;
  if (status == kOk) status = sink.open(to, to_bytes, &account, failure);
  if (status == kOk) status = convert(file, source, target, &sink, &account, cancel, failure);
  return status == kOk ? sink.commit(failure) : status;
}

static Status get_i64(const Model &m, int32_t property, int64_t *value, Failure *failure) {
  const ModelShape &shape = m.file().shape();
  switch (property) {
    case PROOFINFER_MODEL_DIM: *value = static_cast<int64_t>(m.dim()); return kOk;
    case PROOFINFER_MODEL_HIDDEN_DIM: *value = static_cast<int64_t>(m.hidden_dim()); return kOk;
    case PROOFINFER_MODEL_N_LAYERS: *value = static_cast<int64_t>(m.n_layers()); return kOk;
    case PROOFINFER_MODEL_N_HEADS: *value = static_cast<int64_t>(m.n_heads()); return kOk;
    case PROOFINFER_MODEL_N_KV_HEADS: *value = static_cast<int64_t>(m.n_kv_heads()); return kOk;
    case PROOFINFER_MODEL_VOCAB_SIZE: *value = static_cast<int64_t>(m.vocab_size()); return kOk;
    case PROOFINFER_MODEL_SEQ_LEN: *value = static_cast<int64_t>(m.seq_len()); return kOk;
    case PROOFINFER_MODEL_HEAD_SIZE: *value = static_cast<int64_t>(m.head_size()); return kOk;
    case PROOFINFER_MODEL_SHARED_CLASSIFIER: *value = shape.shared_classifier; return kOk;
    case PROOFINFER_MODEL_GROUP_SIZE: *value = static_cast<int64_t>(m.group_size()); return kOk;
    case PROOFINFER_MODEL_FILE_BYTES: *value = static_cast<int64_t>(m.file().file_bytes()); return kOk;
    case PROOFINFER_MODEL_WEIGHT_BYTES: *value = static_cast<int64_t>(m.weight_bytes()); return kOk;
    case PROOFINFER_MODEL_MEMORY_BYTES: *value = static_cast<int64_t>(m.account()->used_bytes()); return kOk;
    case PROOFINFER_MODEL_PARAMETER_COUNT: *value = static_cast<int64_t>(m.file().parameter_count()); return kOk;
    case PROOFINFER_MODEL_IS_MAPPED: *value = m.mapped(); return kOk;
    case PROOFINFER_MODEL_THREADS: *value = static_cast<int64_t>(m.pool()->thread_count()); return kOk;
    default: return fail(failure, kArgument, "property is %d; expected a PROOFINFER_MODEL_ integer property", property);
  }
}

static Status check_tensor(const Model &m, size_t index, Failure *failure) {
  uint64_t count = m.file().tensor_count();
  if (index < count) return kOk;
  return fail(failure, kArgument, "tensor index is %zu; expected 0 to %llu", index, (unsigned long long)count - 1);
}

static Status get_tensor_i64(const Model &m, size_t index, int32_t property, int64_t *value, Failure *failure) {
  Status status = check_tensor(m, index, failure);
  if (status != kOk) return status;
  TensorInfo tensor = m.file().tensor(index);
  switch (property) {
    case PROOFINFER_TENSOR_ROWS: *value = static_cast<int64_t>(tensor.rows); return kOk;
    case PROOFINFER_TENSOR_COLUMNS: *value = static_cast<int64_t>(tensor.columns); return kOk;
    case PROOFINFER_TENSOR_FILE_OFFSET: *value = static_cast<int64_t>(tensor.file_offset); return kOk;
    case PROOFINFER_TENSOR_FILE_BYTES: *value = static_cast<int64_t>(tensor.file_bytes); return kOk;
    case PROOFINFER_TENSOR_IS_QUANTIZED: *value = tensor.quantized; return kOk;
    default: return fail(failure, kArgument, "property is %d; expected a PROOFINFER_TENSOR_ property", property);
  }
}

static Status check_key(const Model &m, size_t index, Failure *failure) {
  size_t count = m.file().metadata().count();
  if (index < count) return kOk;
  if (count == 0) return fail(failure, kArgument, "metadata index is %zu; the file has no metadata", index);
  return fail(failure, kArgument, "metadata index is %zu; expected 0 to %zu", index, count - 1);
}

}  // namespace proofinfer

using namespace proofinfer;

extern "C" {

int32_t proofinfer_model_open(const char *path, size_t path_bytes, const proofinfer_options *options, proofinfer_cancel *cancel,
                              proofinfer_model **model, proofinfer_error **error) {
  Call call(error);
  if (model) *model = nullptr;
  if (!call.need(model, "model") || !call.need(path, "path")) return call.end();
  Source source;
  if (source.open_file(path, path_bytes, call.failure()) != kOk) return call.end();
  return load_model(&call, &source, options, cancel, model);
}

int32_t proofinfer_model_open_memory(const void *data, size_t data_bytes, const proofinfer_options *options, proofinfer_cancel *cancel,
                                     proofinfer_model **model, proofinfer_error **error) {
  Call call(error);
  if (model) *model = nullptr;
  if (!call.need(model, "model") || !call.need_array(data, data_bytes, "data")) return call.end();
  Source source;
  source.open_memory(data, data_bytes);
  return load_model(&call, &source, options, cancel, model);
}

int32_t proofinfer_convert(const char *from, size_t from_bytes, const char *to, size_t to_bytes, int32_t format, int32_t group_size,
                           proofinfer_cancel *cancel, proofinfer_error **error) {
  Call call(error);
  Cancel *polled = call.nullable_object<Cancel>(cancel, "cancel");
  if (call.failed() || !call.need(from, "from") || !call.need(to, "to")) return call.end();
  Source source;
  if (source.open_file(from, from_bytes, call.failure()) != kOk) return call.end();
  if (format == PROOFINFER_FORMAT_PACKED) return call.end(pack_file(&source, to, to_bytes, group_size, polled, call.failure()));
  return call.end(convert_file(&source, to, to_bytes, ConvertTarget{format, group_size}, polled, call.failure()));
}

void proofinfer_model_free(proofinfer_model *model) { free_handle<Model>(model); }

int32_t proofinfer_model_get_i64(const proofinfer_model *model, int32_t property, int64_t *value, proofinfer_error **error) {
  Call call(error);
  if (value) *value = 0;
  const Model *m = call.object<const Model>(model, "model");
  if (!m || !call.need(value, "value")) return call.end();
  return call.end(get_i64(*m, property, value, call.failure()));
}

const char *proofinfer_model_get_text(const proofinfer_model *model, int32_t property) {
  Call call(nullptr);
  const Model *m = call.object<const Model>(model, "model");
  if (!m) return nullptr;
  switch (property) {
    case PROOFINFER_MODEL_FORMAT: return m->file().format_name();
    case PROOFINFER_MODEL_ELEMENT_TYPE: return m->file().element_type_name();
    case PROOFINFER_MODEL_ISA: return m->kernels()->name;
    default: return nullptr;
  }
}

size_t proofinfer_model_tensor_count(const proofinfer_model *model) {
  Call call(nullptr);
  const Model *m = call.object<const Model>(model, "model");
  return m ? static_cast<size_t>(m->file().tensor_count()) : 0;
}

int32_t proofinfer_model_tensor_name(const proofinfer_model *model, size_t index, char *buffer, size_t capacity, size_t *needed,
                                     proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  const Model *m = call.object<const Model>(model, "model");
  if (!m || check_tensor(*m, index, call.failure()) != kOk) return call.end();
  TensorInfo tensor = m->file().tensor(index);
  return call.end(call.put(tensor.name.text, strlen(tensor.name.text), 1, buffer, capacity, needed, "tensor name"));
}

int32_t proofinfer_model_tensor_get_i64(const proofinfer_model *model, size_t index, int32_t property, int64_t *value,
                                        proofinfer_error **error) {
  Call call(error);
  if (value) *value = 0;
  const Model *m = call.object<const Model>(model, "model");
  if (!m || !call.need(value, "value")) return call.end();
  return call.end(get_tensor_i64(*m, index, property, value, call.failure()));
}

const char *proofinfer_model_tensor_type(const proofinfer_model *model, size_t index) {
  Call call(nullptr);
  const Model *m = call.object<const Model>(model, "model");
  return m && index < m->file().tensor_count() ? m->file().tensor(index).type : nullptr;
}

size_t proofinfer_model_metadata_count(const proofinfer_model *model) {
  Call call(nullptr);
  const Model *m = call.object<const Model>(model, "model");
  return m ? m->file().metadata().count() : 0;
}

int32_t proofinfer_model_metadata_key(const proofinfer_model *model, size_t index, char *buffer, size_t capacity, size_t *needed,
                                      proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  const Model *m = call.object<const Model>(model, "model");
  if (!m || check_key(*m, index, call.failure()) != kOk) return call.end();
  const Gguf &gguf = m->file().gguf().gguf();
  const GgufKey &key = gguf.key(index);
  return call.end(call.put(gguf.name(key), key.name_bytes, 1, buffer, capacity, needed, "metadata key"));
}

int32_t proofinfer_model_metadata_text(const proofinfer_model *model, size_t index, char *buffer, size_t capacity, size_t *needed,
                                       proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  const Model *m = call.object<const Model>(model, "model");
  if (!m || check_key(*m, index, call.failure()) != kOk) return call.end();
  const GgufMetadata &metadata = m->file().metadata();
  return call.end(call.put(metadata.value(index), metadata.value_bytes(index), 1, buffer, capacity, needed, "metadata value"));
}

}  // extern "C"
