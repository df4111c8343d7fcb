#include "format/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "format/recognize.h"

namespace proofinfer {

namespace {

// As much as recognising a wrong file needs.
constexpr size_t kFirstBytes = 256;

// Names of the kinds, as llama2.c has them; with_layer: one tensor a layer.
struct KindName {
  const char *name;
  bool with_layer;
};
constexpr KindName kKindNames[PI_TENSOR_KINDS] = {
    {"token_embedding", false}, {"attention_norm", true}, {"wq", true}, {"wk", true}, {"wv", true}, {"wo", true},       {"ffn_norm", true},
    {"w1", true},               {"w2", true},             {"w3", true}, {"final_norm", false}, {"rope_tables", false}, {"classifier", false},
};

void tensor_name(int kind, uint64_t layer, char *name) {
  if (kKindNames[kind].with_layer)
    snprintf(name, TensorInfo::kNameCapacity, "layers.%llu.%s", (unsigned long long)layer, kKindNames[kind].name);
  else
    snprintf(name, TensorInfo::kNameCapacity, "%s", kKindNames[kind].name);
}

pi_checkpoint_header load_header(const unsigned char *bytes) {
  pi_checkpoint_header h;
  h.dim = load_i32(bytes);
  h.hidden_dim = load_i32(bytes + 4);
  h.n_layers = load_i32(bytes + 8);
  h.n_heads = load_i32(bytes + 12);
  h.n_kv_heads = load_i32(bytes + 16);
  h.vocab_size = load_i32(bytes + 20);
  h.seq_len = load_i32(bytes + 24);
  return h;
}

bool plan_fits(const pi_checkpoint_header &header, uint64_t size_bytes) {
  pi_checkpoint_layout layout;
  int kind = 0;
  return pi_checkpoint_plan(&header, &layout, &kind) == PI_LAYOUT_OK && layout.file_bytes == size_bytes;
}

// The same header from a machine of the other byte order?
bool is_byte_swapped(const unsigned char *bytes, uint64_t size_bytes) {
  unsigned char swapped[PI_LEGACY_HEADER_BYTES];
  for (size_t i = 0; i < PI_LEGACY_HEADER_BYTES; i++) swapped[i] = bytes[i / 4 * 4 + 3 - i % 4];
  return plan_fits(load_header(swapped), size_bytes);
}

Status fail_field(Failure *failure, const char *field, int offset, int32_t found, const char *expected) {
  return fail(failure, kFormat, "legacy checkpoint header: %s at offset %d is %d; expected %s", field, offset, found, expected);
}

Status fail_header(Failure *failure, const pi_checkpoint_header &h, pi_layout_result result, int kind) {
  constexpr const char *kPositive = "at least 1";
  switch (result) {
    case PI_LAYOUT_DIM: return fail_field(failure, "dim", 0, h.dim, kPositive);
    case PI_LAYOUT_HIDDEN_DIM: return fail_field(failure, "hidden_dim", 4, h.hidden_dim, kPositive);
    case PI_LAYOUT_N_LAYERS: return fail_field(failure, "n_layers", 8, h.n_layers, kPositive);
    case PI_LAYOUT_N_HEADS: return fail_field(failure, "n_heads", 12, h.n_heads, kPositive);
    case PI_LAYOUT_N_KV_HEADS: return fail_field(failure, "n_kv_heads", 16, h.n_kv_heads, kPositive);
    case PI_LAYOUT_VOCAB_SIZE:
      return fail_field(failure, "vocab_size", 20, h.vocab_size, "a positive number, or a negative one for a separate classifier");
    case PI_LAYOUT_SEQ_LEN: return fail_field(failure, "seq_len", 24, h.seq_len, kPositive);
    case PI_LAYOUT_HEADS_DIVIDE_DIM:
      return fail(failure, kFormat, "legacy checkpoint header: n_heads at offset 12 is %d; expected a divisor of dim, which is %d", h.n_heads,
                  h.dim);
    case PI_LAYOUT_KV_HEADS_DIVIDE:
      return fail(failure, kFormat, "legacy checkpoint header: n_kv_heads at offset 16 is %d; expected a divisor of n_heads, which is %d",
                  h.n_kv_heads, h.n_heads);
    case PI_LAYOUT_HEAD_SIZE_EVEN:
      return fail(failure, kFormat, "legacy checkpoint header: dim / n_heads is %d / %d = %d; expected an even head size", h.dim, h.n_heads,
                  h.dim / h.n_heads);
    default:
      return fail(failure, kFormat, "legacy checkpoint header: the sizes up to tensor %s exceed 2^63 bytes (dim %d, hidden_dim %d, "
                  "n_layers %d, vocab_size %d, seq_len %d)", kKindNames[kind].name, h.dim, h.hidden_dim, h.n_layers, h.vocab_size, h.seq_len);
  }
}

}  // namespace

// Which tensor the file's end cuts, and both sizes.
Status Checkpoint::check_size(uint64_t size_bytes, Failure *failure) const {
  if (size_bytes == layout_.file_bytes) return kOk;
  if (size_bytes > layout_.file_bytes)
    return fail(failure, kFormat, "legacy checkpoint: expected exactly %llu bytes by its header, found %llu: %llu bytes follow the last tensor",
                (unsigned long long)layout_.file_bytes, (unsigned long long)size_bytes,
                (unsigned long long)(size_bytes - layout_.file_bytes));
  int kind = pi_checkpoint_first_missing(&layout_, size_bytes);
  const pi_tensor_span &span = layout_.spans[kind];
  uint64_t layer = size_bytes > span.offset ? (size_bytes - span.offset) / span.tensor_bytes : 0;
  uint64_t begin = span.offset + layer * span.tensor_bytes;
  char name[TensorInfo::kNameCapacity];
  tensor_name(kind, layer, name);
  return fail(failure, kTruncated,
              "legacy checkpoint: expected %llu bytes by its header, found %llu: tensor %s at offset %llu needs %llu bytes and %llu are there",
              (unsigned long long)layout_.file_bytes, (unsigned long long)size_bytes, name, (unsigned long long)begin,
              (unsigned long long)span.tensor_bytes, (unsigned long long)(size_bytes > begin ? size_bytes - begin : 0));
}

Status Checkpoint::open(Source *source, Failure *failure) {
  uint64_t size_bytes = source->size_bytes();
  if (size_bytes == 0) return fail(failure, kUnrecognized, "checkpoint: the file is empty");
  unsigned char first[kFirstBytes];
  size_t first_count = size_bytes < kFirstBytes ? static_cast<size_t>(size_bytes) : kFirstBytes;
  Status status = source->read(0, first, first_count, "checkpoint header", failure);
  if (status != kOk) return status;
  bool is_model = false;
  const char *other = recognize(first, first_count, &is_model);
  bool has_header = first_count >= PI_LEGACY_HEADER_BYTES;
  pi_checkpoint_header header = {};
  if (has_header) header = load_header(first);
  // A true legacy header can begin with bytes that spell a magic; the size formula decides.
  if (other && !(has_header && plan_fits(header, size_bytes)))
    return fail(failure, is_model ? kUnsupported : kUnrecognized, "checkpoint: this is %s; expected a llama2.c legacy checkpoint", other);
  if (!has_header)
    return fail(failure, kTruncated, "legacy checkpoint: the header (seven int32) needs %d bytes; found %zu", PI_LEGACY_HEADER_BYTES,
                first_count);
  int kind = 0;
  pi_layout_result result = pi_checkpoint_plan(&header, &layout_, &kind);
  bool fits = result == PI_LAYOUT_OK && layout_.file_bytes == size_bytes;
  if (!fits && is_byte_swapped(first, size_bytes))
    return fail(failure, kUnrecognized, "checkpoint: this is a legacy checkpoint in the other byte order; expected little-endian");
  if (result != PI_LAYOUT_OK) return fail_header(failure, header, result, kind);
  return check_size(size_bytes, failure);
}

uint64_t Checkpoint::tensor_count() const {
  uint64_t count = 0;
  for (const pi_tensor_span &span : layout_.spans) count += span.tensors;
  return count;
}

uint64_t Checkpoint::parameter_count() const {
  uint64_t count = 0;
  for (int kind = 0; kind < PI_TENSOR_KINDS; kind++)
    if (kind != PI_ROPE_TABLES) count += layout_.spans[kind].tensors * layout_.spans[kind].rows * layout_.spans[kind].columns;
  return count;
}

TensorInfo Checkpoint::tensor(uint64_t index) const {
  int kind = 0;
  while (index >= layout_.spans[kind].tensors) index -= layout_.spans[kind++].tensors;
  const pi_tensor_span &span = layout_.spans[kind];
  TensorInfo info;
  tensor_name(kind, index, info.name);
  info.rows = span.rows;
  info.columns = span.columns;
  info.file_offset = span.offset + index * span.tensor_bytes;
  info.file_bytes = span.tensor_bytes;
  return info;
}

Status Checkpoint::read_rows(Source *source, int kind, uint64_t index, uint64_t row, uint64_t row_count, float *to, Failure *failure) const {
  const pi_tensor_span &span = layout_.spans[kind];
  uint64_t row_bytes = span.columns * sizeof(float);
  uint64_t offset = span.offset + index * span.tensor_bytes + row * row_bytes;
  Status status = source->read(offset, to, static_cast<size_t>(row_count * row_bytes), kKindNames[kind].name, failure);
  if (status == kOk) to_host_f32(to, static_cast<size_t>(row_count * span.columns));
  return status;
}

}  // namespace proofinfer
