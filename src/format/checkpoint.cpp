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
    {"token_embedding", false},
    {"attention_norm", true},
    {"wq", true},
    {"wk", true},
    {"wv", true},
    {"wo", true},
    {"ffn_norm", true},
    {"w1", true},
    {"w2", true},
    {"w3", true},
    {"final_norm", false},
    {"rope_tables", false},
    {"classifier", false},
};

// Where the fields of a header stand.
struct HeaderFields {
  const char *format;  // as messages call it
  int shape;           // offset of the first of the seven int32
  int shared, group;   // offsets, where there are such fields
};
constexpr HeaderFields kHeaderFields[] = {
    {"legacy checkpoint", 0, 0, 0},
    {"version 1 checkpoint", 8, 36, 0},
    {"version 2 checkpoint", 8, 36, 37},
    {"packed file", 24, 52, 56},
};
constexpr int32_t kPackedFields = 3;

constexpr uint32_t kVersionMagic = 0x616b3432;  // "ak42" as a big-endian number

pi_checkpoint_header load_header(const unsigned char *bytes, int32_t format) {
  const HeaderFields &fields = kHeaderFields[format];
  const unsigned char *shape = bytes + fields.shape;
  pi_checkpoint_header h;
  h.format = format;
  h.dim = load_i32(shape);
  h.hidden_dim = load_i32(shape + 4);
  h.n_layers = load_i32(shape + 8);
  h.n_heads = load_i32(shape + 12);
  h.n_kv_heads = load_i32(shape + 16);
  h.vocab_size = load_i32(shape + 20);
  h.seq_len = load_i32(shape + 24);
  h.shared_classifier = fields.shared ? bytes[fields.shared] : 0;
  h.group_size = fields.group ? load_i32(bytes + fields.group) : 0;
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
  return plan_fits(load_header(swapped, PI_FORMAT_LEGACY), size_bytes);
}

// The failure for one field of the shape: its place among the seven int32, its name, what was found and what was expected.
Status fail_field(Failure *failure, int32_t format, int place, const char *field, int32_t found, const char *expected) {
  const HeaderFields &fields = kHeaderFields[format];
  return fail(failure, kFormat, "%s header: %s at offset %d is %d; expected %s", fields.format, field, fields.shape + 4 * place, found,
              expected);
}

// The failure for a field that must divide another.
Status fail_divisor(Failure *failure, int32_t format, int offset, const char *field, int32_t found, const char *whole,
                    int32_t whole_value) {
  return fail(failure, kFormat, "%s header: %s at offset %d is %d; expected a divisor of %s, which is %d", kHeaderFields[format].format,
              field, offset, found, whole, whole_value);
}

Status fail_version_field(Failure *failure, const pi_checkpoint_header &h, pi_layout_result result) {
  const HeaderFields &fields = kHeaderFields[h.format];
  switch (result) {
    case PI_LAYOUT_SHARED_FLAG:
      return fail(failure, kFormat, "%s header: the shared-classifier flag at offset %d is %d; expected 0 or 1", fields.format,
                  fields.shared, h.shared_classifier);
    case PI_LAYOUT_GROUP_SIZE:
      return fail(failure, kFormat, "%s header: group_size at offset %d is %d; expected 1 to %d", fields.format, fields.group, h.group_size,
                  PI_MAX_GROUP_SIZE);
    case PI_LAYOUT_GROUP_DIVIDES_DIM: return fail_divisor(failure, h.format, fields.group, "group_size", h.group_size, "dim", h.dim);
    default: return fail_divisor(failure, h.format, fields.group, "group_size", h.group_size, "hidden_dim", h.hidden_dim);
  }
}

