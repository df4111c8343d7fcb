#include "model/forward.h"

#include <string.h>

#include "kernels/block_layout.h"
#include "model/logits.h"
#include "proved/elementary.h"
#include "proved/pack_index.h"

namespace proofinfer {

namespace {

size_t whole_panels(size_t rows) { return pi_panel_count(rows) * PI_PANEL_ROWS; }

// Panels that a thread's share is cut at, so that the kernels' register blocks (of 4 and of 3 panels) stay whole.
constexpr size_t kPanelUnit = 12;

}  // namespace

size_t logits_stride(const Model &model) { return whole_panels(model.vocab_size()); }

size_t scores_stride(size_t context_length) { return (context_length + PI_PAGE_POSITIONS - 1) / PI_PAGE_POSITIONS * PI_PAGE_POSITIONS; }

size_t scores_count(const Model &model, size_t context_length) {
  return model.pool()->thread_count() * kHeadsAtOnce * scores_stride(context_length);
}

QuantizedGroup QuantizedGroup::of(bool blocks, size_t group_size) {
  if (blocks) return QuantizedGroup{PI_GROUP_COLUMNS, PI_GROUP_DIGITS / 4, 2};
  return QuantizedGroup{group_size, pi_q8_padded(group_size) / 4, 1};
}

Status QuantizedRows::allocate(Account *account, size_t rows, size_t columns, const QuantizedGroup &group, Failure *failure) {
  size_t groups = columns / group.columns;
  Status status = q.allocate(account, rows * groups * group.dwords, "quantized activations", failure);
  if (status == kOk) status = scales.allocate(account, rows * groups, "quantized activations", failure);
  if (status == kOk) status = sums.allocate(account, rows * groups * group.sums, "quantized activations", failure);
  return status;
}

Status Workspace::create(Account *account, const Model &model, size_t max_rows, Failure *failure) {
  size_t input = model.dim() > model.q_dim() ? model.dim() : model.q_dim();
  dim_stride_ = whole_panels(model.dim());
  input_stride_ = whole_panels(input);
  qkv_stride_ = model.qkv_rows();
  hidden_stride_ = model.w13_rows();
  size_t row_bytes = (2 * dim_stride_ + input_stride_ + qkv_stride_ + hidden_stride_) * sizeof(float);
  row_capacity_ = kRowsBytes / row_bytes / kRowBlock * kRowBlock;
  if (row_capacity_ < kRowBlock) row_capacity_ = kRowBlock;
  if (row_capacity_ > kMaxRows) row_capacity_ = kMaxRows;
  if (row_capacity_ > max_rows) row_capacity_ = max_rows;
  size_t widest = input > model.hidden_dim() ? input : model.hidden_dim();
  size_t block_rows = (row_capacity_ + kRowBlock - 1) / kRowBlock * kRowBlock;
  constexpr const char *kWhat = "activations";
  Status status = x_.allocate(account, row_capacity_ * dim_stride_, kWhat, failure);
  // Lanes behind dim are added to but never set.
  if (status == kOk) memset(x_.data(), 0, x_.count() * sizeof(float));
  if (status == kOk) status = normed_.allocate(account, row_capacity_ * input_stride_, kWhat, failure);
  if (status == kOk) status = projected_.allocate(account, row_capacity_ * dim_stride_, kWhat, failure);
  if (status == kOk) status = qkv_.allocate(account, row_capacity_ * qkv_stride_, kWhat, failure);
  if (status == kOk) status = hidden_.allocate(account, row_capacity_ * hidden_stride_, kWhat, failure);
  QuantizedGroup group = QuantizedGroup::of(model.takes_blocks(), model.group_size());
  if (status == kOk && model.takes_floats()) status = blocks_.allocate(account, block_rows * widest, kWhat, failure);
  if (status == kOk && group.columns) status = quants_.allocate(account, row_capacity_, widest, group, failure);
  if (status == kOk && group.columns) status = quant_blocks_.allocate(account, block_rows, widest, group, failure);
  if (status == kOk) status = angles_.allocate(account, row_capacity_ * model.head_size(), kWhat, failure);
  if (status == kOk && row_capacity_ > 1) status = logits_.allocate(account, kLogitsRows * logits_stride(model), kWhat, failure);
  return status;
}

size_t Workspace::next_rows(size_t count) const {
  if (count <= row_capacity_) return count;
  size_t passes = (count + row_capacity_ - 1) / row_capacity_;
  size_t rows = ((count + passes - 1) / passes + kRowBlock - 1) / kRowBlock * kRowBlock;
  return rows < row_capacity_ ? rows : row_capacity_;
}

// One pass over the model with everything it works on.
class Pass {
 public:
  Pass(const Model &model, const Kernels &kernels, const Row *rows, size_t row_count, Workspace *workspace, Team *team)
      : model_(model), kernels_(kernels), rows_(rows), row_count_(row_count), w_(*workspace), team_(team) {}

