// The shape of a Llama-family model and the constants of its arithmetic, whatever the format of its file.
#ifndef PROOFINFER_FORMAT_MODEL_SHAPE_H
#define PROOFINFER_FORMAT_MODEL_SHAPE_H

#include <stdint.h>

namespace proofinfer {

struct ModelShape {
  // Each at least 1 and below 2^31; n_kv_heads divides n_heads, head_size is even.
  uint64_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, head_size, vocab_size, seq_len;
  bool shared_classifier;  // the classifier is the embedding
  float rms_epsilon;       // finite, not negative
  float rope_base;         // normal, positive
  float rope_factor;       // every frequency is divided by it: normal, positive; 1: none is

  uint64_t q_dim() const { return n_heads * head_size; }
  uint64_t kv_dim() const { return n_kv_heads * head_size; }
};

// Of llama2.c's formats, which have no such fields.
constexpr float kLlama2cEpsilon = 1e-5f, kLlama2cRopeBase = 10000.0f;

}  // namespace proofinfer

#endif