Status fail_header(Failure *failure, const pi_checkpoint_header &h, pi_layout_result result, int kind) {
  constexpr const char *kPositive = "at least 1";
  const HeaderFields &fields = kHeaderFields[h.format];
  switch (result) {
    case PI_LAYOUT_DIM: return fail_field(failure, h.format, 0, "dim", h.dim, kPositive);
    case PI_LAYOUT_HIDDEN_DIM: return fail_field(failure, h.format, 1, "hidden_dim", h.hidden_dim, kPositive);
    case PI_LAYOUT_N_LAYERS: return fail_field(failure, h.format, 2, "n_layers", h.n_layers, kPositive);
    case PI_LAYOUT_N_HEADS: return fail_field(failure, h.format, 3, "n_heads", h.n_heads, kPositive);
    case PI_LAYOUT_N_KV_HEADS: return fail_field(failure, h.format, 4, "n_kv_heads", h.n_kv_heads, kPositive);
    case PI_LAYOUT_VOCAB_SIZE:
      return fail_field(failure, h.format, 5, "vocab_size", h.vocab_size,
                        h.format == PI_FORMAT_LEGACY ? "a positive number, or a negative one for a separate classifier" : kPositive);
    case PI_LAYOUT_SEQ_LEN: return fail_field(failure, h.format, 6, "seq_len", h.seq_len, kPositive);
    case PI_LAYOUT_HEADS_DIVIDE_DIM: return fail_divisor(failure, h.format, fields.shape + 12, "n_heads", h.n_heads, "dim", h.dim);
    case PI_LAYOUT_KV_HEADS_DIVIDE:
      return fail_divisor(failure, h.format, fields.shape + 16, "n_kv_heads", h.n_kv_heads, "n_heads", h.n_heads);
    case PI_LAYOUT_HEAD_SIZE_EVEN:
      return fail(failure, kFormat, "%s header: dim / n_heads is %d / %d = %d; expected an even head size", fields.format, h.dim, h.n_heads,
                  h.dim / h.n_heads);
    case PI_LAYOUT_OVERFLOW:
      return fail(failure, kFormat,
                  "%s header: the sizes up to tensor %s exceed 2^63 bytes (dim %d, hidden_dim %d, n_layers %d, vocab_size %d, seq_len %d)",
                  fields.format, kKindNames[kind].name, h.dim, h.hidden_dim, h.n_layers, h.vocab_size, h.seq_len);
    default: return fail_version_field(failure, h, result);
  }
}

}  // namespace

// Which tensor the file's end cuts, and both sizes.
Status Checkpoint::check_size(uint64_t size_bytes, Failure *failure) const {
  const char *format = kHeaderFields[layout_.format].format;
  if (size_bytes == layout_.file_bytes) return kOk;
  if (size_bytes > layout_.file_bytes)
    return fail(failure, kFormat, "%s: expected exactly %llu bytes by its header, found %llu: %llu bytes follow the last tensor", format,
                (unsigned long long)layout_.file_bytes, (unsigned long long)size_bytes,
                (unsigned long long)(size_bytes - layout_.file_bytes));
  int kind = pi_checkpoint_first_missing(&layout_, size_bytes);
  const pi_tensor_span &span = layout_.spans[kind];
  uint64_t layer = size_bytes > span.offset ? (size_bytes - span.offset) / span.tensor_bytes : 0;
  uint64_t begin = span.offset + layer * span.tensor_bytes;
  return fail(failure, kTruncated,
              "%s: expected %llu bytes by its header, found %llu: tensor %s at offset %llu needs %llu bytes and %llu are there", format,
              (unsigned long long)layout_.file_bytes, (unsigned long long)size_bytes, kind_name(kind, layer).text,
              (unsigned long long)begin, (unsigned long long)span.tensor_bytes,
              (unsigned long long)(size_bytes > begin ? size_bytes - begin : 0));
}

// The format that the first bytes tell, or a failure. Legacy is what is left when nothing else is recognised.
static Status detect(const unsigned char *first, size_t count, uint64_t size_bytes, int32_t *format, Failure *failure) {
  *format = PI_FORMAT_LEGACY;
  if (count >= 4 && load_u32(first) == kVersionMagic) {
    if (size_bytes < PI_VERSION_HEADER_BYTES)
      return fail(failure, kTruncated, "versioned checkpoint: the header needs %d bytes; found %llu", PI_VERSION_HEADER_BYTES,
                  (unsigned long long)size_bytes);
    *format = load_i32(first + 4);
    if (*format == PI_FORMAT_V1 || *format == PI_FORMAT_V2) return kOk;
    return fail(failure, kUnsupported, "versioned checkpoint header: version at offset 4 is %d; expected 1 or 2", *format);
  }
  // A true legacy header could begin with bytes that spell a short magic; the size formula decides.
  if (count >= PI_LEGACY_HEADER_BYTES && plan_fits(load_header(first, PI_FORMAT_LEGACY), size_bytes)) return kOk;
  bool is_model = false;
  const char *other = recognize(first, count, &is_model);
  if (other) return fail(failure, is_model ? kUnsupported : kUnrecognized, "checkpoint: this is %s; expected a llama2.c checkpoint", other);
  if (count < PI_LEGACY_HEADER_BYTES)
    return fail(failure, kTruncated, "legacy checkpoint: the header (seven int32) needs %d bytes; found %zu", PI_LEGACY_HEADER_BYTES,
                count);
  if (is_byte_swapped(first, size_bytes))
    return fail(failure, kUnrecognized, "checkpoint: this is a legacy checkpoint in the other byte order; expected little-endian");
  return kOk;
}