  Status run(const Cancel *cancel, Failure *failure) {
    embed();
    for (size_t layer = 0; layer < model_.n_layers(); layer++) {
      if (cancelled(cancel)) return stopped(layer, failure);
      attention(layer, model_.layer(layer));
      if (cancelled(cancel)) return stopped(layer, failure);
      feed_forward(model_.layer(layer));
    }
    return classify(cancel, failure);
  }

 private:
  float *x(size_t row) { return w_.x_.data() + row * w_.dim_stride_; }
  float *normed(size_t row) { return w_.normed_.data() + row * w_.input_stride_; }
  float *qkv(size_t row) { return w_.qkv_.data() + row * w_.qkv_stride_; }
  float *cosines(size_t row) { return w_.angles_.data() + row * model_.head_size(); }
  float *sines(size_t row) { return cosines(row) + model_.head_size() / 2; }

  void embed();
  void attention(size_t layer, const LayerWeights &weights);
  void rotate_and_store(size_t layer, const MatrixSet &set);
  void attend(size_t layer);
  void attend_heads(size_t layer, size_t row, size_t head, size_t count, size_t thread);
  void feed_forward(const LayerWeights &weights);
  Status classify(const Cancel *cancel, Failure *failure);
  Status stopped(size_t layer, Failure *failure) {
    return fail(failure, kCancelled, "evaluation was cancelled in layer %zu of %zu", layer, model_.n_layers());
  }
  Status classify_rows(const size_t *rows, size_t count, Failure *failure);
  // The log-probabilities of rows whose logits stand in the workspace.
  Status score_rows(const size_t *rows, size_t count, Failure *failure);
  // Runs a step on all rows, the threads sharing them: step(pass, begin, end, argument).
  using RowStep = void (*)(Pass *pass, size_t begin, size_t end, const void *argument);
  void each_rows(RowStep step, const void *argument);
  void normalize(const float *weight) {
    each_rows(
        [](Pass *p, size_t begin, size_t end, const void *weight_of_norm) {
          p->kernels_.rmsnorm_f32(p->x(begin), end - begin, p->w_.dim_stride_, static_cast<const float *>(weight_of_norm), p->model_.dim(),
                                  p->model_.rms_epsilon(), p->normed(begin), p->w_.input_stride_);
        },
        weight);
  }
  void add_projected() { kernels_.add_f32(x(0), w_.projected_.data(), row_count_ * w_.dim_stride_); }
  // Runs a task that streams about so many bytes on the team, or here where that would take longer.
  void share(TeamTask task, void *context, size_t bytes) {
    if (bytes < model_.share_from_bytes())
      task(context, 0, 1);
    else
      team_->run(task, context);
  }
  // Quantizes `count` rows for matrices of the type, and puts them side by side if they are more than one.
  const QuantizedRows *quantize(ElementType type, const float *in, size_t in_stride, size_t count, size_t columns);
  // out[row] = matrices * in[row] for `count` rows; the threads share the matrices' rows.
  void multiply(const MatrixSet &set, const float *in, size_t in_stride, size_t count, float *out, size_t out_stride);

