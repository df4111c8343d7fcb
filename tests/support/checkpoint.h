// Bytes of synthetic checkpoints and tokenizers, as tests/data/golden/README.md describes them. Plain functions, any thread.
#ifndef PROOFINFER_TESTS_SUPPORT_CHECKPOINT_H
#define PROOFINFER_TESTS_SUPPORT_CHECKPOINT_H

#include <cstdint>
#include <string>
#include <vector>

namespace proofinfer_test {

// The seven integers of the legacy header, in file order. vocab_size < 0: a separate classifier.
struct Shape {
  int32_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len;

  bool shared_classifier() const { return vocab_size > 0; }
  int32_t vocab() const { return vocab_size < 0 ? -vocab_size : vocab_size; }
  int32_t head_size() const { return dim / n_heads; }
  int32_t kv_dim() const { return head_size() * n_kv_heads; }
};

// A tensor of a file: what the library calls it and where it is.
struct TensorPlace {
  std::string name;
  uint64_t offset, bytes;
};

// The weights of a model, drawn from one splitmix64 stream in legacy file order.
struct Weights {
  std::vector<float> embedding, attention_norm, wq, wk, wv, wo, ffn_norm, w1, w2, w3, final_norm, classifier;
};
Weights draw_weights(const Shape &shape, uint64_t seed);

std::vector<uint8_t> legacy_checkpoint(const Shape &shape, uint64_t seed);
std::vector<uint8_t> version1_checkpoint(const Shape &shape, uint64_t seed);
std::vector<uint8_t> version2_checkpoint(const Shape &shape, uint64_t seed, int32_t group_size);

// The tensors of a legacy file in order, the unused RoPE tables among them ("rope_tables"). Their last byte is the file's.
std::vector<TensorPlace> legacy_places(const Shape &shape);

struct Piece {
  std::string bytes;
  float score;
};
// A tokenizer.bin. `longest` is the advisory first field; -1: the true one.
std::vector<uint8_t> tokenizer_file(const std::vector<Piece> &pieces, int64_t longest = -1);
// A small vocabulary: <unk>, BOS, EOS, the 256 byte pieces, then " " and the given texts, each with a lower score than the one before.
std::vector<Piece> small_vocabulary(const std::vector<std::string> &texts);

// Little-endian writers for hand-made files.
void put_u32(std::vector<uint8_t> *to, uint32_t value);
void put_i32(std::vector<uint8_t> *to, int32_t value);
void put_f32(std::vector<uint8_t> *to, float value);
// Only the 28 bytes of a legacy header.
std::vector<uint8_t> legacy_header(const Shape &shape);

}  // namespace proofinfer_test

#endif
