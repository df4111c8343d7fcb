// proofinfer inspect: what a checkpoint holds, as tables or as JSON.
#include <algorithm>

#include "commands.h"
#include "engine.h"
#include "json.h"
#include "terminal.h"

namespace proofinfer::cli {
namespace {

struct Property {
  int32_t id;
  const char *key;
  const char *label;
};

constexpr Property kShape[] = {
    {PROOFINFER_MODEL_DIM, "dim", "dimension"},
    {PROOFINFER_MODEL_HIDDEN_DIM, "hidden_dim", "hidden dimension"},
    {PROOFINFER_MODEL_N_LAYERS, "n_layers", "layers"},
    {PROOFINFER_MODEL_N_HEADS, "n_heads", "heads"},
    {PROOFINFER_MODEL_N_KV_HEADS, "n_kv_heads", "key and value heads"},
    {PROOFINFER_MODEL_HEAD_SIZE, "head_size", "head size"},
    {PROOFINFER_MODEL_VOCAB_SIZE, "vocab_size", "vocabulary"},
    {PROOFINFER_MODEL_SEQ_LEN, "seq_len", "context"},
    {PROOFINFER_MODEL_GROUP_SIZE, "group_size", "quantization group"},
    {PROOFINFER_MODEL_PARAMETER_COUNT, "parameter_count", "parameters"},
};

constexpr Property kSizes[] = {
    {PROOFINFER_MODEL_FILE_BYTES, "file_bytes", "file"},
    {PROOFINFER_MODEL_WEIGHT_BYTES, "weight_bytes", "weights in memory"},
    {PROOFINFER_MODEL_MEMORY_BYTES, "memory_bytes", "model in memory"},
};

struct Tensor {
  std::string name;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t file_offset = 0;
  int64_t file_bytes = 0;
  bool is_quantized = false;
  std::string type;
};

// A key of the file's metadata.
struct Entry {
  std::string key, value;
};

struct SessionSize {
  size_t context_length = 0;
  uint64_t memory_bytes = 0;
};

int64_t tensor_property(const proofinfer_model *model, size_t index, int32_t property) {
  int64_t value = 0;
  call(proofinfer_model_tensor_get_i64, model, index, property, &value);
  return value;
}

std::vector<Tensor> read_tensors(const proofinfer_model *model) {
  std::vector<Tensor> tensors(proofinfer_model_tensor_count(model));
  for (size_t i = 0; i < tensors.size(); i++) {
    read_text(tensors[i].name, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
      return proofinfer_model_tensor_name(model, i, buffer, capacity, needed, error);
    });
    tensors[i].rows = tensor_property(model, i, PROOFINFER_TENSOR_ROWS);
    tensors[i].columns = tensor_property(model, i, PROOFINFER_TENSOR_COLUMNS);
    tensors[i].file_offset = tensor_property(model, i, PROOFINFER_TENSOR_FILE_OFFSET);
    tensors[i].file_bytes = tensor_property(model, i, PROOFINFER_TENSOR_FILE_BYTES);
    tensors[i].is_quantized = tensor_property(model, i, PROOFINFER_TENSOR_IS_QUANTIZED) != 0;
    if (const char *type = proofinfer_model_tensor_type(model, i)) tensors[i].type = type;
  }
  return tensors;
}

std::vector<Entry> read_metadata(const proofinfer_model *model) {
  std::vector<Entry> entries(proofinfer_model_metadata_count(model));
  for (size_t i = 0; i < entries.size(); i++) {
    read_text(entries[i].key, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
      return proofinfer_model_metadata_key(model, i, buffer, capacity, needed, error);
    });
    read_text(entries[i].value, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
      return proofinfer_model_metadata_text(model, i, buffer, capacity, needed, error);
    });
  }
  return entries;
}

// What one sequence costs at the library's default context.
SessionSize measure_session(const proofinfer_model *model, const proofinfer_options *options) {
  const Session session = make<Session>(proofinfer_session_create, model, options);
  return {proofinfer_session_context_length(session.get()), proofinfer_session_memory_bytes(session.get())};
}

std::string padded(const std::string &text, size_t width, bool right) {
  const std::string spaces(width - std::min(width, text.size()), ' ');
  return right ? spaces + text : text + spaces;
}

std::string row(const std::string &label, const std::string &value) { return padded(label, 22, false) + value + "\n"; }

std::string shape_text(const Tensor &tensor) {
  return tensor.rows == 1 ? std::to_string(tensor.columns) : std::to_string(tensor.rows) + " x " + std::to_string(tensor.columns);
}

std::string tensor_table(const std::vector<Tensor> &tensors) {
  size_t name_width = 6;
  for (const Tensor &tensor : tensors) name_width = std::max(name_width, tensor.name.size());
  const auto line = [&](const std::string &name, const std::string &type, const std::string &shape, const std::string &offset,
                        const std::string &bytes) {
    return padded(name, name_width, false) + padded(type, 6, true) + padded(shape, 17, true) + padded(offset, 16, true) +
           padded(bytes, 16, true) + "\n";
  };
  std::string table = line("tensor", "type", "rows x columns", "file offset", "file bytes");
  for (const Tensor &tensor : tensors)
    table += line(tensor.name, tensor.type, shape_text(tensor), std::to_string(tensor.file_offset), std::to_string(tensor.file_bytes));
  return table;
}

