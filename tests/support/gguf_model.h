// Small models of the architecture `llama` as GGUF files, with random weights of any element type. One thread at a time.
#ifndef PROOFINFER_TESTS_SUPPORT_GGUF_MODEL_H
#define PROOFINFER_TESTS_SUPPORT_GGUF_MODEL_H

#include <array>
#include <string>
#include <vector>

#include "support/gguf.h"
#include "support/random.h"

namespace proofinfer_test {

// An element type: its number, its block, and where the block's float16 numbers are: a scale that gives weights of about 0.1, and a minimum or -1.
struct GgufElementType {
  const char *name;
  uint32_t type;
  size_t columns, bytes;
  int scale_at;
  uint16_t scale;
  int minimum_at;
  uint16_t minimum;
};
constexpr GgufElementType kGgufElements[] = {
    {"f32", 0, 1, 4, -1, 0, -1, 0},
    {"f16", 1, 1, 2, -1, 0, -1, 0},
    {"bf16", 30, 1, 2, -1, 0, -1, 0},
    {"q8_0", 8, 32, 34, 0, 0x1200, -1, 0},
    {"q4_0", 2, 32, 18, 0, 0x2400, -1, 0},
    {"q4_1", 3, 32, 20, 0, 0x2400, 2, 0xb000},
    {"q5_0", 6, 32, 22, 0, 0x2000, -1, 0},
    {"q5_1", 7, 32, 24, 0, 0x2000, 2, 0xb000},
    {"q4_k", 12, 256, 144, 0, 0x0e00, 2, 0x1a00},
    {"q5_k", 13, 256, 176, 0, 0x0a00, 2, 0x1a00},
    {"q6_k", 14, 256, 210, 208, 0x0700, -1, 0},
};

inline const GgufElementType &gguf_element_named(const std::string &name) {
  for (const GgufElementType &element : kGgufElements)
    if (name == element.name) return element;
  return kGgufElements[0];
}

// Random rows of a type.
inline Bytes gguf_rows(const GgufElementType &element, size_t rows, size_t columns, Random &random) {
  Bytes bytes(rows * (columns / element.columns) * element.bytes);
  auto put_half = [&bytes](size_t at, uint32_t half) { bytes[at] = uint8_t(half), bytes[at + 1] = uint8_t(half >> 8); };
  for (size_t at = 0; at < bytes.size(); at += element.bytes) {
    uint64_t draw = random.next();
    uint32_t sign = uint32_t(draw >> 63);
    if (element.columns == 1) {
      // 2^-7 to 2^-3, either sign.
      uint32_t bits = sign << 31 | uint32_t(120 + draw % 4) << 23 | (uint32_t(draw >> 8) & 0x7fffff);
      if (element.type == 1) put_half(at, sign << 15 | uint32_t(8 + draw % 4) << 10 | (uint32_t(draw >> 8) & 0x3ff));
      if (element.type == 30) put_half(at, bits >> 16);
      for (size_t i = 0; element.type == 0 && i < 4; i++) bytes[at + i] = uint8_t(bits >> 8 * i);
      continue;
    }
    for (size_t i = 0; i < element.bytes; i++) bytes[at + i] = uint8_t(random.next() >> 40);
    put_half(at + size_t(element.scale_at), element.scale + uint32_t(draw & 0x1ff));
    if (element.minimum_at >= 0) put_half(at + size_t(element.minimum_at), element.minimum + uint32_t(draw >> 16 & 0x1ff));
  }
  return bytes;
}

struct GgufToy {
  uint32_t dim = 64, hidden_dim = 96, n_layers = 2, n_heads = 4, n_kv_heads = 2, head_size = 16, vocab_size = 40, context_length = 80;
  bool shared_classifier = true;
  float epsilon = 1e-5f, rope_base = 10000.0f;
  std::array<float, 3> rope = {0, 0, 0};  // linear factor, if not 0; a tensor of factors from rope[1] to rope[2], if not 0
  // Names of element types; several are taken in turn, tensor by tensor.
  std::vector<std::string> types = {"f32"};
};

inline GgufFile toy_gguf(const GgufToy &toy, uint64_t seed) {
  Random random(seed);
  GgufFile file;
  file.add("general.architecture", "llama");
  file.add("llama.block_count", toy.n_layers);
  file.add("llama.context_length", toy.context_length);
  file.add("llama.embedding_length", toy.dim);
  file.add("llama.feed_forward_length", toy.hidden_dim);
  file.add("llama.attention.head_count", toy.n_heads);
  file.add("llama.attention.head_count_kv", toy.n_kv_heads);
  file.add("llama.attention.layer_norm_rms_epsilon", toy.epsilon);
  file.add("llama.rope.freq_base", toy.rope_base);
  if (toy.head_size * toy.n_heads != toy.dim) {
    file.add("llama.attention.key_length", toy.head_size);
    file.add("llama.attention.value_length", toy.head_size);
  }
  if (toy.rope[0] != 0) {
    file.add("llama.rope.scaling.type", "linear");
    file.add("llama.rope.scaling.factor", toy.rope[0]);
  }
  size_t drawn = 0;
  auto add_matrix = [&](const std::string &name, uint64_t rows, uint64_t columns) {
    const GgufElementType &wanted = gguf_element_named(toy.types[drawn++ % toy.types.size()]);
    const GgufElementType &element = columns % wanted.columns == 0 ? wanted : gguf_element_named("f16");
    file.add_tensor(name, {columns, rows}, element.type, gguf_rows(element, rows, columns, random));
  };
  auto add_floats = [&](const std::string &name, size_t count, float low, float high) {
    Bytes bytes;
    for (size_t i = 0; i < count; i++) put(&bytes, low + (high - low) * float(random.below(1000)) / 1000.0f);
    file.add_tensor(name, {count}, 0, bytes);
  };
  uint64_t q_dim = uint64_t(toy.n_heads) * toy.head_size, kv_dim = uint64_t(toy.n_kv_heads) * toy.head_size;
  if (toy.rope[1] != 0) add_floats("rope_freqs.weight", toy.head_size / 2, toy.rope[1], toy.rope[2]);
  add_matrix("token_embd.weight", toy.vocab_size, toy.dim);
  for (uint32_t l = 0; l < toy.n_layers; l++) {
    std::string layer = "blk." + std::to_string(l) + ".";
    add_floats(layer + "attn_norm.weight", toy.dim, 0.5f, 1.5f);
    add_matrix(layer + "attn_q.weight", q_dim, toy.dim);
    add_matrix(layer + "attn_k.weight", kv_dim, toy.dim);
    add_matrix(layer + "attn_v.weight", kv_dim, toy.dim);
    add_matrix(layer + "attn_output.weight", toy.dim, q_dim);
    add_floats(layer + "ffn_norm.weight", toy.dim, 0.5f, 1.5f);
    add_matrix(layer + "ffn_gate.weight", toy.hidden_dim, toy.dim);
    add_matrix(layer + "ffn_up.weight", toy.hidden_dim, toy.dim);
    add_matrix(layer + "ffn_down.weight", toy.dim, toy.hidden_dim);
  }
  add_floats("output_norm.weight", toy.dim, 0.5f, 1.5f);
  if (!toy.shared_classifier) add_matrix("output.weight", toy.vocab_size, toy.dim);
  return file;
}

}  // namespace proofinfer_test

#endif
