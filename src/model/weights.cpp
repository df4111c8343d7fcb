#include <string.h>

#include <atomic>

#include "base/checksum.h"
#include "base/fp_environment.h"
#include "model/model.h"
#include "proved/checked.h"
#include "proved/elementary.h"
#include "proved/pack_index.h"

namespace proofinfer {

namespace {

// Tensors that stand in one matrix, in the order of their rows.
struct MatrixPlan {
  int kinds[3];
  size_t kind_count;
};

constexpr MatrixPlan kLayerPlans[] = {{{PI_WQ, PI_WK, PI_WV}, 3}, {{PI_WO}, 1}, {{PI_W1, PI_W3}, 2}, {{PI_W2}, 1}};
constexpr MatrixPlan kEmbeddingPlan = {{PI_EMBEDDING}, 1}, kClassifierPlan = {{PI_CLASSIFIER}, 1};

}  // namespace

// Fills a Model from a checkpoint, panel by panel, the threads sharing the panels: no second copy of the weights ever exists.
struct Model::Loader {
  Model *model;
  Source *source;
  Cancel *cancel;
  Team *team;
  Failure *failure;
  size_t readers = 1;  // threads of the team that read
  // Of each thread, one behind the other, a panel's rows as the file has them.
  Buffer<float> rows_{};     // float32 [16][widest], or scales [16][widest / group_size]
  Buffer<int8_t> quants_{};  // int8 [16][widest], when quantized
  Buffer<Failure> failures_{};
  std::atomic<uint64_t> done_bytes{0};
  std::atomic<bool> stop{false};  // one thread failed: the others need not go on

