#include "support/checkpoint.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace proofinfer_test {

namespace {

// One splitmix64 stream; each draw is a float32 in [-1, 1) with 24 bits, exact.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  float next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return float(int32_t(z >> 40) - (1 << 23)) * 0x1p-23f;
  }

 private:
  uint64_t state_;
};

enum class Role { kTable, kNorm, kMatrix };

// count weights of one kind; inputs: of each row of a matrix.
std::vector<float> draw(Draws *draws, Role role, size_t count, int inputs) {
  std::vector<float> weights(count);
  float scale = 0.25f;
  if (role == Role::kMatrix) scale = std::ldexp(1.0f, -(int(std::log2(inputs)) / 2));
  float base = role == Role::kNorm ? 1.0f : 0.0f;
  for (float &w : weights) w = base + draws->next() * scale;
  return weights;
}

void put_floats(std::vector<uint8_t> *to, const std::vector<float> &values) {
  for (float value : values) put_f32(to, value);
}

// Int8 values of one tensor, then the float32 scale of each group.
void put_quantized(std::vector<uint8_t> *to, const float *weights, size_t count, size_t group_size) {
  std::vector<float> scales;
  for (size_t begin = 0; begin < count; begin += group_size) {
    float largest = 0.0f;
    for (size_t i = 0; i < group_size; i++) largest = std::fmax(largest, std::fabs(weights[begin + i]));
    float scale = largest / 127.0f;
    scales.push_back(scale);
    for (size_t i = 0; i < group_size; i++) to->push_back(uint8_t(int8_t(std::nearbyint(weights[begin + i] / scale))));
  }
  put_floats(to, scales);
}

// The same for a kind of n tensors that stand one after another.
void put_quantized_layers(std::vector<uint8_t> *to, const std::vector<float> &weights, int32_t n, int32_t group_size) {
  size_t each = weights.size() / size_t(n);
  for (size_t i = 0; i < size_t(n); i++) put_quantized(to, weights.data() + i * each, each, size_t(group_size));
}

}  // namespace

void put_u32(std::vector<uint8_t> *to, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) to->push_back(uint8_t(value >> shift));
}

void put_i32(std::vector<uint8_t> *to, int32_t value) { put_u32(to, uint32_t(value)); }

void put_f32(std::vector<uint8_t> *to, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  put_u32(to, bits);
}

const char *format_name(Format format) {
  return format == Format::kLegacy ? "legacy" : format == Format::kVersion1 ? "version 1" : "version 2";
}

std::vector<uint8_t> checkpoint_header(Format format, const Shape &s, int32_t group_size) {
  bool legacy = format == Format::kLegacy;
  std::vector<uint8_t> bytes;
  if (!legacy) put_u32(&bytes, 0x616b3432), put_i32(&bytes, format == Format::kVersion1 ? 1 : 2);
  for (int32_t value : {s.dim, s.hidden_dim, s.n_layers, s.n_heads, s.n_kv_heads, legacy ? s.vocab_size : s.vocab(), s.seq_len})
    put_i32(&bytes, value);
  if (legacy) return bytes;
  bytes.push_back(s.shared_classifier() ? 1 : 0);
  if (format == Format::kVersion2) put_i32(&bytes, group_size);
  bytes.resize(header_bytes(format));
  return bytes;
}

