// A model: checked shape and packed weights. Immutable once loaded; any thread.
#ifndef PROOFINFER_MODEL_MODEL_H
#define PROOFINFER_MODEL_MODEL_H

#include "base/cancel.h"
#include "base/object.h"
#include "base/sink.h"
#include "base/source.h"
#include "base/thread_pool.h"
#include "format/checkpoint.h"
#include "kernels/kernels.h"
#include "model/settings.h"
#include "proved/pack_index.h"

namespace proofinfer {

// A matrix in panels of 16 rows, 64-byte aligned (proved/pack_index.h): [panel_count][columns][16] floats, or int8 in groups with scales.
struct PackedMatrix {
  const unsigned char *panels;
  size_t panel_count;
  size_t columns;      // inputs of a row
  size_t group_size;   // 0: float32
  size_t panel_bytes;  // of each panel
};

// Bytes of one panel of a matrix with that many columns. group_size 0: float32; else it divides columns.
inline size_t panel_bytes(size_t columns, size_t group_size) {
  return group_size == 0 ? columns * PI_PANEL_ROWS * sizeof(float) : columns / group_size * pi_q8_block_bytes(group_size);
}

// Matrices that read the same input stand in one: the panels of a layer lie one behind the other in the order they are used.
struct LayerWeights {
  const float *attention_norm;  // [dim]
  PackedMatrix qkv;             // rows: dim of wq, kv_dim of wk, kv_dim of wv
  PackedMatrix o;               // [dim] x dim
  const float *ffn_norm;        // [dim]
  PackedMatrix w13;             // rows: hidden_dim of w1, hidden_dim of w3
  PackedMatrix w2;              // [dim] x hidden_dim
};

class Model : public Object {
 public:
  static constexpr Kind kKind = Kind::kModel;
  Model(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  // Checks the source and reads its weights. cancel: nullable; progress in bytes.
  static Status load(Source *source, const Settings &settings, Cancel *cancel, Model **model, Failure *failure);
  // Writes the packed file.
  Status write_packed(Sink *sink, Cancel *cancel, Failure *failure) const;

  const Checkpoint &checkpoint() const { return checkpoint_; }
  size_t dim() const { return dim_; }
  size_t hidden_dim() const { return hidden_dim_; }
  size_t n_layers() const { return n_layers_; }
  size_t n_heads() const { return n_heads_; }
  size_t n_kv_heads() const { return n_kv_heads_; }
  size_t vocab_size() const { return vocab_size_; }
  size_t seq_len() const { return seq_len_; }
  size_t head_size() const { return head_size_; }
  size_t kv_dim() const { return kv_dim_; }

  LayerWeights layer(size_t index) const;
  const float *final_norm() const { return norms_at_ + 2 * n_layers_ * dim_; }  // [dim]
  PackedMatrix embedding() const;
  PackedMatrix classifier() const;
  // Row `token` of the embedding: [dim].
  void embed(size_t token, float *x) const;
  // freq = 1 / 10000 ^ (2 i / head_size), i = 0 .. head_size / 2 - 1.
  const float *rope_frequencies() const { return rope_frequencies_.data(); }

  const Kernels *kernels() const { return kernels_; }
  ThreadPool *pool() const { return &pool_; }
  uint64_t share_from_bytes() const { return share_from_bytes_; }
  uint64_t weight_bytes() const { return weights_bytes_ + norms_count_ * sizeof(float); }
  bool mapped() const { return mapping_.data() != nullptr; }
  // What tells these weights and this shape from others, whatever file they came from. Computed when first asked for: it reads all weights.
  uint64_t fingerprint() const;
  size_t group_size() const { return group_size_; }  // 0: float32

 private:
  struct Loader;  // model/weights.cpp
  // cancel: nullable; the one way to fail.
  Status compute_fingerprint(const Cancel *cancel, uint64_t *value, Failure *failure) const;
  void take_weights(const unsigned char *weights, size_t weights_bytes, const float *norms, size_t norms_count);
  Status load_packed(Source *source, const Settings &settings, Cancel *cancel, Failure *failure);
  Status read_packed(Source *source, Cancel *cancel, Failure *failure);
  void take_shape();
  Status make_rope_frequencies(Failure *failure);
  size_t matrix_bytes(size_t rows, size_t columns) const { return pi_panel_count(rows) * panel_bytes(columns, group_size_); }
  PackedMatrix matrix_at(const unsigned char *at, size_t rows, size_t columns) const {
    return PackedMatrix{at, pi_panel_count(rows), columns, group_size_, panel_bytes(columns, group_size_)};
  }

  Checkpoint checkpoint_;
  size_t dim_ = 0, hidden_dim_ = 0, n_layers_ = 0, n_heads_ = 0, n_kv_heads_ = 0, vocab_size_ = 0, seq_len_ = 0;
  size_t head_size_ = 0, kv_dim_ = 0, group_size_ = 0;
  size_t layer_bytes_ = 0;                     // of the packed matrices of one layer
  const unsigned char *weights_at_ = nullptr;  // layers, embedding, classifier if separate, all packed
  const float *norms_at_ = nullptr;            // [n_layers][2][dim], then [dim]
  size_t weights_bytes_ = 0, norms_count_ = 0;
  mutable std::atomic<uint64_t> fingerprint_{0};  // 0: not computed yet
  Buffer<unsigned char> weights_;                 // where they are the model's own memory
  Buffer<float> norms_;
  Mapping mapping_;                 // where they are a file's
  Buffer<float> rope_frequencies_;  // [head_size / 2]
  uint64_t share_from_bytes_ = 0;
  const Kernels *kernels_ = nullptr;
  mutable ThreadPool pool_;
};

}  // namespace proofinfer

#endif