  Status allocate();
  Status read_norms();
  Status read_all();
  size_t matrix_rows(const MatrixPlan &plan) const;
  // Packs layer `index` of a matrix at *at and moves *at behind it.
  Status pack_matrix(const MatrixPlan &plan, size_t index, unsigned char **at);
  // On thread `thread`, whose failure is failures_[thread]: panels of a matrix; the rows of one of them that belong to one tensor.
  Status pack_panels(const MatrixPlan &plan, size_t index, unsigned char *matrix, Range panels, size_t thread);
  Status pack_rows(int kind, size_t index, size_t row, size_t count, unsigned char *panel, size_t lane, size_t thread);
  Status advance(uint64_t bytes, Failure *to);
};

Status Model::Loader::allocate() {
  const Model &m = *model;
  size_t gs = m.group_size_;
  PackedPlan plan;
  if (!plan.plan(m.checkpoint_.layout()) || plan.file_bytes > SIZE_MAX)
    return fail(failure, kMemory, "weights: more bytes than this machine can address");
  model->layer_bytes_ = static_cast<size_t>(plan.layer_bytes);
  size_t total = static_cast<size_t>(plan.weights_bytes);
  size_t widest = m.dim_ > m.hidden_dim_ ? m.dim_ : m.hidden_dim_;
  Status status = model->weights_.allocate(model->account(), total, "weights", failure);
  if (status == kOk) status = model->norms_.allocate(model->account(), static_cast<size_t>(plan.norms_count), "norm weights", failure);
  model->take_weights(model->weights_.data(), model->weights_.count(), model->norms_.data(), model->norms_.count());
  // Rows can be as long as the file: no more threads read than have room in a sixteenth of the weights. One always does.
  size_t row_bytes = gs ? widest + widest / gs * sizeof(float) : widest * sizeof(float);
  size_t most = total / 16 / PI_PANEL_ROWS / row_bytes;
  readers = team->count() < most ? team->count() : most > 0 ? most : 1;
  size_t rows = readers * PI_PANEL_ROWS;
  if (status == kOk) status = rows_.allocate(model->account(), rows * (gs ? widest / gs : widest), "read buffer", failure);
  if (status == kOk && gs) status = quants_.allocate(model->account(), rows * widest, "read buffer", failure);
  if (status == kOk) status = failures_.allocate(model->account(), readers, "failures of the reading threads", failure);
  return status;
}

Status Model::Loader::advance(uint64_t bytes, Failure *to) {
  uint64_t done = done_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (!cancel) return kOk;
  if (to == failure || to == failures_.data()) cancel->set_progress(done, source->size_bytes());  // one thread tells, or it could go back
  if (!cancel->requested()) return kOk;
  return fail(to, kCancelled, "loading was cancelled after %llu of %llu bytes", (unsigned long long)done,
              (unsigned long long)source->size_bytes());
}

Status Model::Loader::read_norms() {
  const Model &m = *model;
  for (size_t l = 0; l < m.n_layers_; l++) {
    float *to = model->norms_.data() + 2 * l * m.dim_;
    Status status = m.checkpoint_.read_rows(source, PI_ATTENTION_NORM, l, 0, 1, to, failure);
    if (status == kOk) status = m.checkpoint_.read_rows(source, PI_FFN_NORM, l, 0, 1, to + m.dim_, failure);
    if (status == kOk) status = advance(2 * m.dim_ * sizeof(float), failure);
    if (status != kOk) return status;
  }
  return m.checkpoint_.read_rows(source, PI_FINAL_NORM, 0, 0, 1, model->norms_.data() + 2 * m.n_layers_ * m.dim_, failure);
}

// Rows [row, row + count) of a tensor into lanes lane .. lane + count - 1 of a panel.
Status Model::Loader::pack_rows(int kind, size_t index, size_t row, size_t count, unsigned char *panel, size_t lane, size_t thread) {
  const pi_tensor_span &span = model->checkpoint_.layout().spans[kind];
  size_t gs = model->group_size_, n = static_cast<size_t>(span.columns);
  float *rows = rows_.data() + rows_.count() / readers * thread;
  Failure *to = &failures_[thread];
  Status status;
  if (gs == 0) {
    status = model->checkpoint_.read_rows(source, kind, index, row, count, rows, to);
    if (status == kOk) model->kernels_->pack_f32(rows, count, n, reinterpret_cast<float *>(panel) + lane);
  } else {
    int8_t *quants = quants_.data() + quants_.count() / readers * thread;
    status = model->checkpoint_.read_quantized_rows(source, kind, index, row, count, quants, rows, to);
    if (status == kOk) model->kernels_->pack_q8(quants, rows, count, n / gs, gs, lane, reinterpret_cast<int8_t *>(panel));
  }
  return status == kOk ? advance(span.tensor_bytes / span.rows * count, to) : status;
}

size_t Model::Loader::matrix_rows(const MatrixPlan &plan) const {
  size_t rows = 0;
  for (size_t i = 0; i < plan.kind_count; i++) rows += static_cast<size_t>(model->checkpoint_.layout().spans[plan.kinds[i]].rows);
  return rows;
}

// The rows behind the matrix's last one, to the end of its panel, are zeros.
Status Model::Loader::pack_panels(const MatrixPlan &plan, size_t index, unsigned char *matrix, Range panels, size_t thread) {
  const pi_tensor_span *spans = model->checkpoint_.layout().spans;
  size_t one = panel_bytes(static_cast<size_t>(spans[plan.kinds[0]].columns), model->group_size_);
  size_t rows = matrix_rows(plan);
  if (panels.begin < panels.end && panels.end * PI_PANEL_ROWS > rows) memset(matrix + (panels.end - 1) * one, 0, one);
  size_t base = 0;  // the tensor's first row in the matrix
  for (size_t i = 0; i < plan.kind_count; i++) {
    size_t end = base + static_cast<size_t>(spans[plan.kinds[i]].rows);
    size_t row = panels.begin * PI_PANEL_ROWS > base ? panels.begin * PI_PANEL_ROWS : base;
    while (row < end && row < panels.end * PI_PANEL_ROWS) {
      size_t lane = row % PI_PANEL_ROWS, count = PI_PANEL_ROWS - lane;
      if (count > end - row) count = end - row;
      unsigned char *panel = matrix + row / PI_PANEL_ROWS * one;
      if (stop.load(std::memory_order_relaxed)) return kOk;
      Status status = pack_rows(plan.kinds[i], index, row - base, count, panel, lane, thread);
      if (status != kOk) return status;
      row += count;
    }
    base = end;
  }
  return kOk;
}

Status Model::Loader::pack_matrix(const MatrixPlan &plan, size_t index, unsigned char **at) {
  struct Task {
    Loader *loader;
    const MatrixPlan *plan;
    size_t index, panel_count;
    unsigned char *matrix;
  };
  Task task{this, &plan, index, pi_panel_count(matrix_rows(plan)), *at};
  for (size_t t = 0; t < failures_.count(); t++) failures_[t] = Failure{};
  team->run(
      [](void *context, size_t thread, size_t count) {
        const Task &t = *static_cast<const Task *>(context);
        size_t reading = t.loader->readers < count ? t.loader->readers : count;
        if (thread >= reading) return;
        Range panels = share_of(t.panel_count, 1, thread, reading);
        if (t.loader->pack_panels(*t.plan, t.index, t.matrix, panels, thread) != kOk) t.loader->stop.store(true, std::memory_order_relaxed);
      },
      &task);
  const pi_tensor_span &first = model->checkpoint_.layout().spans[plan.kinds[0]];
  *at += task.panel_count * panel_bytes(static_cast<size_t>(first.columns), model->group_size_);
  for (size_t t = 0; t < failures_.count(); t++)
    if (failures_[t].status != kOk) {
      *failure = failures_[t];
      return failure->status;
    }
  return kOk;
}

Status Model::Loader::read_all() {
  Status status = read_norms();
  unsigned char *at = model->weights_.data();
  for (size_t l = 0; l < model->n_layers_; l++)
    for (const MatrixPlan &plan : kLayerPlans)
      if (status == kOk) status = pack_matrix(plan, l, &at);
  if (status == kOk) status = pack_matrix(kEmbeddingPlan, 0, &at);
  if (status == kOk && !model->checkpoint_.layout().shared_classifier) status = pack_matrix(kClassifierPlan, 0, &at);
  if (status == kOk && cancel) cancel->set_progress(source->size_bytes(), source->size_bytes());
  return status;
}

void Model::take_weights(const unsigned char *weights, size_t weights_bytes, const float *norms, size_t norms_count) {
  weights_at_ = weights, weights_bytes_ = weights_bytes;
  norms_at_ = norms, norms_count_ = norms_count;
}

void Model::take_shape() {
  const pi_checkpoint_layout &layout = checkpoint_.layout();
  dim_ = static_cast<size_t>(layout.dim);
  hidden_dim_ = static_cast<size_t>(layout.hidden_dim);
  n_layers_ = static_cast<size_t>(layout.n_layers);
  n_heads_ = static_cast<size_t>(layout.n_heads);
  n_kv_heads_ = static_cast<size_t>(layout.n_kv_heads);
  vocab_size_ = static_cast<size_t>(layout.vocab_size);
  seq_len_ = static_cast<size_t>(layout.seq_len);
  head_size_ = static_cast<size_t>(layout.head_size);
  kv_dim_ = static_cast<size_t>(layout.kv_dim);
  group_size_ = static_cast<size_t>(layout.group_size);
}

Status Model::make_rope_frequencies(Failure *failure) {
  Status status = rope_frequencies_.allocate(account(), head_size_ / 2, "rope frequencies", failure);
  if (status != kOk) return status;
  FpScope contract;
  for (size_t i = 0; i < head_size_ / 2; i++)
    rope_frequencies_[i] = 1.0f / pi_powf(10000.0f, static_cast<float>(2 * i) / static_cast<float>(head_size_));
  return kOk;
}

Status Model::load(Source *source, const Settings &settings, Cancel *cancel, Model **model, Failure *failure) {
  Ref<Model> loaded(Object::make<Model>(settings.hooks, settings.memory_limit_bytes, "model", failure));
  if (!loaded) return failure->status;
  Model *m = loaded.get();
  m->share_from_bytes_ = settings.share_from_bytes;
  m->kernels_ = settings.kernels ? settings.kernels : kernels_best();
  Status status = m->checkpoint_.open(source, failure);
  if (status != kOk) return status;
  m->take_shape();
  status = m->pool_.create(m->account(), static_cast<size_t>(settings.threads), failure);
  if (status == kOk) status = m->make_rope_frequencies(failure);
  if (status != kOk) return status;
  if (m->checkpoint_.packed()) {
    status = m->load_packed(source, settings, cancel, failure);
    if (status == kOk) *model = loaded.take();
    return status;
  }
  Team team(source->size_bytes() < m->share_from_bytes_ ? nullptr : m->pool());
  Loader loader{m, source, cancel, &team, failure};
  status = loader.allocate();
  if (status == kOk) status = loader.read_all();
  if (status == kOk) *model = loaded.take();
  return status;
}

// The value of little-endian word i of packed weights. On big-endian machines floats lie in memory the other way round, int8 do not.
static uint64_t packed_word(const unsigned char *weights, size_t group_size, size_t i) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  size_t block = group_size ? pi_q8_block_bytes(group_size) : 0;
  if (!group_size || 8 * i % block >= pi_q8_scale(group_size, 0)) {
    uint32_t pair[2];
    memcpy(pair, weights + 8 * i, sizeof(pair));
    return pair[0] | uint64_t(pair[1]) << 32;
  }
#else
  (void)group_size;
#endif
  return load_u64(weights + 8 * i);
}

