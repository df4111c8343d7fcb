// A model: checked shape and packed weights. Immutable once loaded; any thread.
#ifndef PROOFINFER_MODEL_MODEL_H
#define PROOFINFER_MODEL_MODEL_H

#include "base/cancel.h"
#include "base/object.h"
#include "base/sink.h"
#include "base/source.h"
#include "base/thread_pool.h"
#include "format/model_file.h"
#include "kernels/element_type.h"
#include "kernels/kernels.h"
#include "model/settings.h"
#include "proved/pack_index.h"

namespace proofinfer {

// A matrix in panels of 16 rows, 64-byte aligned: float32 [panel_count][columns][16], or what element_panel_bytes and pi_q8_block_bytes describe.
struct PackedMatrix {
  const unsigned char *panels;
  size_t panel_count;
  size_t columns;      // inputs of a row
  size_t panel_bytes;  // of each panel
  ElementType type;
};

// Matrices that read the same input, in the order they are used: those of one type stand in one. The output has the parts' rows one behind the
// other, each part filled up to whole panels.
struct MatrixSet {
  static constexpr size_t kMaxParts = 3;
  PackedMatrix parts[kMaxParts];
  size_t part_count;
  size_t row_at[kMaxParts];  // where in the output the rows of each of its tensors begin

  size_t output_rows() const {
    size_t rows = 0;
    for (size_t i = 0; i < part_count; i++) rows += parts[i].panel_count * PI_PANEL_ROWS;
    return rows;
  }
};

struct LayerWeights {
  const float *attention_norm;  // [dim]
  MatrixSet qkv;                // q_dim rows of wq, kv_dim of wk, kv_dim of wv, of dim columns
  MatrixSet o;                  // [dim] x q_dim
  const float *ffn_norm;        // [dim]
  MatrixSet w13;                // hidden_dim rows of w1, hidden_dim of w3, of dim columns
  MatrixSet w2;                 // [dim] x hidden_dim
};

class Model : public Object {
 public:
  static constexpr Kind kKind = Kind::kModel;
  Model(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  // Checks the source and reads its weights. cancel: nullable; progress in bytes.
  static Status load(Source *source, const Settings &settings, Cancel *cancel, Model **model, Failure *failure);
  // Writes the packed file. Not of a GGUF file.
  Status write_packed(Sink *sink, Cancel *cancel, Failure *failure) const;

  const ModelFile &file() const { return file_; }
  size_t dim() const { return dim_; }
  size_t hidden_dim() const { return hidden_dim_; }
  size_t n_layers() const { return n_layers_; }
  size_t n_heads() const { return n_heads_; }
  size_t n_kv_heads() const { return n_kv_heads_; }
  size_t vocab_size() const { return vocab_size_; }
  size_t seq_len() const { return seq_len_; }
  size_t head_size() const { return head_size_; }
  size_t q_dim() const { return n_heads_ * head_size_; }
  size_t kv_dim() const { return n_kv_heads_ * head_size_; }
  float rms_epsilon() const { return file_.shape().rms_epsilon; }

  const LayerWeights &layer(size_t index) const { return layers_[index]; }
  const float *final_norm() const { return norms_at_ + 2 * n_layers_ * dim_; }  // [dim]
  const MatrixSet &classifier() const { return file_.shape().shared_classifier ? embedding_ : classifier_; }
  // Row `token` of the embedding: [dim].
  void embed(size_t token, float *x) const;
  // By how much the angle of each pair grows with a position: [head_size / 2].
  const float *rope_frequencies() const { return rope_frequencies_.data(); }

  const Kernels *kernels() const { return kernels_; }
  ThreadPool *pool() const { return &pool_; }
  uint64_t share_from_bytes() const { return share_from_bytes_; }
  uint64_t weight_bytes() const { return weights_bytes_ + norms_count_ * sizeof(float); }
  bool mapped() const { return mapping_.data() != nullptr; }
  // What tells these weights and this shape from others, whatever file they came from. Computed when first asked for: it reads all weights.
  uint64_t fingerprint() const;
  size_t group_size() const { return group_size_; }  // of matrices of the type kQ8Groups; 0: there are none
  // What activations the matrices ask for.
  bool takes_floats() const { return takes_floats_; }
  bool takes_blocks() const { return takes_blocks_; }
  // Floats of a row of a layer's outputs, at most.
  size_t qkv_rows() const { return qkv_rows_; }
  size_t w13_rows() const { return w13_rows_; }

 private:
  struct Loader;  // model/weights.cpp
  // cancel: nullable; the one way to fail.
  void add_gguf_shape(class Checksum *sum) const;
  Status compute_fingerprint(const Cancel *cancel, uint64_t *value, Failure *failure) const;
  void take_weights(const unsigned char *weights, size_t weights_bytes, const float *norms, size_t norms_count);
  Status load_packed(Source *source, const Settings &settings, Cancel *cancel, Failure *failure);
  Status read_packed(Source *source, Cancel *cancel, Failure *failure);
  void take_shape();
  Status make_rope_frequencies(Source *source, Failure *failure);
  // The tables of matrices: their types and sizes, then where they are.
  Status lay_out(Failure *failure);
  Status lay_out_set(const int *kinds, size_t kind_count, size_t index, MatrixSet *set, uint64_t *bytes, Failure *failure) const;
  void place_matrices();
  // visit(matrix) of every matrix of `model` in the order they lie in, until one is not kOk.
  template <typename AnyModel, typename Visit>
  static Status each_matrix(AnyModel *model, const Visit &visit);
  ElementType type_of(int kind, size_t index) const;
  size_t rows_of(int kind) const;
  size_t columns_of(int kind) const;
  size_t panel_bytes(ElementType type, size_t columns) const;

  ModelFile file_;
  size_t dim_ = 0, hidden_dim_ = 0, n_layers_ = 0, n_heads_ = 0, n_kv_heads_ = 0, vocab_size_ = 0, seq_len_ = 0;
  size_t head_size_ = 0, group_size_ = 0;
  bool takes_floats_ = false, takes_groups_ = false, takes_blocks_ = false;
  size_t qkv_rows_ = 0, w13_rows_ = 0;
  Buffer<LayerWeights> layers_;  // [n_layers]
  MatrixSet embedding_ = {}, classifier_ = {};
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
