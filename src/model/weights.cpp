#include "base/fp_environment.h"
#include "model/model.h"
#include "proved/checked.h"
#include "proved/elementary.h"
#include "proved/pack_index.h"

namespace proofinfer {

namespace {

size_t packed_count(size_t rows, size_t columns) { return pi_panel_count(rows) * PI_PANEL_ROWS * columns; }

// *total += the floats of a packed matrix; false on overflow.
bool add_packed(uint64_t rows, uint64_t columns, uint64_t *total) {
  uint64_t padded, count;
  return pi_add_checked(rows, PI_PANEL_ROWS - 1, &padded) &&
         pi_mul_checked(padded / PI_PANEL_ROWS * PI_PANEL_ROWS, columns, &count) && pi_add_checked(*total, count, total);
}

}  // namespace

// Fills a Model from a checkpoint, panel by panel: no second copy of the weights ever exists.
struct Model::Loader {
  Model *model;
  Source *source;
  Cancel *cancel;
  Failure *failure;
  Buffer<float> rows_{};  // [16][columns], rows as the file has them
  uint64_t done_bytes = 0;

  Status allocate();
  Status read_norms();
  Status read_all();
  Status pack_rows(int kind, size_t index, float *matrix, size_t row_base);
  Status advance(uint64_t bytes);
};

Status Model::Loader::allocate() {
  const Model &m = *model;
  uint64_t layer = 0, total, norms;
  bool fits = add_packed(m.dim_ + 2 * m.kv_dim_, m.dim_, &layer) && add_packed(m.dim_, m.dim_, &layer) &&
              add_packed(2 * m.hidden_dim_, m.dim_, &layer) && add_packed(m.dim_, m.hidden_dim_, &layer) &&
              pi_mul_checked(layer, m.n_layers_, &total) && add_packed(m.vocab_size_, m.dim_, &total) &&
              (m.checkpoint_.layout().shared_classifier || add_packed(m.vocab_size_, m.dim_, &total)) &&
              pi_mul_checked(2 * m.n_layers_ + 1, m.dim_, &norms) && total <= SIZE_MAX / sizeof(float);
  if (!fits) return fail(failure, kMemory, "weights: more floats than this machine can address");
  model->layer_count_ = static_cast<size_t>(layer);
  size_t widest = m.dim_ > m.hidden_dim_ ? m.dim_ : m.hidden_dim_;
  Status status = model->weights_.allocate(model->account(), static_cast<size_t>(total), "weights", failure);
  if (status == kOk) status = model->norms_.allocate(model->account(), static_cast<size_t>(norms), "norm weights", failure);
  if (status == kOk) status = rows_.allocate(model->account(), PI_PANEL_ROWS * widest, "read buffer", failure);
  return status;
}

Status Model::Loader::advance(uint64_t bytes) {
  done_bytes += bytes;
  if (!cancel) return kOk;
  cancel->set_progress(done_bytes, source->size_bytes());
  if (!cancel->requested()) return kOk;
  return fail(failure, kCancelled, "loading was cancelled after %llu of %llu bytes", (unsigned long long)done_bytes,
              (unsigned long long)source->size_bytes());
}

Status Model::Loader::read_norms() {
  const Model &m = *model;
  for (size_t l = 0; l < m.n_layers_; l++) {
    float *to = model->norms_.data() + 2 * l * m.dim_;
    Status status = m.checkpoint_.read_rows(source, PI_ATTENTION_NORM, l, 0, 1, to, failure);
    if (status == kOk) status = m.checkpoint_.read_rows(source, PI_FFN_NORM, l, 0, 1, to + m.dim_, failure);
    if (status == kOk) status = advance(2 * m.dim_ * sizeof(float));
    if (status != kOk) return status;
  }
  return m.checkpoint_.read_rows(source, PI_FINAL_NORM, 0, 0, 1, model->norms_.data() + 2 * m.n_layers_ * m.dim_, failure);
}

// Packs tensor `index` of a kind into rows row_base and up of a packed matrix. The rows that fill up the last panel are set by the caller.
Status Model::Loader::pack_rows(int kind, size_t index, float *matrix, size_t row_base) {
  const pi_tensor_span &span = model->checkpoint_.layout().spans[kind];
  size_t n = static_cast<size_t>(span.columns);
  for (size_t row = 0; row < span.rows;) {
    size_t place = row_base + row;
    size_t count = PI_PANEL_ROWS - place % PI_PANEL_ROWS;
    if (count > span.rows - row) count = static_cast<size_t>(span.rows) - row;
    Status status = model->checkpoint_.read_rows(source, kind, index, row, count, rows_.data(), failure);
    if (status == kOk) status = advance(count * n * sizeof(float));
    if (status != kOk) return status;
    model->kernels_->pack_f32(rows_.data(), count, n, matrix + pi_packed_index(n, place, 0));
    row += count;
  }
  return kOk;
}

namespace {

// Zeros in the rows behind the last one of a packed matrix, to the end of its panel.
void clear_padding(float *matrix, size_t rows, size_t columns) {
  for (size_t row = rows; row < pi_panel_count(rows) * PI_PANEL_ROWS; row++)
    for (size_t j = 0; j < columns; j++) matrix[pi_packed_index(columns, row, j)] = 0.0f;
}

}  // namespace

Status Model::Loader::read_all() {
  const Model &m = *model;
  struct Part {
    int kind;
    size_t rows;     // of this tensor
    size_t columns;  // of the matrix
    bool last;       // of its matrix
  };
  const Part parts[] = {{PI_WQ, m.dim_, m.dim_, false},       {PI_WK, m.kv_dim_, m.dim_, false},     {PI_WV, m.kv_dim_, m.dim_, true},
                        {PI_WO, m.dim_, m.dim_, true},        {PI_W1, m.hidden_dim_, m.dim_, false}, {PI_W3, m.hidden_dim_, m.dim_, true},
                        {PI_W2, m.dim_, m.hidden_dim_, true}, {PI_EMBEDDING, m.vocab_size_, m.dim_, true},
                        {PI_CLASSIFIER, m.vocab_size_, m.dim_, true}};
  Status status = read_norms();
  float *matrix = model->weights_.data();
  auto read_parts = [&](const Part *begin, const Part *end, size_t index) {
    size_t base = 0;
    for (const Part *part = begin; status == kOk && part < end; part++) {
      status = pack_rows(part->kind, index, matrix, base);
      base += part->rows;
      if (!part->last) continue;
      clear_padding(matrix, base, part->columns);
      matrix += packed_count(base, part->columns);
      base = 0;
    }
  };
  for (size_t l = 0; status == kOk && l < m.n_layers_; l++) read_parts(parts, parts + 7, l);
  read_parts(parts + 7, parts + (m.checkpoint_.layout().shared_classifier ? 8 : 9), 0);
  if (status == kOk && cancel) cancel->set_progress(source->size_bytes(), source->size_bytes());
  return status;
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
  m->kernels_ = settings.kernels ? settings.kernels : kernels_best();
  Status status = m->checkpoint_.open(source, failure);
  if (status != kOk) return status;
  m->take_shape();
  status = m->pool_.create(m->account(), static_cast<size_t>(settings.threads), failure);
  if (status == kOk) status = m->make_rope_frequencies(failure);
  if (status != kOk) return status;
  Loader loader{m, source, cancel, failure};
  status = loader.allocate();
  if (status == kOk) status = loader.read_all();
  if (status == kOk) *model = loaded.take();
  return status;
}

LayerWeights Model::layer(size_t index) const {
  const float *at = weights_.data() + index * layer_count_;
  auto next = [&at](size_t rows, size_t columns) {
    PackedMatrix matrix{at, pi_panel_count(rows), columns};
    at += packed_count(rows, columns);
    return matrix;
  };
  LayerWeights layer;
  layer.attention_norm = norms_.data() + 2 * index * dim_;
  layer.ffn_norm = layer.attention_norm + dim_;
  layer.qkv = next(dim_ + 2 * kv_dim_, dim_);
  layer.o = next(dim_, dim_);
  layer.w13 = next(2 * hidden_dim_, dim_);
  layer.w2 = next(dim_, hidden_dim_);
  return layer;
}

PackedMatrix Model::classifier() const {
  const float *embedding = weights_.data() + n_layers_ * layer_count_;
  size_t skip = checkpoint_.layout().shared_classifier ? 0 : packed_count(vocab_size_, dim_);
  return PackedMatrix{embedding + skip, pi_panel_count(vocab_size_), dim_};
}

void Model::embed(size_t token, float *x) const {
  const float *embedding = weights_.data() + n_layers_ * layer_count_;
  for (size_t j = 0; j < dim_; j++) x[j] = embedding[pi_packed_index(dim_, token, j)];
}

}  // namespace proofinfer
