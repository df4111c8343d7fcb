// The forward pass: rows of {sequence, token, position} through the model, in the order of docs/arithmetic.md. Allocates nothing.
#ifndef PROOFINFER_MODEL_FORWARD_H
#define PROOFINFER_MODEL_FORWARD_H

#include "base/cancel.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/kv_cache.h"
#include "model/model.h"

namespace proofinfer {

// One token to evaluate. A prompt block is many rows of one cache with ascending positions, a service's step one row of many caches.
struct Row {
  KvCache *kv;
  size_t position;
  int32_t token;
  int32_t next;   // what `logprob` is of
  float *logits;  // [logits_stride(model)] to fill, or nullptr: not wanted
  float *scores;  // [threads][kHeadsAtOnce][scores_stride(context)]: scratch that belongs to the cache
  // Where logits are not wanted: the log-probability of `next` behind the token, or nullptr. In passes of more than one row.
  float *logprob;
};

// Heads whose softmax sums run side by side.
constexpr size_t kHeadsAtOnce = 8;

// Floats of one head's scores over a context: whole pages.
size_t scores_stride(size_t context_length);
// Scratch floats that a cache needs for its rows.
size_t scores_count(const Model &model, size_t context_length);

// Floats between the logits of two positions: vocab_size filled up to a whole panel, so that kernels may write whole panels.
size_t logits_stride(const Model &model);

// What a group of quantized activations is made of, as kernels want it.
struct QuantizedGroup {
  size_t columns, dwords, sums;  // dwords: of four int8

  // blocks: of those types, else of kQ8Groups, whose groups have group_size columns.
  static QuantizedGroup of(bool blocks, size_t group_size);
};

// Quantized activations.
struct QuantizedRows {
  Buffer<uint32_t> q;    // [rows][groups][dwords]
  Buffer<float> scales;  // [rows][groups]
  Buffer<int32_t> sums;  // [rows][groups][sums]

  Status allocate(Account *account, size_t rows, size_t columns, const QuantizedGroup &group, Failure *failure);
};

// Activations of up to row_capacity() rows; made once, used by one pass at a time.
class Workspace {
 public:
  // As many rows as one pass takes; more are cut into several passes with the same bits. The more rows, the less often weights are read.
  static constexpr size_t kMaxRows = 128;
  // Rows of wide models are fewer, so that activations take about this much memory.
  static constexpr size_t kRowsBytes = size_t(8) << 20;

  // For passes of up to max_rows rows (at most kMaxRows).
  Status create(Account *account, const Model &model, size_t max_rows, Failure *failure);
  size_t row_capacity() const { return row_capacity_; }
  // How many of `count` rows the next pass takes: nearly equal parts of whole blocks of rows.
  size_t next_rows(size_t count) const;

 private:
  friend class Pass;
  static constexpr size_t kLogitsRows = kRowBlock;  // rows of the classifier's input computed side by side

  size_t row_capacity_ = 0;
  size_t qkv_stride_ = 0, hidden_stride_ = 0, dim_stride_ = 0, input_stride_ = 0;
  Buffer<float> x_;          // [rows][dim_stride]: the residual stream
  Buffer<float> normed_;     // [rows][input_stride]: input of the matrices, [dim]; attention output, [q_dim]
  Buffer<float> projected_;  // [rows][dim_stride]: output of o and w2
  Buffer<float> qkv_;        // [rows][qkv_stride]
  Buffer<float> hidden_;     // [rows][hidden_stride]: outputs of w1, then of w3
  Buffer<float> blocks_;     // [rows / 8][columns of the widest matrix][8]: activations side by side; float32 and 16-bit weights only
  QuantizedRows quants_;     // quantized weights only: activations row by row, then side by side
  QuantizedRows quant_blocks_;
  Buffer<float> angles_;  // [rows][2][head_size / 2]: cosines, sines
  Buffer<float> logits_;  // [kLogitsRows][logits_stride]
};

// Evaluates up to workspace->row_capacity() rows: stores their keys and values and fills the logits asked for. Rows of one cache stand in
// ascending positions without a gap. kCancelled: some keys and values were stored, no logits; the caller's positions have not moved. kNotFinite: the
// same, where a log-probability is wanted of logits that are not finite.
Status forward(const Model &model, const Kernels &kernels, const Row *rows, size_t row_count, Workspace *workspace, Team *team,
               const Cancel *cancel, Failure *failure);

}  // namespace proofinfer

#endif