Status Checkpoint::open(Source *source, Failure *failure) {
  uint64_t size_bytes = source->size_bytes();
  if (size_bytes == 0) return fail(failure, kUnrecognized, "checkpoint: the file is empty");
  unsigned char first[kFirstBytes];
  size_t first_count = size_bytes < kFirstBytes ? static_cast<size_t>(size_bytes) : kFirstBytes;
  int32_t format = PI_FORMAT_LEGACY;
  Status status = source->read(0, first, first_count, "checkpoint header", failure);
  if (status == kOk && is_packed(first, first_count)) return open_packed(source, failure);
  if (status == kOk) status = detect(first, first_count, size_bytes, &format, failure);
  if (status != kOk) return status;
  pi_checkpoint_header header = load_header(first, format);
  int kind = 0;
  pi_layout_result result = pi_checkpoint_plan(&header, &layout_, &kind);
  if (result != PI_LAYOUT_OK) return fail_header(failure, header, result, kind);
  return check_size(size_bytes, failure);
}

Status Checkpoint::open_packed(Source *source, Failure *failure) {
  PackedHeader header;
  Status status = read_packed_header(source, &header, failure);
  if (status != kOk) return status;
  int kind = 0;
  pi_layout_result result = pi_checkpoint_plan(&header.shape, &layout_, &kind);
  header.shape.format = kPackedFields;  // for what messages say
  if (result != PI_LAYOUT_OK) return fail_header(failure, header.shape, result, kind);
  if (!packed_plan_.plan(layout_)) return fail_header(failure, header.shape, PI_LAYOUT_OVERFLOW, PI_CLASSIFIER);
  packed_ = true;
  packed_fingerprint_ = header.fingerprint;
  uint64_t expected = packed_plan_.file_bytes, found = source->size_bytes();
  if (header.file_bytes != expected)
    return fail(failure, kFormat, "packed file header: the size at offset 16 is %llu; by the shape it is %llu",
                (unsigned long long)header.file_bytes, (unsigned long long)expected);
  if (found == expected) return kOk;
  return fail(failure, found < expected ? kTruncated : kFormat, "packed file: expected exactly %llu bytes by its header, found %llu",
              (unsigned long long)expected, (unsigned long long)found);
}

// The norms, then for each layer qkv, o, w13 and w2, then embedding and classifier.
TensorInfo Checkpoint::packed_tensor(uint64_t index) const {
  const pi_checkpoint_layout &l = layout_;
  const PackedPlan &p = packed_plan_;
  uint64_t norms = 2 * l.n_layers + 1;
  TensorInfo info{{}, 1, l.dim, kPackedHeaderBytes + index * l.dim * sizeof(float), l.dim * sizeof(float), "f32", false};
  if (index < norms - 1) return info.name = kind_name(index % 2 ? PI_FFN_NORM : PI_ATTENTION_NORM, index / 2), info;
  if (index == norms - 1) return info.name = kind_name(PI_FINAL_NORM, 0), info;
  uint64_t matrix = index - norms;
  info.quantized = quantized();
  info.type = element_type_name();
  if (matrix >= 4 * l.n_layers) {
    uint64_t table = matrix - 4 * l.n_layers;
    info.name = kind_name(table ? PI_CLASSIFIER : PI_EMBEDDING, 0);
    info.rows = l.vocab_size;
    info.file_offset = p.weights_offset + l.n_layers * p.layer_bytes + table * p.table_bytes;
    info.file_bytes = p.table_bytes;
    return info;
  }
  constexpr const char *kNames[] = {"qkv", "wo", "w13", "w2"};
  const uint64_t rows[] = {l.dim + 2 * l.kv_dim, l.dim, 2 * l.hidden_dim, l.dim};
  const uint64_t bytes[] = {p.qkv_bytes, p.o_bytes, p.w13_bytes, p.w2_bytes};
  uint64_t layer = matrix / 4, place = matrix % 4;
  snprintf(info.name.text, TensorName::kCapacity, "layers.%llu.%s", (unsigned long long)layer, kNames[place]);
  info.rows = rows[place];
  if (place == 3) info.columns = l.hidden_dim;
  info.file_bytes = bytes[place];
  info.file_offset = p.weights_offset + layer * p.layer_bytes;
  for (uint64_t i = 0; i < place; i++) info.file_offset += bytes[i];
  return info;
}

