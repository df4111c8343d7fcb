#include "format/gguf_llama.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"

namespace proofinfer {

namespace {

constexpr uint64_t kMaxSize = 0x7fffffff;
constexpr const char *kSizeText = "1 to 2147483647";
constexpr size_t kNameCapacity = 64;

// Names, with the layer's number where there is one.
constexpr const char *kKindNames[PI_TENSOR_KINDS] = {
    "token_embd.weight",
    "blk.%llu.attn_norm.weight",
    "blk.%llu.attn_q.weight",
    "blk.%llu.attn_k.weight",
    "blk.%llu.attn_v.weight",
    "blk.%llu.attn_output.weight",
    "blk.%llu.ffn_norm.weight",
    "blk.%llu.ffn_gate.weight",
    "blk.%llu.ffn_down.weight",
    "blk.%llu.ffn_up.weight",
    "output_norm.weight",
    nullptr,
    "output.weight",
};

void kind_name(int kind, uint64_t index, char *name) {
  snprintf(name, kNameCapacity, kKindNames[kind], (unsigned long long)index);  // the names without a layer take no argument
}

bool is_norm(int kind) { return kind == PI_ATTENTION_NORM || kind == PI_FFN_NORM || kind == PI_FINAL_NORM; }

bool is_float(uint32_t type) { return type == 0 || type == 1 || type == 30; }

// Keys by which files of this architecture ask for arithmetic that is not done here. Anything but these values: unsupported.
struct OtherArithmetic {
  const char *name;
  bool is_bool;
  uint32_t neutral;  // of a bool or a number: the value that changes nothing
};
constexpr float kNoFloat = 0.0f;
struct OtherFloat {
  const char *name;
  float neutral;
};
constexpr OtherArithmetic kOtherNumbers[] = {
    {"llama.attention.causal", true, 1},   {"llama.use_parallel_residual", true, 0}, {"llama.expert_count", false, 0},
    {"llama.expert_used_count", false, 0}, {"llama.expert_shared_count", false, 0},
};
constexpr OtherFloat kOtherFloats[] = {
    {"llama.attention.scale", kNoFloat},          {"llama.attention.clamp_kqv", kNoFloat},
    {"llama.attention.max_alibi_bias", kNoFloat}, {"llama.logit_scale", kNoFloat},
    {"llama.residual_scale", kNoFloat},           {"llama.embedding_scale", kNoFloat},
    {"llama.attn_logit_softcapping", kNoFloat},   {"llama.final_logit_softcapping", kNoFloat},
    {"llama.rope.scaling.attn_factor", 1.0f},
};

// What a number is if it is not positive and normal; nullptr: it is.
const char *fault_of(float value) {
  if (value >= FLT_MIN && value <= FLT_MAX) return nullptr;
  if (value != value) return "NaN";
  if (value < 0.0f) return "negative";
  return value == 0.0f ? "0" : value > FLT_MAX ? "infinite" : "subnormal";
}

}  // namespace

Status GgufLlama::open(Source *source, Account *account, Failure *failure) {
  Status status = gguf_.open(source, account, failure);
  if (status == kOk) status = read_architecture(source, failure);
  if (status == kOk) status = read_shape(failure);
  if (status == kOk) status = get_equal_sizes(source, "llama.feed_forward_length", Need::kRequired, &shape_.hidden_dim, failure);
  if (status == kOk) status = get_equal_sizes(source, "llama.attention.head_count", Need::kRequired, &shape_.n_heads, failure);
  shape_.n_kv_heads = shape_.n_heads;
  if (status == kOk) status = get_equal_sizes(source, "llama.attention.head_count_kv", Need::kOptional, &shape_.n_kv_heads, failure);
  if (status == kOk) status = read_attention(failure);
  if (status == kOk) status = read_rope(source, failure);
  if (status == kOk) status = refuse_other_arithmetic(failure);
  if (status == kOk) status = read_vocabulary(failure);
  if (status == kOk) status = bind_tensors(account, failure);
  if (status == kOk) status = bind_rope_factors(source, failure);
  if (status == kOk) status = refuse_other_tensors(account, failure);
  return status;
}

Status GgufLlama::read_architecture(Source *source, Failure *failure) {
  constexpr const char *kName = "general.architecture";
  char found[64];
  Status status = gguf_.get_name(kName, Need::kRequired, source, found, sizeof(found), failure);
  if (status != kOk || strcmp(found, "llama") == 0) return status;
  return fail(failure, kUnsupported, "GGUF: key %s at offset %llu is \"%s\"; expected \"llama\", the one architecture that is supported",
              kName, (unsigned long long)gguf_.find(kName)->offset, found);
}

Status GgufLlama::get_size(const char *name, Need need, uint64_t *value, Failure *failure) {
  Status status = gguf_.get_u64(name, need, value, failure);
  const GgufKey *key = gguf_.find(name);
  if (status != kOk || !key || (*value >= 1 && *value <= kMaxSize)) return status;
  char found[24];
  snprintf(found, sizeof(found), "%llu", (unsigned long long)*value);
  return Gguf::fail_value(*key, name, found, kSizeText, kFormat, failure);
}

Status GgufLlama::get_equal_sizes(Source *source, const char *name, Need need, uint64_t *value, Failure *failure) {
  const GgufKey *key = gguf_.find(name);
  if (!key || key->type != GgufType::kArray) return get_size(name, need, value, failure);
  if (key->element_type != GgufType::kU32 && key->element_type != GgufType::kI32)
    return Gguf::fail_value(*key, name, "an array of another type", "a number, or an array of u32 or i32", kFormat, failure);
  char found[64];
  snprintf(found, sizeof(found), "an array of %llu numbers", (unsigned long long)key->value);
  char expected[64];
  snprintf(expected, sizeof(expected), "as many as there are layers, %llu", (unsigned long long)shape_.n_layers);
  if (key->value != shape_.n_layers) return Gguf::fail_value(*key, name, found, expected, kFormat, failure);
  GgufCursor cursor(source, key->offset);
  for (uint64_t i = 0; i < key->value; i++) {
    uint32_t number = 0;
    Status status = cursor.read_u32(&number, name, failure);
    if (status != kOk) return status;
    snprintf(found, sizeof(found), "an array whose number %llu is %lld", (unsigned long long)i,
             key->element_type == GgufType::kI32 ? (long long)(int32_t)number : (long long)number);
    if (number < 1 || number > kMaxSize) return Gguf::fail_value(*key, name, found, kSizeText, kFormat, failure);
    if (i == 0) *value = number;
    snprintf(expected, sizeof(expected), "the same for every layer, %llu", (unsigned long long)*value);
    if (number != *value) return Gguf::fail_value(*key, name, found, expected, kUnsupported, failure);
  }
  return kOk;
}

Status GgufLlama::get_positive(const char *name, float *value, Failure *failure) {
  Status status = gguf_.get_f32(name, Need::kOptional, value, failure);
  const GgufKey *key = gguf_.find(name);
  const char *fault = status == kOk && key ? fault_of(*value) : nullptr;
  return fault ? Gguf::fail_value(*key, name, fault, "a positive number", kFormat, failure) : status;
}

Status GgufLlama::read_shape(Failure *failure) {
  Status status = get_size("llama.block_count", Need::kRequired, &shape_.n_layers, failure);
  if (status == kOk) status = get_size("llama.context_length", Need::kRequired, &shape_.seq_len, failure);
  if (status == kOk) status = get_size("llama.embedding_length", Need::kRequired, &shape_.dim, failure);
  // Within a window that slides, attention is whole: no position beyond the first window is evaluated.
  uint64_t window = 0;
  if (status == kOk) status = gguf_.get_u64("llama.attention.sliding_window", Need::kOptional, &window, failure);
  if (window != 0 && window < shape_.seq_len) shape_.seq_len = window;
  constexpr const char *kEpsilon = "llama.attention.layer_norm_rms_epsilon";
  if (status == kOk) status = gguf_.get_f32(kEpsilon, Need::kRequired, &shape_.rms_epsilon, failure);
  if (status == kOk && !(shape_.rms_epsilon >= 0.0f && shape_.rms_epsilon <= FLT_MAX))
    status = Gguf::fail_value(*gguf_.find(kEpsilon), kEpsilon, "negative or not finite", "a number from 0", kFormat, failure);
  return status;
}

// Heads, and the size of one, which is the embedding's share of it unless the file says otherwise.
Status GgufLlama::read_attention(Failure *failure) {
  constexpr const char *kHeads = "llama.attention.head_count", *kKvHeads = "llama.attention.head_count_kv",
                       *kKey = "llama.attention.key_length", *kValue = "llama.attention.value_length";
  char found[32], expected[64];
  if (shape_.n_heads % shape_.n_kv_heads != 0) {
    snprintf(found, sizeof(found), "%llu", (unsigned long long)shape_.n_kv_heads);
    snprintf(expected, sizeof(expected), "a divisor of the heads, which are %llu", (unsigned long long)shape_.n_heads);
    return Gguf::fail_value(*gguf_.find(kKvHeads), kKvHeads, found, expected, kFormat, failure);
  }
  if (!gguf_.find(kKey)) {
    if (shape_.dim % shape_.n_heads != 0) {
      snprintf(found, sizeof(found), "%llu", (unsigned long long)shape_.n_heads);
      snprintf(expected, sizeof(expected), "a divisor of the embedding_length, which is %llu", (unsigned long long)shape_.dim);
      return Gguf::fail_value(*gguf_.find(kHeads), kHeads, found, expected, kFormat, failure);
    }
    shape_.head_size = shape_.dim / shape_.n_heads;
  }
  Status status = get_size(kKey, Need::kOptional, &shape_.head_size, failure);
  uint64_t value_length = shape_.head_size;
  if (status == kOk) status = get_size(kValue, Need::kOptional, &value_length, failure);
  if (status != kOk) return status;
  snprintf(found, sizeof(found), "%llu", (unsigned long long)value_length);
  snprintf(expected, sizeof(expected), "that of the keys, which is %llu", (unsigned long long)shape_.head_size);
  if (value_length != shape_.head_size) return Gguf::fail_value(*gguf_.find(kValue), kValue, found, expected, kUnsupported, failure);
  if (shape_.head_size % 2 != 0)
    return fail(failure, kFormat, "GGUF: the size of a head is %llu; expected an even number", (unsigned long long)shape_.head_size);
  if (shape_.head_size > kMaxSize / shape_.n_heads)
    return fail(failure, kFormat, "GGUF: %llu heads of %llu elements are more than %llu", (unsigned long long)shape_.n_heads,
                (unsigned long long)shape_.head_size, (unsigned long long)kMaxSize);
  return kOk;
}

Status GgufLlama::read_rope(Source *source, Failure *failure) {
  shape_.rope_base = kLlama2cRopeBase;
  shape_.rope_factor = 1.0f;
  constexpr const char *kCount = "llama.rope.dimension_count";
  uint64_t rotated = shape_.head_size;
  Status status = get_size(kCount, Need::kOptional, &rotated, failure);
  if (status == kOk && rotated != shape_.head_size) {
    char found[24], expected[64];
    snprintf(found, sizeof(found), "%llu", (unsigned long long)rotated);
    snprintf(expected, sizeof(expected), "the size of a head, which is %llu", (unsigned long long)shape_.head_size);
    return Gguf::fail_value(*gguf_.find(kCount), kCount, found, expected, kUnsupported, failure);
  }
  if (status == kOk) status = get_positive("llama.rope.freq_base", &shape_.rope_base, failure);
  return status == kOk ? read_scaling(source, failure) : status;
}

// "llama3" is known by its tensor too: files have that without a type.
Status GgufLlama::read_scaling(Source *source, Failure *failure) {
  constexpr const char *kType = "llama.rope.scaling.type";
  float factor = 1.0f;
  char type[32];
  Status status = gguf_.get_name(kType, Need::kOptional, source, type, sizeof(type), failure);
  if (status == kOk) status = get_positive("llama.rope.scale_linear", &factor, failure);
  if (status == kOk) status = get_positive("llama.rope.scaling.factor", &factor, failure);
  if (status != kOk) return status;
  const GgufKey *key = gguf_.find(kType);
  bool linear = !key || strcmp(type, "linear") == 0, llama3 = key && strcmp(type, "llama3") == 0;
  if (linear) shape_.rope_factor = factor;
  if (llama3 && !gguf_.find_tensor("rope_freqs.weight"))
    return Gguf::fail_value(*key, kType, "llama3 and there is no tensor rope_freqs.weight", "both or neither", kFormat, failure);
  if (linear || llama3 || strcmp(type, "none") == 0) return kOk;
  char found[48];
  snprintf(found, sizeof(found), "\"%s\"", type);
  return Gguf::fail_value(*key, kType, found, "\"none\", \"linear\" or \"llama3\"", kUnsupported, failure);
}

Status GgufLlama::refuse_other_arithmetic(Failure *failure) {
  char found[24];
  for (const OtherArithmetic &other : kOtherNumbers) {
    uint64_t value = other.neutral;
    bool flag = other.neutral != 0;
    Status status = other.is_bool ? gguf_.get_bool(other.name, Need::kOptional, &flag, failure)
                                  : gguf_.get_u64(other.name, Need::kOptional, &value, failure);
    if (status != kOk) return status;
    if (other.is_bool) value = flag;
    snprintf(found, sizeof(found), "%llu", (unsigned long long)value);
    if (value != other.neutral)
      return Gguf::fail_value(*gguf_.find(other.name), other.name, found, "no such key: what it asks for is not supported", kUnsupported,
                              failure);
  }
  for (const OtherFloat &other : kOtherFloats) {
    float value = other.neutral;
    Status status = gguf_.get_f32(other.name, Need::kOptional, &value, failure);
    if (status != kOk) return status;
    if (value != other.neutral)
      return Gguf::fail_value(*gguf_.find(other.name), other.name, "set", "no such key: what it asks for is not supported", kUnsupported,
                              failure);
  }
  return kOk;
}

// The embedding has a row for every token; more, where the vocabulary was padded.
Status GgufLlama::read_vocabulary(Failure *failure) {
  char name[kNameCapacity];
  kind_name(PI_EMBEDDING, 0, name);
  const GgufTensor *embedding = gguf_.find_tensor(name);
  if (!embedding) return fail(failure, kFormat, "GGUF: tensor %s is missing", name);
  shape_.vocab_size = embedding->rows;
  if (embedding->rows > kMaxSize)
    return fail(failure, kFormat, "GGUF: tensor %s has %llu rows; expected %s", name, (unsigned long long)embedding->rows, kSizeText);
  constexpr const char *kSize = "llama.vocab_size", *kTokens = "tokenizer.ggml.tokens";
  uint64_t size = 0;
  Status status = get_size(kSize, Need::kOptional, &size, failure);
  GgufArray tokens;
  if (status == kOk) status = gguf_.get_array(kTokens, Need::kOptional, GgufType::kText, &tokens, failure);
  if (status != kOk) return status;
  char found[48], expected[128];
  snprintf(expected, sizeof(expected), "at most the rows of %s, which are %llu", name, (unsigned long long)shape_.vocab_size);
  snprintf(found, sizeof(found), "%llu", (unsigned long long)size);
  if (size > shape_.vocab_size) return Gguf::fail_value(*gguf_.find(kSize), kSize, found, expected, kFormat, failure);
  snprintf(found, sizeof(found), "an array of %llu", (unsigned long long)tokens.count);
  if (tokens.count > shape_.vocab_size) return Gguf::fail_value(*gguf_.find(kTokens), kTokens, found, expected, kFormat, failure);
  return kOk;
}

Status GgufLlama::bind(int kind, uint64_t index, uint64_t rows, uint64_t columns, Failure *failure) {
  char name[kNameCapacity];
  kind_name(kind, index, name);
  const GgufTensor *tensor = gguf_.find_tensor(name);
  if (!tensor) return fail(failure, kFormat, "GGUF: tensor %s is missing", name);
  if (tensor->rows != rows || tensor->columns != columns)
    return fail(failure, kFormat, "GGUF: tensor %s has %llu rows of %llu columns; expected %llu of %llu", name,
                (unsigned long long)tensor->rows, (unsigned long long)tensor->columns, (unsigned long long)rows,
                (unsigned long long)columns);
  if (is_norm(kind) && !is_float(tensor->type))
    return fail(failure, kUnsupported, "GGUF: tensor %s has the element type %s; expected F32, F16 or BF16 for a norm", name,
                gguf_element(tensor->type)->name);
  places_[place(kind, index)] = static_cast<uint32_t>(tensor - &gguf_.tensor(0));
  places_count_++;
  return kOk;
}

Status GgufLlama::bind_tensors(Account *account, Failure *failure) {
  const ModelShape &s = shape_;
  // A layer has its tensors: this many cannot be there otherwise, and nothing is reserved for them.
  if (s.n_layers > gguf_.tensor_count()) {
    char name[kNameCapacity];
    kind_name(PI_ATTENTION_NORM, gguf_.tensor_count(), name);
    return fail(failure, kFormat, "GGUF: key llama.block_count is %llu; tensor %s is missing, as the file has %zu tensors",
                (unsigned long long)s.n_layers, name, gguf_.tensor_count());
  }
  Status status = places_.allocate(account, static_cast<size_t>(s.n_layers * kLayerKinds + 3), "GGUF directory", failure);
  if (status == kOk) status = bind(PI_EMBEDDING, 0, s.vocab_size, s.dim, failure);
  if (status == kOk) status = bind(PI_FINAL_NORM, 0, 1, s.dim, failure);
  char name[kNameCapacity];
  kind_name(PI_CLASSIFIER, 0, name);
  shape_.shared_classifier = gguf_.find_tensor(name) == nullptr;
  if (status == kOk && !s.shared_classifier) status = bind(PI_CLASSIFIER, 0, s.vocab_size, s.dim, failure);
  for (uint64_t l = 0; status == kOk && l < s.n_layers; l++) {
    status = bind(PI_ATTENTION_NORM, l, 1, s.dim, failure);
    if (status == kOk) status = bind(PI_WQ, l, s.q_dim(), s.dim, failure);
    if (status == kOk) status = bind(PI_WK, l, s.kv_dim(), s.dim, failure);
    if (status == kOk) status = bind(PI_WV, l, s.kv_dim(), s.dim, failure);
    if (status == kOk) status = bind(PI_WO, l, s.dim, s.q_dim(), failure);
    if (status == kOk) status = bind(PI_FFN_NORM, l, 1, s.dim, failure);
    if (status == kOk) status = bind(PI_W1, l, s.hidden_dim, s.dim, failure);
    if (status == kOk) status = bind(PI_W2, l, s.dim, s.hidden_dim, failure);
    if (status == kOk) status = bind(PI_W3, l, s.hidden_dim, s.dim, failure);
  }
  return status;
}

// Frequencies are divided by the factors: one that is 0 or no number would make every angle of its pair NaN.
Status GgufLlama::bind_rope_factors(Source *source, Failure *failure) {
  constexpr const char *kName = "rope_freqs.weight";
  const GgufTensor *tensor = gguf_.find_tensor(kName);
  if (!tensor) return kOk;
  uint64_t expected = shape_.head_size / 2;
  if (tensor->rows != 1 || tensor->columns != expected || tensor->type != 0)
    return fail(failure, kFormat, "GGUF: tensor %s has %llu rows of %llu columns of the type %s; expected 1 of %llu of F32", kName,
                (unsigned long long)tensor->rows, (unsigned long long)tensor->columns, gguf_element(tensor->type)->name,
                (unsigned long long)expected);
  GgufCursor cursor(source, tensor->offset);
  for (uint64_t i = 0; i < expected; i++) {
    uint64_t at = cursor.at();
    uint32_t bits = 0;
    Status status = cursor.read_u32(&bits, kName, failure);
    if (status != kOk) return status;
    float factor;
    memcpy(&factor, &bits, sizeof(factor));
    if (const char *fault = fault_of(factor))
      return fail(failure, kFormat, "GGUF: tensor %s: number %llu, at offset %llu, is %s; expected a positive number", kName,
                  (unsigned long long)i, (unsigned long long)at, fault);
  }
  rope_factors_ = tensor;
  places_count_++;
  return kOk;
}

// A tensor that has no place would be ignored, and with it what it stands for: a bias, an expert, a head of another kind.
Status GgufLlama::refuse_other_tensors(Account *account, Failure *failure) {
  if (places_count_ == gguf_.tensor_count()) return kOk;
  Buffer<uint8_t> known;
  Status status = known.allocate(account, gguf_.tensor_count(), "GGUF directory", failure);
  if (status != kOk) return status;
  memset(known.data(), 0, known.count());
  uint64_t bound = shape_.n_layers * kLayerKinds + (shape_.shared_classifier ? 2 : 3);
  for (uint64_t i = 0; i < bound; i++) known[places_[i]] = 1;
  if (rope_factors_) known[static_cast<size_t>(rope_factors_ - &gguf_.tensor(0))] = 1;
  size_t i = 0;
  while (known[i]) i++;  // one at least is not
  const GgufTensor &tensor = gguf_.tensor(i);
  return fail(
      failure, kUnsupported, "GGUF: tensor %.*s, described at offset %llu, is none of the architecture llama as it is supported here",
      static_cast<int>(tensor.name_bytes < 100 ? tensor.name_bytes : 100), gguf_.name(tensor), (unsigned long long)tensor.described_at);
}

uint64_t GgufLlama::parameter_count() const {
  uint64_t count = 0;
  for (size_t i = 0; i < gguf_.tensor_count(); i++)
    if (&gguf_.tensor(i) != rope_factors_) count += gguf_.tensor(i).rows * gguf_.tensor(i).columns;
  return count;
}

Status GgufLlama::read_rows(Source *source, const GgufTensor &tensor, uint64_t row, uint64_t count, void *to, Failure *failure) const {
  uint64_t each = row_bytes(tensor);
  return source->read(tensor.offset + row * each, to, static_cast<size_t>(count * each), "tensor", failure);
}

Status GgufLlama::read_floats(Source *source, const GgufTensor &tensor, uint64_t row, uint64_t count, float *to, Failure *failure) const {
  size_t all = static_cast<size_t>(count * tensor.columns);
  if (tensor.type == 0) {
    Status status = read_rows(source, tensor, row, count, to, failure);
    if (status == kOk) to_host_f32(to, all);
    return status;
  }
  // The 16-bit numbers are read into the upper half of the floats' place and widened from its front: none is overwritten before it is read.
  unsigned char *halves = reinterpret_cast<unsigned char *>(to) + all * 2;
  Status status = read_rows(source, tensor, row, count, halves, failure);
  for (size_t i = 0; status == kOk && i < all; i++) {
    uint16_t half = static_cast<uint16_t>(halves[2 * i] | halves[2 * i + 1] << 8);
    to[i] = tensor.type == 1 ? widen_f16(half) : widen_bf16(half);
  }
  return status;
}

}  // namespace proofinfer
