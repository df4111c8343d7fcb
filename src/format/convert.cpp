#include "format/convert.h"

#include <string.h>

#include "base/fp_environment.h"

namespace proofinfer {

namespace {

constexpr int32_t kDefaultGroupSize = 64;
// Rows are read and written in parts of about this many weights.
constexpr uint64_t kPartWeights = 1 << 18;

struct Converter {
  const ModelFile &from;
  Source *source;
  Sink *sink;
  Account *account;
  Cancel *cancel;
  Failure *failure;
  pi_checkpoint_layout to = {};
  uint64_t done_bytes = 0;
  Buffer<float> weights{};  // [part]
  Buffer<float> scales{};   // [part]
  Buffer<int8_t> quants{};  // [part]

  Status plan(const ConvertTarget &target);
  Status check_gguf();
  Status choose_group_size(const ConvertTarget &target, int32_t *group_size);
  Status allocate();
  Status write_header();
  Status write_tensors();
  Status advance(uint64_t bytes);
  Status write_zeros(const pi_tensor_span &span);
  Status convert_rows(int kind, uint64_t index, uint64_t row, uint64_t count);
  Status read_floats(int kind, uint64_t index, uint64_t row, uint64_t count);
  Status quantize(int kind, uint64_t index, uint64_t row, uint64_t count);
  Status write_floats(int kind, uint64_t index, uint64_t row, uint64_t count);
  Status write_quants(int kind, uint64_t index, uint64_t row, uint64_t count);
};

Status Converter::choose_group_size(const ConvertTarget &target, int32_t *group_size) {
  *group_size = target.group_size;
  if (target.format != PI_FORMAT_V2 && target.group_size != 0)
    return fail(failure, kArgument, "group_size is %d; expected 0 for a format that is not quantized", target.group_size);
  if (target.format != PI_FORMAT_V2 || target.group_size != 0) return kOk;
  const ModelShape &shape = from.shape();
  for (*group_size = kDefaultGroupSize; shape.dim % (uint64_t)*group_size || shape.hidden_dim % (uint64_t)*group_size;) *group_size /= 2;
  return kOk;
}

// Everything that a checkpoint of llama2.c cannot say.
Status Converter::check_gguf() {
  const ModelShape &shape = from.shape();
  constexpr const char *kWhat = "this GGUF file does not fit the formats of llama2.c:";
  for (uint64_t i = 0; i < from.tensor_count(); i++) {
    TensorInfo tensor = from.tensor(i);
    if (tensor.quantized)
      return fail(failure, kUnsupported, "%s tensor %s is of the type %s; expected f32, f16 or bf16", kWhat, tensor.name.text, tensor.type);
  }
  if (shape.q_dim() != shape.dim)
    return fail(failure, kUnsupported, "%s %llu heads of %llu elements; expected the embedding's %llu in all", kWhat,
                (unsigned long long)shape.n_heads, (unsigned long long)shape.head_size, (unsigned long long)shape.dim);
  if (shape.rms_epsilon != kLlama2cEpsilon)
    return fail(failure, kUnsupported, "%s the epsilon of its norms is another than 0.00001", kWhat);
  if (shape.rope_base != kLlama2cRopeBase || shape.rope_factor != 1.0f || from.gguf().rope_factors())
    return fail(failure, kUnsupported, "%s its RoPE has another base than 10000, or is scaled", kWhat);
  return kOk;
}

Status Converter::plan(const ConvertTarget &target) {
  if (from.packed())
    return fail(failure, kUnsupported, "this is a packed file, which is not converted; the checkpoint that it was made from can be");
  if (target.format < PI_FORMAT_LEGACY || target.format > PI_FORMAT_V2)
    return fail(failure, kArgument, "format is %d; expected 0 (legacy), 1, 2 or 3 (packed)", target.format);
  Status status = from.is_gguf() ? check_gguf() : kOk;
  if (status != kOk) return status;
  const ModelShape &shape = from.shape();
  pi_checkpoint_header header;
  header.format = target.format;
  header.dim = (int32_t)shape.dim;
  header.hidden_dim = (int32_t)shape.hidden_dim;
  header.n_layers = (int32_t)shape.n_layers;
  header.n_heads = (int32_t)shape.n_heads;
  header.n_kv_heads = (int32_t)shape.n_kv_heads;
  header.vocab_size = (int32_t)shape.vocab_size;
  if (target.format == PI_FORMAT_LEGACY && !shape.shared_classifier) header.vocab_size = -header.vocab_size;
  header.seq_len = (int32_t)shape.seq_len;
  header.shared_classifier = shape.shared_classifier;
  status = choose_group_size(target, &header.group_size);
  if (status != kOk) return status;
  int kind = 0;
  switch (pi_checkpoint_plan(&header, &to, &kind)) {
    case PI_LAYOUT_OK: return kOk;
    case PI_LAYOUT_GROUP_SIZE: return fail(failure, kArgument, "group_size is %d; expected 1 to %d", header.group_size, PI_MAX_GROUP_SIZE);
    case PI_LAYOUT_GROUP_DIVIDES_DIM:
    case PI_LAYOUT_GROUP_DIVIDES_HIDDEN:
      return fail(failure, kArgument, "group_size is %d; expected a divisor of dim, which is %d, and of hidden_dim, which is %d",
                  header.group_size, header.dim, header.hidden_dim);
    default: return fail(failure, kUnsupported, "the shape does not fit the format asked for");
  }
}

Status Converter::allocate() {
  const ModelShape &shape = from.shape();
  uint64_t widest = shape.dim > shape.hidden_dim ? shape.dim : shape.hidden_dim;
  size_t part = static_cast<size_t>(widest > kPartWeights ? widest : kPartWeights);
  Status status = weights.allocate(account, part, "conversion buffer", failure);
  if (status == kOk) status = scales.allocate(account, part, "conversion buffer", failure);
  if (status == kOk) status = quants.allocate(account, part, "conversion buffer", failure);
  return status;
}

Status Converter::write_header() {
  unsigned char bytes[PI_VERSION_HEADER_BYTES] = {0};
  bool legacy = to.format == PI_FORMAT_LEGACY;
  unsigned char *shape = legacy ? bytes : bytes + 8;
  uint32_t vocab_size = static_cast<uint32_t>(to.vocab_size);
  const uint64_t fields[7] = {to.dim,     to.hidden_dim, to.n_layers,
                              to.n_heads, to.n_kv_heads, legacy && !to.shared_classifier ? 0u - vocab_size : vocab_size,
                              to.seq_len};
  for (int i = 0; i < 7; i++) store_u32(shape + 4 * i, static_cast<uint32_t>(fields[i]));
  if (legacy) return sink->write(0, bytes, PI_LEGACY_HEADER_BYTES, failure);
  store_u32(bytes, 0x616b3432);
  store_u32(bytes + 4, static_cast<uint32_t>(to.format));
  bytes[36] = static_cast<unsigned char>(to.shared_classifier);
  store_u32(bytes + 37, static_cast<uint32_t>(to.group_size));
  return sink->write(0, bytes, sizeof(bytes), failure);
}

Status Converter::read_floats(int kind, uint64_t index, uint64_t row, uint64_t count) {
  if (from.is_gguf()) return from.gguf().read_floats(source, from.gguf().tensor(kind, index), row, count, weights.data(), failure);
  const Checkpoint &checkpoint = from.checkpoint();
  const pi_tensor_span &span = checkpoint.layout().spans[kind];
  if (span.scales_bytes == 0) return checkpoint.read_rows(source, kind, index, row, count, weights.data(), failure);
  Status status = checkpoint.read_quantized_rows(source, kind, index, row, count, quants.data(), scales.data(), failure);
  size_t gs = static_cast<size_t>(checkpoint.layout().group_size), all = static_cast<size_t>(count * span.columns);
  for (size_t i = 0; status == kOk && i < all; i++) weights[i] = static_cast<float>(quants[i]) * scales[i / gs];
  return status;
}

// The nearest integer, halves to even: adding 1.5 * 2^23 leaves no bits for a fraction. |x| <= 127.
float round_half_even(float x) {
  volatile float shifted = x + 0x1.8p23f;  // volatile: the two additions must not be folded into none
  return shifted - 0x1.8p23f;
}

Status Converter::quantize(int kind, uint64_t index, uint64_t row, uint64_t count) {
  size_t gs = static_cast<size_t>(to.group_size), columns = static_cast<size_t>(to.spans[kind].columns);
  for (size_t first = 0; first < count * columns; first += gs) {
    const float *w = weights.data() + first;
    float most = 0.0f, probe = 0.0f;
    for (size_t i = 0; i < gs; i++) {
      float magnitude = w[i] < 0.0f ? -w[i] : w[i];
      if (magnitude > most) most = magnitude;
      probe += w[i] * 0.0f;
    }
    if (probe != 0.0f)  // NaN
      return fail(failure, kNotFinite, "row %llu of tensor %s has a weight that is NaN or infinite; it cannot be quantized",
                  (unsigned long long)(row + first / columns), Checkpoint::kind_name(kind, index).text);
    float scale = most / 127.0f;
    scales[first / gs] = scale;
    for (size_t i = 0; i < gs; i++) {
      float q = scale > 0.0f ? w[i] / scale : 0.0f;
      q = q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q;
      quants[first + i] = static_cast<int8_t>(round_half_even(q));
    }
  }
  return kOk;
}

Status Converter::write_floats(int kind, uint64_t index, uint64_t row, uint64_t count) {
  const pi_tensor_span &span = to.spans[kind];
  uint64_t row_bytes = span.columns * sizeof(float);
  to_host_f32(weights.data(), static_cast<size_t>(count * span.columns));  // and from it: the same exchange of bytes
  return sink->write(span.offset + index * span.tensor_bytes + row * row_bytes, weights.data(), static_cast<size_t>(count * row_bytes),
                     failure);
}

Status Converter::write_quants(int kind, uint64_t index, uint64_t row, uint64_t count) {
  const pi_tensor_span &span = to.spans[kind];
  uint64_t begin = span.offset + index * span.tensor_bytes, row_scales = span.columns / to.group_size;
  Status status = sink->write(begin + row * span.columns, quants.data(), static_cast<size_t>(count * span.columns), failure);
  if (status != kOk) return status;
  to_host_f32(scales.data(), static_cast<size_t>(count * row_scales));
  return sink->write(begin + span.rows * span.columns + row * row_scales * sizeof(float), scales.data(),
                     static_cast<size_t>(count * row_scales * sizeof(float)), failure);
}

Status Converter::convert_rows(int kind, uint64_t index, uint64_t row, uint64_t count) {
  bool quantized = to.spans[kind].scales_bytes != 0;
  if (quantized && from.group_size() == to.group_size) {
    Status status = from.checkpoint().read_quantized_rows(source, kind, index, row, count, quants.data(), scales.data(), failure);
    return status == kOk ? write_quants(kind, index, row, count) : status;
  }
  Status status = read_floats(kind, index, row, count);
  if (status == kOk && quantized) status = quantize(kind, index, row, count);
  if (status != kOk) return status;
  return quantized ? write_quants(kind, index, row, count) : write_floats(kind, index, row, count);
}

Status Converter::write_zeros(const pi_tensor_span &span) {
  memset(weights.data(), 0, weights.count() * sizeof(float));
  uint64_t end = span.offset + span.tensors * span.tensor_bytes;
  for (uint64_t at = span.offset; at < end;) {
    uint64_t bytes = end - at < weights.count() * sizeof(float) ? end - at : weights.count() * sizeof(float);
    Status status = sink->write(at, weights.data(), static_cast<size_t>(bytes), failure);
    if (status == kOk) status = advance(bytes);
    if (status != kOk) return status;
    at += bytes;
  }
  return kOk;
}

Status Converter::advance(uint64_t bytes) {
  done_bytes += bytes;
  if (cancel) cancel->set_progress(done_bytes, to.file_bytes);
  return cancelled(cancel) ? fail(failure, kCancelled, "the conversion was cancelled; no file was written") : kOk;
}

Status Converter::write_tensors() {
  for (int place = 0; place < PI_TENSOR_KINDS; place++) {
    int kind = pi_checkpoint_kind_at(to.format, place);
    const pi_tensor_span &span = to.spans[kind];
    if (kind == PI_ROPE_TABLES) {
      Status status = write_zeros(span);
      if (status != kOk) return status;
      continue;
    }
    uint64_t part = span.columns < kPartWeights ? kPartWeights / span.columns : 1;
    for (uint64_t index = 0; index < span.tensors; index++)
      for (uint64_t row = 0; row < span.rows; row += part) {
        uint64_t count = span.rows - row < part ? span.rows - row : part;
        Status status = convert_rows(kind, index, row, count);
        if (status == kOk) status = advance(span.tensor_bytes / span.rows * count);
        if (status != kOk) return status;
      }
  }
  if (cancel) cancel->set_progress(to.file_bytes, to.file_bytes);
  return kOk;
}

}  // namespace

Status convert(const ModelFile &from, Source *source, const ConvertTarget &target, Sink *sink, Account *account, Cancel *cancel,
               Failure *failure) {
  FpScope contract;
  Converter converter{from, source, sink, account, cancel, failure};
  Status status = converter.plan(target);
  if (status == kOk) status = converter.allocate();
  if (status == kOk) status = converter.write_header();
  if (status == kOk) status = converter.write_tensors();
  return status;
}

}  // namespace proofinfer