// Values on one line each, nothing that a terminal would obey, the beginning of long ones.
std::string shown(const std::string &value) {
  constexpr size_t kMost = 100, kCharacterMost = 4;
  std::string text;
  for (const char c : value) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (text.size() >= kMost && ((byte & 0xC0) != 0x80 || text.size() >= kMost + kCharacterMost - 1)) return text + " ...";
    if (c == '\n')
      text += "\\n";
    else
      text += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return text;
}

std::string metadata_table(const std::vector<Entry> &entries) {
  if (entries.empty()) return "";
  size_t width = 0;
  for (const Entry &entry : entries) width = std::max(width, shown(entry.key).size());
  std::string table;
  for (const Entry &entry : entries) table += padded(shown(entry.key), width + 2, false) + shown(entry.value) + "\n";
  return table + "\n";
}

std::string as_tables(const LoadedModel &model, const SessionSize &session) {
  std::string text = row("file", model.path);
  text += row("format", model.text(PROOFINFER_MODEL_FORMAT));
  text += row("element type", model.text(PROOFINFER_MODEL_ELEMENT_TYPE));
  for (const Property &property : kShape) text += row(property.label, std::to_string(model.get(property.id)));
  text += row("weights are", model.get(PROOFINFER_MODEL_IS_MAPPED) ? "mapped" : "in memory");
  text += row("classifier", model.get(PROOFINFER_MODEL_SHARED_CLASSIFIER) ? "shared with the embedding" : "has weights of its own");
  for (const Property &property : kSizes) {
    const int64_t bytes = model.get(property.id);
    text += row(property.label, std::to_string(bytes) + " bytes (" + bytes_text(static_cast<double>(bytes)) + ")");
  }
  text += row("one session", std::to_string(session.memory_bytes) + " bytes (" + bytes_text(static_cast<double>(session.memory_bytes)) +
                                 ") for " + std::to_string(session.context_length) + " positions");
  return text + "\n" + metadata_table(read_metadata(model.model.get())) + tensor_table(read_tensors(model.model.get()));
}

void write_tensor(JsonWriter &json, const Tensor &tensor) {
  json.open_object();
  json.text("name", tensor.name);
  json.text("type", tensor.type);
  json.integer("rows", tensor.rows);
  json.integer("columns", tensor.columns);
  json.integer("file_offset", tensor.file_offset);
  json.integer("file_bytes", tensor.file_bytes);
  json.boolean("is_quantized", tensor.is_quantized);
  json.close_object();
}

void write_entry(JsonWriter &json, const Entry &entry) {
  json.open_object();
  json.text("key", entry.key);
  json.text("value", entry.value);
  json.close_object();
}

std::string as_json(const LoadedModel &model, const SessionSize &session) {
  JsonWriter json;
  json.open_object();
  json.text("file", model.path);
  json.text("format", model.text(PROOFINFER_MODEL_FORMAT));
  json.text("element_type", model.text(PROOFINFER_MODEL_ELEMENT_TYPE));
  for (const Property &property : kShape) json.integer(property.key, model.get(property.id));
  json.boolean("is_mapped", model.get(PROOFINFER_MODEL_IS_MAPPED) != 0);
  json.boolean("shared_classifier", model.get(PROOFINFER_MODEL_SHARED_CLASSIFIER) != 0);
  for (const Property &property : kSizes) json.integer(property.key, model.get(property.id));
  json.open_object("session");
  json.integer("context_length", static_cast<int64_t>(session.context_length));
  json.integer("memory_bytes", static_cast<int64_t>(session.memory_bytes));
  json.close_object();
  const std::vector<Entry> metadata = read_metadata(model.model.get());
  json.open_array("metadata");
  for (const Entry &entry : metadata) write_entry(json, entry);
  json.close_array();
  json.open_array("tensors");
  for (const Tensor &tensor : read_tensors(model.model.get())) write_tensor(json, tensor);
  json.close_array();
  json.close_object();
  return json.finish();
}

}  // namespace

int run_inspect(const Arguments &arguments) {
  const std::string path = model_path(arguments);
  const Options options = read_options(arguments);
  set_context_length(options.get(), arguments.integer("context", 0, 1, INT64_MAX));
  if (arguments.has("verify")) call(proofinfer_options_set_i64, options.get(), PROOFINFER_TEXT("verify"), 1);
  const LoadedModel model = load_model(path, options.get(), arguments.has("quiet"));
  const SessionSize session = measure_session(model.model.get(), options.get());
  print(arguments.has("json") ? as_json(model, session) : as_tables(model, session));
  return kExitOk;
}

}  // namespace proofinfer::cli
