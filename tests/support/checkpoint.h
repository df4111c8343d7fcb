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

enum class Format { kLegacy, kVersion1, kVersion2 };
constexpr Format kFormats[] = {Format::kLegacy, Format::kVersion1, Format::kVersion2};
// "legacy", "version 1", "version 2", as messages have them.
const char *format_name(Format format);
// The bytes before the first tensor, and where the seven integers, the shared-classifier flag and the group size begin.
constexpr size_t header_bytes(Format format) { return format == Format::kLegacy ? 28 : 256; }
constexpr size_t shape_offset(Format format) { return format == Format::kLegacy ? 0 : 8; }
constexpr size_t kFlagOffset = 36, kGroupOffset = 37;

// A file of any format; group_size: version 2 only.
std::vector<uint8_t> checkpoint(Format format, const Shape &shape, uint64_t seed, int32_t group_size);
// Only its header.
std::vector<uint8_t> checkpoint_header(Format format, const Shape &shape, int32_t group_size);
// Its size by the format's formula; no product of int32 fields overflows here.
unsigned __int128 checkpoint_bytes(Format format, const Shape &shape, int32_t group_size);
// Its tensors in file order, the legacy format's unused RoPE tables among them ("rope_tables"). Their last byte is the file's.
std::vector<TensorPlace> tensor_places(Format format, const Shape &shape, int32_t group_size);
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

}  // namespace proofinfer_test

#endif