const char *Checkpoint::format_name() const {
  if (packed_) return "proofinfer packed";
  constexpr const char *kNames[] = {"llama2.c legacy", "llama2.c version 1", "llama2.c version 2"};
  return kNames[layout_.format];
}

const char *Checkpoint::element_type_name() const { return quantized() ? "q8_0" : "f32"; }

TensorName Checkpoint::kind_name(int kind, uint64_t index) {
  TensorName name;
  if (kKindNames[kind].with_layer)
    snprintf(name.text, TensorName::kCapacity, "layers.%llu.%s", (unsigned long long)index, kKindNames[kind].name);
  else
    snprintf(name.text, TensorName::kCapacity, "%s", kKindNames[kind].name);
  return name;
}

uint64_t Checkpoint::tensor_count() const {
  if (packed_) return 6 * layout_.n_layers + 2 + !layout_.shared_classifier;
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
  if (packed_) return packed_tensor(index);
  int place = 0, kind = pi_checkpoint_kind_at(layout_.format, 0);
  while (index >= layout_.spans[kind].tensors) {
    index -= layout_.spans[kind].tensors;
    kind = pi_checkpoint_kind_at(layout_.format, ++place);
  }
  const pi_tensor_span &span = layout_.spans[kind];
  TensorInfo info;
  info.name = kind_name(kind, index);
  info.rows = span.rows;
  info.columns = span.columns;
  info.file_offset = span.offset + index * span.tensor_bytes;
  info.file_bytes = span.tensor_bytes;
  info.quantized = span.scales_bytes != 0;
  info.type = info.quantized ? "q8_0" : "f32";
  return info;
}

Status Checkpoint::read_rows(Source *source, int kind, uint64_t index, uint64_t row, uint64_t row_count, float *to,
                             Failure *failure) const {
  const pi_tensor_span &span = layout_.spans[kind];
  uint64_t row_bytes = span.columns * sizeof(float);
  uint64_t offset = pi_checkpoint_rows_offset(&span, 0, index, row, row_count);
  Status status = source->read(offset, to, static_cast<size_t>(row_count * row_bytes), kKindNames[kind].name, failure);
  if (status == kOk) to_host_f32(to, static_cast<size_t>(row_count * span.columns));
  return status;
}

Status Checkpoint::read_quantized_rows(Source *source, int kind, uint64_t index, uint64_t row, uint64_t row_count, int8_t *q, float *scales,
                                       Failure *failure) const {
  const pi_tensor_span &span = layout_.spans[kind];
  uint64_t begin = pi_checkpoint_rows_offset(&span, layout_.group_size, index, row, row_count);
  uint64_t scales_at = pi_checkpoint_scales_offset(&span, layout_.group_size, index, row, row_count);
  uint64_t row_scales = span.columns / layout_.group_size;
  const char *name = kKindNames[kind].name;
  Status status = source->read(begin, q, static_cast<size_t>(row_count * span.columns), name, failure);
  if (status == kOk) status = source->read(scales_at, scales, static_cast<size_t>(row_count * row_scales * sizeof(float)), name, failure);
  if (status == kOk) to_host_f32(scales, static_cast<size_t>(row_count * row_scales));
  return status;
}

}  // namespace proofinfer