Weights draw_weights(const Shape &s, uint64_t seed) {
  Draws draws(seed);
  const size_t layers = size_t(s.n_layers), dim = size_t(s.dim), hidden = size_t(s.hidden_dim), kv_dim = size_t(s.kv_dim());
  Weights w;
  w.embedding = draw(&draws, Role::kTable, size_t(s.vocab()) * dim, 0);
  w.attention_norm = draw(&draws, Role::kNorm, layers * dim, 0);
  w.wq = draw(&draws, Role::kMatrix, layers * dim * dim, s.dim);
  w.wk = draw(&draws, Role::kMatrix, layers * kv_dim * dim, s.dim);
  w.wv = draw(&draws, Role::kMatrix, layers * kv_dim * dim, s.dim);
  w.wo = draw(&draws, Role::kMatrix, layers * dim * dim, s.dim);
  w.ffn_norm = draw(&draws, Role::kNorm, layers * dim, 0);
  w.w1 = draw(&draws, Role::kMatrix, layers * hidden * dim, s.dim);
  w.w2 = draw(&draws, Role::kMatrix, layers * dim * hidden, s.hidden_dim);
  w.w3 = draw(&draws, Role::kMatrix, layers * hidden * dim, s.dim);
  w.final_norm = draw(&draws, Role::kNorm, dim, 0);
  if (!s.shared_classifier()) w.classifier = draw(&draws, Role::kTable, size_t(s.vocab()) * dim, 0);
  return w;
}

std::vector<uint8_t> legacy_checkpoint(const Shape &s, uint64_t seed) {
  Weights w = draw_weights(s, seed);
  std::vector<uint8_t> bytes = checkpoint_header(Format::kLegacy, s, 0);
  for (const std::vector<float> *kind :
       {&w.embedding, &w.attention_norm, &w.wq, &w.wk, &w.wv, &w.wo, &w.ffn_norm, &w.w1, &w.w2, &w.w3, &w.final_norm})
    put_floats(&bytes, *kind);
  bytes.resize(bytes.size() + size_t(s.seq_len) * size_t(s.head_size()) * 4);
  put_floats(&bytes, w.classifier);
  return bytes;
}

std::vector<uint8_t> version1_checkpoint(const Shape &s, uint64_t seed) {
  Weights w = draw_weights(s, seed);
  std::vector<uint8_t> bytes = checkpoint_header(Format::kVersion1, s, 0);
  for (const std::vector<float> *kind :
       {&w.attention_norm, &w.ffn_norm, &w.final_norm, &w.embedding, &w.wq, &w.wk, &w.wv, &w.wo, &w.w1, &w.w2, &w.w3, &w.classifier})
    put_floats(&bytes, *kind);
  return bytes;
}

std::vector<uint8_t> version2_checkpoint(const Shape &s, uint64_t seed, int32_t group_size) {
  Weights w = draw_weights(s, seed);
  std::vector<uint8_t> bytes = checkpoint_header(Format::kVersion2, s, group_size);
  for (const std::vector<float> *kind : {&w.attention_norm, &w.ffn_norm, &w.final_norm}) put_floats(&bytes, *kind);
  put_quantized_layers(&bytes, w.embedding, 1, group_size);
  for (const std::vector<float> *kind : {&w.wq, &w.wk, &w.wv, &w.wo, &w.w1, &w.w2, &w.w3})
    put_quantized_layers(&bytes, *kind, s.n_layers, group_size);
  if (!s.shared_classifier()) put_quantized_layers(&bytes, w.classifier, 1, group_size);
  return bytes;
}

std::vector<uint8_t> checkpoint(Format format, const Shape &s, uint64_t seed, int32_t group_size) {
  switch (format) {
    case Format::kLegacy: return legacy_checkpoint(s, seed);
    case Format::kVersion1: return version1_checkpoint(s, seed);
    default: return version2_checkpoint(s, seed, group_size);
  }
}

unsigned __int128 checkpoint_bytes(Format format, const Shape &s, int32_t group_size) {
  using Wide = unsigned __int128;
  const Wide dim = Wide(s.dim), hidden = Wide(s.hidden_dim), layers = Wide(s.n_layers), kv_dim = Wide(s.kv_dim());
  const Wide vocab = Wide(s.vocab_size < 0 ? -int64_t(s.vocab_size) : s.vocab_size);
  const Wide table = vocab * dim, layer = 2 * dim * dim + 2 * dim * kv_dim + 3 * dim * hidden;
  const Wide matrices = table + layers * layer + (s.shared_classifier() ? 0 : table), norms = dim * (2 * layers + 1);
  switch (format) {
    case Format::kLegacy: return 28 + 4 * (matrices + norms + Wide(s.seq_len) * Wide(s.head_size()));
    case Format::kVersion1: return 256 + 4 * (matrices + norms);
    default: return 256 + 4 * norms + matrices + matrices / Wide(group_size) * 4;
  }
}