uint64_t Model::fingerprint() const {
  uint64_t known = fingerprint_.load(std::memory_order_relaxed);
  if (known) return known;
  Failure none;
  (void)compute_fingerprint(nullptr, &known, &none);  // threads that come here together compute the same
  fingerprint_.store(known, std::memory_order_relaxed);
  return known;
}

Status Model::compute_fingerprint(const Cancel *cancel, uint64_t *value, Failure *failure) const {
  constexpr size_t kPartWords = size_t(2) << 20;  // 16 MB; a multiple of the checksum's lanes, so that the parts do not show
  static_assert(kPartWords % Checksum::kLanes == 0, "each part begins at the first lane");
  Checksum sum;
  const size_t shape[] = {dim_, hidden_dim_, n_layers_, n_heads_, n_kv_heads_, vocab_size_, seq_len_, group_size_};
  for (size_t number : shape) sum.add_word(number);
  sum.add_word(static_cast<uint64_t>(checkpoint_.layout().shared_classifier));
  const unsigned char *norms = reinterpret_cast<const unsigned char *>(norms_at_);
  sum.add(norms_count_ / 2, [norms](size_t i) { return packed_word(norms, 0, i); });  // dim is even
  for (size_t done = 0, words = weights_bytes_ / 8; done < words;) {
    size_t part = words - done < kPartWords ? words - done : kPartWords;
    sum.add(part, [this, done](size_t i) { return packed_word(weights_at_, group_size_, done + i); });
    done += part;
    if (cancelled(cancel)) return fail(failure, kCancelled, "verifying was cancelled after %zu of %zu bytes", done * 8, weights_bytes_);
  }
  *value = sum.value() ? sum.value() : 1;
  return kOk;
}