  const Model &model_;
  const Kernels &kernels_;
  const Row *rows_;
  size_t row_count_;
  Workspace &w_;
  Team *team_;
};

namespace {

struct MatrixTask {
  const Kernels *kernels;
  const PackedMatrix *matrix;
  size_t group_size;            // of the type kQ8Groups
  const float *in;              // float32 and 16-bit weights: [columns], or [blocks][columns][8] for more than one row
  const QuantizedRows *quants;  // others: one row, or blocks of eight
  size_t row_count;
  float *out;
  size_t out_stride;
};

void run_float_share(const MatrixTask &task, const unsigned char *panels, size_t panel_count, float *out) {
  const float *floats = reinterpret_cast<const float *>(panels);
  if (task.row_count == 1)
    task.kernels->matvec_f32(floats, panel_count, task.matrix->columns, task.in, out);
  else
    task.kernels->matmul_f32(floats, panel_count, task.matrix->columns, task.in, task.row_count, out, task.out_stride);
}

void run_half_share(const MatrixTask &task, const unsigned char *panels, size_t panel_count, float *out) {
  const uint16_t *halves = reinterpret_cast<const uint16_t *>(panels);
  const PackedMatrix &m = *task.matrix;
  if (task.row_count == 1)
    task.kernels->matvec_half(m.type, halves, panel_count, m.columns, task.in, out);
  else
    task.kernels->matmul_half(m.type, halves, panel_count, m.columns, task.in, task.row_count, out, task.out_stride);
}

void run_groups_share(const MatrixTask &task, const unsigned char *panels, size_t panel_count, float *out) {
  const int8_t *weights = reinterpret_cast<const int8_t *>(panels), *q = reinterpret_cast<const int8_t *>(task.quants->q.data());
  size_t gs = task.group_size, groups = task.matrix->columns / gs;
  const float *scales = task.quants->scales.data();
  const int32_t *sums = task.quants->sums.data();
  if (task.row_count == 1)
    task.kernels->matvec_q8(weights, panel_count, groups, gs, q, scales, sums, out);
  else
    task.kernels->matmul_q8(weights, panel_count, groups, gs, q, scales, sums, task.row_count, out, task.out_stride);
}

void run_blocks_share(const MatrixTask &task, const unsigned char *panels, size_t panel_count, float *out) {
  const int8_t *q = reinterpret_cast<const int8_t *>(task.quants->q.data());
  size_t groups = task.matrix->columns / PI_GROUP_COLUMNS;
  const float *scales = task.quants->scales.data();
  const int32_t *sums = task.quants->sums.data();
  if (task.row_count == 1)
    task.kernels->matvec_blocks(task.matrix->type, panels, panel_count, groups, q, scales, sums, out);
  else
    task.kernels->matmul_blocks(task.matrix->type, panels, panel_count, groups, q, scales, sums, task.row_count, out, task.out_stride);
}

bool takes_floats(ElementType type) { return type == ElementType::kF32 || element_is_half(type); }

void run_matrix_share(void *context, size_t index, size_t count) {
  const MatrixTask &task = *static_cast<const MatrixTask *>(context);
  const PackedMatrix &m = *task.matrix;
  Range share = share_of(m.panel_count, kPanelUnit, index, count);
  if (share.begin == share.end) return;
  auto run = m.type == ElementType::kF32        ? run_float_share
             : m.type == ElementType::kQ8Groups ? run_groups_share
             : element_is_half(m.type)          ? run_half_share
                                                : run_blocks_share;
  run(task, m.panels + share.begin * m.panel_bytes, share.end - share.begin, task.out + share.begin * PI_PANEL_ROWS);
}

// Rows of n four-byte elements, eight side by side: blocks[row / 8][j][row % 8]. Lanes without a row repeat the last one, so that no
// uninitialised value is read.
template <typename T>
void interleave(const T *in, size_t in_stride, size_t count, size_t n, T *blocks) {
  for (size_t first = 0; first < count; first += kRowBlock) {
    const T *rows[kRowBlock];
    for (size_t lane = 0; lane < kRowBlock; lane++) rows[lane] = in + (first + lane < count ? first + lane : count - 1) * in_stride;
    T *block = blocks + first * n;
    for (size_t j = 0; j < n; j++)
      for (size_t lane = 0; lane < kRowBlock; lane++) block[j * kRowBlock + lane] = rows[lane][j];
  }
}

}  // namespace

const QuantizedRows *Pass::quantize(ElementType type, const float *in, size_t in_stride, size_t count, size_t columns) {
  QuantizedRows &rows = w_.quants_, &blocks = w_.quant_blocks_;
  bool of_blocks = type != ElementType::kQ8Groups;
  QuantizedGroup group = QuantizedGroup::of(of_blocks, model_.group_size());
  size_t groups = columns / group.columns, dwords = groups * group.dwords, sums = groups * group.sums;
  for (size_t row = 0; row < count; row++) {
    const float *x = in + row * in_stride;
    int8_t *q = reinterpret_cast<int8_t *>(rows.q.data() + row * dwords);
    if (of_blocks)
      kernels_.quantize_blocks(x, groups, q, rows.scales.data() + row * groups, rows.sums.data() + row * sums);
    else
      kernels_.quantize_q8(x, groups, group.columns, q, rows.scales.data() + row * groups, rows.sums.data() + row * sums);
  }
  if (count == 1) return &rows;
  interleave(rows.q.data(), dwords, count, dwords, blocks.q.data());
  interleave(rows.scales.data(), groups, count, groups, blocks.scales.data());
  interleave(rows.sums.data(), sums, count, sums, blocks.sums.data());
  return &blocks;
}

void Pass::multiply(const MatrixSet &set, const float *in, size_t in_stride, size_t count, float *out, size_t out_stride) {
  const QuantizedRows *quants = nullptr;
  const float *floats = nullptr;
  for (size_t i = 0; i < set.part_count; i++) {
    const PackedMatrix &matrix = set.parts[i];
    if (!takes_floats(matrix.type)) {
      if (!quants) quants = quantize(matrix.type, in, in_stride, count, matrix.columns);
    } else if (!floats) {
      floats = in;
      if (count > 1) interleave(in, in_stride, count, matrix.columns, w_.blocks_.data());
      if (count > 1) floats = w_.blocks_.data();
    }
    MatrixTask task{&kernels_, &matrix, model_.group_size(), floats, quants, count, out, out_stride};
    share(run_matrix_share, &task, matrix.panel_count * matrix.panel_bytes * count);
    out += matrix.panel_count * PI_PANEL_ROWS;
  }
}

void Pass::each_rows(RowStep step, const void *argument) {
  struct Task {
    Pass *pass;
    RowStep step;
    const void *argument;
  } task{this, step, argument};
  share(
      [](void *context, size_t index, size_t count) {
        const Task &t = *static_cast<const Task *>(context);
        Range rows = share_of(t.pass->row_count_, kRowBlock, index, count);
        if (rows.begin < rows.end) t.step(t.pass, rows.begin, rows.end, t.argument);
      },
      &task, row_count_ > kRowBlock ? row_count_ * w_.hidden_stride_ * sizeof(float) : 0);
}

void Pass::embed() {
  for (size_t row = 0; row < row_count_; row++) {
    model_.embed(static_cast<size_t>(rows_[row].token), x(row));
    kernels_.rope_angles_f32(model_.rope_frequencies(), model_.head_size() / 2, static_cast<float>(rows_[row].position), cosines(row),
                             sines(row));
  }
}

void Pass::attention(size_t layer, const LayerWeights &weights) {
  normalize(weights.attention_norm);
  multiply(weights.qkv, normed(0), w_.input_stride_, row_count_, qkv(0), w_.qkv_stride_);
  rotate_and_store(layer, weights.qkv);
  attend(layer);
  multiply(weights.o, normed(0), w_.input_stride_, row_count_, w_.projected_.data(), w_.dim_stride_);
  add_projected();
}

void Pass::rotate_and_store(size_t layer, const MatrixSet &set) {
  size_t n_heads = model_.n_heads(), n_kv_heads = model_.n_kv_heads(), head_size = model_.head_size();
  for (size_t row = 0; row < row_count_; row++) {
    float *q = qkv(row), *k = q + set.row_at[1], *v = q + set.row_at[2];
    if (k == q + model_.q_dim()) {
      kernels_.rope_f32(q, n_heads + n_kv_heads, head_size, cosines(row), sines(row));
    } else {
      kernels_.rope_f32(q, n_heads, head_size, cosines(row), sines(row));
      kernels_.rope_f32(k, n_kv_heads, head_size, cosines(row), sines(row));
    }
    rows_[row].kv->store(layer, rows_[row].position, k, v);
  }
}

// The threads share (row, head) pairs.
void Pass::attend(size_t layer) {
  struct Task {
    Pass *pass;
    size_t layer;
  } task{this, layer};
  size_t bytes = 0;  // of keys and values
  for (size_t row = 0; row < row_count_; row++) bytes += (rows_[row].position + 1) * model_.q_dim() * 2 * sizeof(float);
  share(
      [](void *context, size_t index, size_t count) {
        const Task &t = *static_cast<const Task *>(context);
        size_t n_heads = t.pass->model_.n_heads();
        Range share = share_of(t.pass->row_count_ * n_heads, 1, index, count);
        for (size_t at = share.begin; at < share.end;) {
          size_t head = at % n_heads;
          size_t heads = kHeadsAtOnce;
          if (heads > n_heads - head) heads = n_heads - head;
          if (heads > share.end - at) heads = share.end - at;
          t.pass->attend_heads(t.layer, at / n_heads, head, heads, index);
          at += heads;
        }
      },
      &task, bytes);
}

// Of n positions, how many lie in the page that begins at position t.
static size_t in_page(size_t n, size_t t) { return n - t < PI_PAGE_POSITIONS ? n - t : PI_PAGE_POSITIONS; }

// Heads head .. head + count - 1 of one row: scores against every position so far, softmax, weighted sum of the values.
void Pass::attend_heads(size_t layer, size_t row, size_t head, size_t count, size_t thread) {
  const KvCache &kv = *rows_[row].kv;
  size_t stride = scores_stride(kv.context_length());
  float *scores = rows_[row].scores + thread * kHeadsAtOnce * stride;
  size_t n = rows_[row].position + 1;  // positions attended
  size_t head_size = model_.head_size();
  float root = pi_sqrtf(static_cast<float>(head_size));
  for (size_t i = 0; i < count; i++) {
    const float *q = qkv(row) + (head + i) * head_size;
    size_t kv_head = pi_kv_head(&kv.shape(), head + i);
    for (size_t t = 0; t < n; t += PI_PAGE_POSITIONS)
      kernels_.scores_f32(q, kv.keys(t / PI_PAGE_POSITIONS, layer, kv_head), (in_page(n, t) + PI_KEY_BLOCK - 1) / PI_KEY_BLOCK, head_size,
                          root, scores + i * stride + t);
  }
  kernels_.softmax_f32(scores, count, stride, n);
  for (size_t i = 0; i < count; i++) {
    float *out = normed(row) + (head + i) * head_size;
    memset(out, 0, head_size * sizeof(float));
    size_t kv_head = pi_kv_head(&kv.shape(), head + i);
    for (size_t t = 0; t < n; t += PI_PAGE_POSITIONS)
      kernels_.mix_f32(scores + i * stride + t, kv.values(t / PI_PAGE_POSITIONS, layer, kv_head), in_page(n, t), head_size, out);
  }
}

void Pass::feed_forward(const LayerWeights &weights) {
  normalize(weights.ffn_norm);
  multiply(weights.w13, normed(0), w_.input_stride_, row_count_, w_.hidden_.data(), w_.hidden_stride_);
  each_rows(
      [](Pass *p, size_t begin, size_t end, const void *set) {
        size_t h3_at = static_cast<const MatrixSet *>(set)->row_at[1];
        for (size_t row = begin; row < end; row++) {
          float *h1 = p->w_.hidden_.data() + row * p->w_.hidden_stride_;
          p->kernels_.swiglu_f32(h1, h1 + h3_at, p->model_.hidden_dim());
        }
      },
      &weights.w13);
  multiply(weights.w2, w_.hidden_.data(), w_.hidden_stride_, row_count_, w_.projected_.data(), w_.dim_stride_);
  add_projected();
}

Status Pass::classify(const Cancel *cancel, Failure *failure) {
  size_t wanted[Workspace::kLogitsRows];
  size_t count = 0;
  for (size_t row = 0; row < row_count_; row++) {
    if (rows_[row].logits || rows_[row].logprob) wanted[count++] = row;
    if (count == 0 || (count < Workspace::kLogitsRows && row + 1 < row_count_)) continue;
    if (cancelled(cancel)) return stopped(model_.n_layers(), failure);
    if (Status status = classify_rows(wanted, count, failure)) return status;
    count = 0;
  }
  return kOk;
}

Status Pass::classify_rows(const size_t *rows, size_t count, Failure *failure) {
  for (size_t i = 0; i < count; i++)
    kernels_.rmsnorm_f32(x(rows[i]), 1, w_.dim_stride_, model_.final_norm(), model_.dim(), model_.rms_epsilon(), normed(i),
                         w_.input_stride_);
  size_t stride = logits_stride(model_);
  const Row &first = rows_[rows[0]];
  float *out = count == 1 && first.logits ? first.logits : w_.logits_.data();
  multiply(model_.classifier(), normed(0), w_.input_stride_, count, out, stride);
  for (size_t i = 0; i < count; i++) {
    float *logits = rows_[rows[i]].logits;
    if (logits && count > 1) memcpy(logits, out + i * stride, stride * sizeof(float));
    kernels_.canonical_nan_f32(logits ? logits : out + i * stride, model_.vocab_size());
  }
  return score_rows(rows, count, failure);
}

Status Pass::score_rows(const size_t *rows, size_t count, Failure *failure) {
  size_t stride = logits_stride(model_), vocab_size = model_.vocab_size();
  const float *logits = w_.logits_.data();
  size_t scored = 0;
  for (size_t i = 0; i < count; i++) {
    if (!rows_[rows[i]].logprob) continue;
    scored++;
    if (check_finite(logits + i * stride, vocab_size, failure) == kOk) continue;
    Failure cause = *failure;
    return fail(failure, kNotFinite, "behind position %zu %s", rows_[rows[i]].position, cause.message);
  }
  if (scored == 0) return kOk;
  struct Task {
    const Row *rows;
    const size_t *places;  // [count]
    size_t count;
    const float *logits;  // [count][stride]
    size_t stride, vocab_size;
  } task{rows_, rows, count, logits, stride, vocab_size};
  share(
      [](void *context, size_t index, size_t threads) {
        const Task &t = *static_cast<const Task *>(context);
        Range part = share_of(t.count, 1, index, threads);
        for (size_t i = part.begin; i < part.end; i++) {
          const Row &row = t.rows[t.places[i]];
          const float *x = t.logits + i * t.stride;
          if (row.logprob) *row.logprob = log_softmax(x, t.vocab_size).of(x[row.next]);
        }
      },
      &task, scored * vocab_size * sizeof(float));
  return kOk;
}

Status forward(const Model &model, const Kernels &kernels, const Row *rows, size_t row_count, Workspace *workspace, Team *team,
               const Cancel *cancel, Failure *failure) {
  return Pass(model, kernels, rows, row_count, workspace, team).run(cancel, failure);
}

}  // namespace proofinfer