std::vector<TensorPlace> tensor_places(Format format, const Shape &s, int32_t group_size) {
  const uint64_t dim = uint64_t(s.dim), hidden = uint64_t(s.hidden_dim), kv_dim = uint64_t(s.kv_dim()), vocab = uint64_t(s.vocab());
  const bool legacy = format == Format::kLegacy, quantized = format == Format::kVersion2;
  std::vector<TensorPlace> places;
  uint64_t at = header_bytes(format);
  auto put = [&](const std::string &name, uint64_t bytes) {
    places.push_back({name, at, bytes});
    at += bytes;
  };
  auto put_layers = [&](const char *name, uint64_t bytes) {
    for (int32_t i = 0; i < s.n_layers; i++) put("layers." + std::to_string(i) + "." + name, bytes);
  };
  auto matrix = [&](uint64_t count) { return quantized ? count + count / uint64_t(group_size) * 4 : count * 4; };
  if (legacy) put("token_embedding", matrix(vocab * dim));
  put_layers("attention_norm", dim * 4);
  if (!legacy) {
    put_layers("ffn_norm", dim * 4);
    put("final_norm", dim * 4);
    put("token_embedding", matrix(vocab * dim));
  }
  put_layers("wq", matrix(dim * dim));
  put_layers("wk", matrix(dim * kv_dim));
  put_layers("wv", matrix(dim * kv_dim));
  put_layers("wo", matrix(dim * dim));
  if (legacy) put_layers("ffn_norm", dim * 4);
  put_layers("w1", matrix(dim * hidden));
  put_layers("w2", matrix(dim * hidden));
  put_layers("w3", matrix(dim * hidden));
  if (legacy) {
    put("final_norm", dim * 4);
    put("rope_tables", uint64_t(s.seq_len) * uint64_t(s.head_size()) * 4);
  }
  if (!s.shared_classifier()) put("classifier", matrix(vocab * dim));
  return places;
}

std::vector<TensorPlace> legacy_places(const Shape &s) { return tensor_places(Format::kLegacy, s, 0); }

std::vector<uint8_t> tokenizer_file(const std::vector<Piece> &pieces, int64_t longest) {
  size_t true_longest = 0;
  for (const Piece &piece : pieces) true_longest = piece.bytes.size() > true_longest ? piece.bytes.size() : true_longest;
  std::vector<uint8_t> bytes;
  put_u32(&bytes, longest < 0 ? uint32_t(true_longest) : uint32_t(longest));
  for (const Piece &piece : pieces) {
    put_f32(&bytes, piece.score);
    put_i32(&bytes, int32_t(piece.bytes.size()));
    bytes.insert(bytes.end(), piece.bytes.begin(), piece.bytes.end());
  }
  return bytes;
}

std::vector<Piece> small_vocabulary(const std::vector<std::string> &texts) {
  std::vector<Piece> pieces = {{"<unk>", 0.0f}, {"\n<s>\n", 0.0f}, {"\n</s>\n", 0.0f}};
  for (int byte = 0; byte < 256; byte++) {
    char spelled[8];
    std::snprintf(spelled, sizeof(spelled), "<0x%02X>", unsigned(byte));
    pieces.push_back({spelled, 0.0f});
  }
  pieces.push_back({" ", -1.0f});
  for (const std::string &text : texts) pieces.push_back({text, pieces.back().score - 1.0f});
  return pieces;
}

}  // namespace proofinfer_test