LayerWeights Model::layer(size_t index) const {
  const unsigned char *at = weights_at_ + index * layer_bytes_;
  auto next = [this, &at](size_t rows, size_t columns) {
    PackedMatrix matrix = matrix_at(at, rows, columns);
    at += matrix_bytes(rows, columns);
    return matrix;
  };
  LayerWeights layer;
  layer.attention_norm = norms_at_ + 2 * index * dim_;
  layer.ffn_norm = layer.attention_norm + dim_;
  layer.qkv = next(dim_ + 2 * kv_dim_, dim_);
  layer.o = next(dim_, dim_);
  layer.w13 = next(2 * hidden_dim_, dim_);
  layer.w2 = next(dim_, hidden_dim_);
  return layer;
}

PackedMatrix Model::embedding() const { return matrix_at(weights_at_ + n_layers_ * layer_bytes_, vocab_size_, dim_); }

PackedMatrix Model::classifier() const {
  PackedMatrix matrix = embedding();
  if (!checkpoint_.layout().shared_classifier) matrix.panels += matrix.panel_count * matrix.panel_bytes;
  return matrix;
}

void Model::embed(size_t token, float *x) const {
  PackedMatrix matrix = embedding();
  if (group_size_ == 0) {
    const float *weights = reinterpret_cast<const float *>(matrix.panels);
    for (size_t j = 0; j < dim_; j++) x[j] = weights[pi_packed_index(dim_, token, j)];
    return;
  }
  const unsigned char *panel = matrix.panels + token / PI_PANEL_ROWS * matrix.panel_bytes;
  size_t row = token % PI_PANEL_ROWS;
  for (size_t g = 0; g < dim_ / group_size_; g++) {
    const unsigned char *block = panel + g * pi_q8_block_bytes(group_size_);
    float scale;
    memcpy(&scale, block + pi_q8_scale(group_size_, row), sizeof(scale));
    for (size_t c = 0; c < group_size_; c++)
      x[g * group_size_ + c] = static_cast<float>(static_cast<int8_t>(block[pi_q8_weight(row, c)])) * scale;
  }
}

}  // namespace proofinfer
