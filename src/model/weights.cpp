#include <string.h>

#include <atomic>

#include "base/checksum.h"
#include "base/fp_environment.h"
#include "kernels/block_layout.h"
#include "model/model.h"
#include "proved/checked.h"
#include "proved/elementary.h"
#include "proved/pack_index.h"

namespace proofinfer {

namespace {

// Tensors that read the same input, in the order of their rows.
struct MatrixPlan {
  int kinds[MatrixSet::kMaxParts];
  size_t kind_count;
};

constexpr MatrixPlan kLayerPlans[] = {{{PI_WQ, PI_WK, PI_WV}, 3}, {{PI_WO}, 1}, {{PI_W1, PI_W3}, 2}, {{PI_W2}, 1}};
constexpr MatrixSet LayerWeights::*kLayerSets[] = {&LayerWeights::qkv, &LayerWeights::o, &LayerWeights::w13, &LayerWeights::w2};
constexpr size_t kLayerSetCount = sizeof(kLayerPlans) / sizeof(kLayerPlans[0]);
constexpr MatrixPlan kEmbeddingPlan = {{PI_EMBEDDING}, 1}, kClassifierPlan = {{PI_CLASSIFIER}, 1};

// Each matrix begins at a multiple of this.
constexpr uint64_t kMatrixAlignment = 64;
uint64_t aligned(uint64_t bytes) { return (bytes + kMatrixAlignment - 1) / kMatrixAlignment * kMatrixAlignment; }

ElementType element_type(uint32_t gguf_type) {
  switch (gguf_type) {
    case 1: return ElementType::kF16;
    case 2: return ElementType::kQ4_0;
    case 3: return ElementType::kQ4_1;
    case 6: return ElementType::kQ5_0;
    case 7: return ElementType::kQ5_1;
    case 8: return ElementType::kQ8_0;
    case 12: return ElementType::kQ4_K;
    case 13: return ElementType::kQ5_K;
    case 14: return ElementType::kQ6_K;
    case 30: return ElementType::kBF16;
    default: return ElementType::kF32;
  }
}

}  // namespace

ElementType Model::type_of(int kind, size_t index) const {
  if (file_.is_gguf()) return element_type(file_.gguf().tensor(kind, index).type);
  return group_size_ ? ElementType::kQ8Groups : ElementType::kF32;
}

size_t Model::rows_of(int kind) const {
  switch (kind) {
    case PI_WQ: return q_dim();
    case PI_WK:
    case PI_WV: return kv_dim();
    case PI_W1:
    case PI_W3: return hidden_dim_;
    case PI_EMBEDDING:
    case PI_CLASSIFIER: return vocab_size_;
    default: return dim_;
  }
}

size_t Model::columns_of(int kind) const { return kind == PI_WO ? q_dim() : kind == PI_W2 ? hidden_dim_ : dim_; }

size_t Model::panel_bytes(ElementType type, size_t columns) const {
  if (type == ElementType::kQ8Groups) return columns / group_size_ * pi_q8_block_bytes(group_size_);
  return element_panel_bytes(type, columns);
}

// *bytes: grows by what the set's matrices take.
Status Model::lay_out_set(const int *kinds, size_t kind_count, size_t index, MatrixSet *set, uint64_t *bytes, Failure *failure) const {
  *set = MatrixSet{};
  size_t rows_before = 0;  // in the output
  for (size_t i = 0; i < kind_count;) {
    PackedMatrix *matrix = &set->parts[set->part_count++];
    matrix->type = type_of(kinds[i], index);
    matrix->columns = columns_of(kinds[i]);
    matrix->panel_bytes = panel_bytes(matrix->type, matrix->columns);
    size_t rows = 0;
    for (; i < kind_count && type_of(kinds[i], index) == matrix->type; i++) {
      set->row_at[i] = rows_before + rows;
      rows += rows_of(kinds[i]);
    }
    matrix->panel_count = pi_panel_count(rows);
    rows_before += matrix->panel_count * PI_PANEL_ROWS;
    uint64_t taken = 0;
    if (!pi_mul_checked(matrix->panel_count, matrix->panel_bytes, &taken) || !pi_add_checked(*bytes, aligned(taken), bytes) ||
        *bytes > SIZE_MAX)
      return fail(failure, kMemory, "weights: more bytes than this machine can address");
  }
  return kOk;
}

Status Model::lay_out(Failure *failure) {
  uint64_t bytes = 0;
  Status status = layers_.allocate(account(), n_layers_, "table of matrices", failure);
  for (size_t l = 0; l < n_layers_ && status == kOk; l++) {
    for (size_t i = 0; i < kLayerSetCount && status == kOk; i++)
      status = lay_out_set(kLayerPlans[i].kinds, kLayerPlans[i].kind_count, l, &(layers_[l].*kLayerSets[i]), &bytes, failure);
    size_t qkv = status == kOk ? layers_[l].qkv.output_rows() : 0, w13 = status == kOk ? layers_[l].w13.output_rows() : 0;
    if (qkv > qkv_rows_) qkv_rows_ = qkv;
    if (w13 > w13_rows_) w13_rows_ = w13;
  }
  if (status == kOk) status = lay_out_set(kEmbeddingPlan.kinds, 1, 0, &embedding_, &bytes, failure);
  if (status == kOk && !file_.shape().shared_classifier) status = lay_out_set(kClassifierPlan.kinds, 1, 0, &classifier_, &bytes, failure);
  if (status != kOk) return status;
  weights_bytes_ = static_cast<size_t>(bytes);
  norms_count_ = (2 * n_layers_ + 1) * dim_;
  return each_matrix(this, [this](PackedMatrix &matrix) {
    (element_is_blocks(matrix.type) ? takes_blocks_ : matrix.type == ElementType::kQ8Groups ? takes_groups_ : takes_floats_) = true;
    return kOk;
  });
}

template <typename AnyModel, typename Visit>
Status Model::each_matrix(AnyModel *model, const Visit &visit) {
  auto each_part = [&visit](auto &set) {
    Status status = kOk;
    for (size_t i = 0; i < set.part_count && status == kOk; i++) status = visit(set.parts[i]);
    return status;
  };
  Status status = kOk;
  for (size_t l = 0; l < model->n_layers_; l++)
    for (size_t i = 0; i < kLayerSetCount && status == kOk; i++) status = each_part(model->layers_[l].*kLayerSets[i]);
  if (status == kOk) status = each_part(model->embedding_);
  if (status == kOk) status = each_part(model->classifier_);
  return status;
}

void Model::place_matrices() {
  const unsigned char *at = weights_at_;
  (void)each_matrix(this, [&at](PackedMatrix &matrix) {
    matrix.panels = at;
    at += aligned(matrix.panel_count * matrix.panel_bytes);
    return kOk;
  });
  for (size_t l = 0; l < n_layers_; l++) {
    layers_[l].attention_norm = norms_at_ + 2 * l * dim_;
    layers_[l].ffn_norm = layers_[l].attention_norm + dim_;
  }
}

// Fills a Model from a file, panel by panel, the threads sharing the panels: no second copy of the weights ever exists.
struct Model::Loader {
  Model *model;
  Source *source;
  Cancel *cancel;
  Team *team;
  Failure *failure;
  size_t readers = 1;  // threads of the team that read
  // Of each thread, one behind the other, a panel's rows as the file has them.
  Buffer<unsigned char> rows_{};  // [16][row of the widest kind], or float32 scales [16][widest / group_size]
  Buffer<int8_t> quants_{};       // int8 [16][widest], of matrices of the type kQ8Groups
  Buffer<Failure> failures_{};
  std::atomic<uint64_t> done_bytes{0};
  std::atomic<bool> stop{false};  // one thread failed: the others need not go on

  Status allocate();
  Status read_norm(int kind, size_t index, float *to);
  Status read_norms();
  Status read_all();
  // Packs the matrices of a set of tensors.
  Status pack_set(const MatrixPlan &plan, size_t index, MatrixSet *set);
  Status pack_matrix(const MatrixPlan &plan, size_t index, const PackedMatrix &matrix);
  // On thread `thread`, whose failure is failures_[thread]: panels of a matrix; the rows of one of them that belong to one tensor.
  Status pack_panels(const MatrixPlan &plan, size_t index, const PackedMatrix &matrix, Range panels, size_t thread);
  Status pack_rows(int kind, size_t index, ElementType type, size_t row, size_t count, unsigned char *panel, size_t lane, size_t thread);
  Status read_gguf_rows(const GgufTensor &tensor, ElementType type, size_t row, size_t count, unsigned char *panel, size_t lane,
                        unsigned char *rows, Failure *to);
  Status advance(uint64_t bytes, Failure *to);
  // In the model's own memory, which is not const.
  unsigned char *own(const unsigned char *panels) { return model->weights_.data() + (panels - model->weights_.data()); }
};

Status Model::Loader::allocate() {
  const Model &m = *model;
  size_t gs = m.group_size_;
  Status status = model->weights_.allocate(model->account(), m.weights_bytes_, "weights", failure);
  if (status == kOk) status = model->norms_.allocate(model->account(), m.norms_count_, "norm weights", failure);
  if (status != kOk) return status;
  model->take_weights(model->weights_.data(), model->weights_.count(), model->norms_.data(), model->norms_.count());
  size_t widest = 0, widest_bytes = 0;
  (void)each_matrix(model, [&](const PackedMatrix &matrix) {
    size_t columns = matrix.columns;
    size_t bytes = gs ? columns / gs * sizeof(float) : columns / element_block_columns(matrix.type) * element_block_bytes(matrix.type);
    if (columns > widest) widest = columns;
    if (bytes > widest_bytes) widest_bytes = bytes;
    return kOk;
  });
  // Rows can be as long as the file: no more threads read than have room in a sixteenth of the weights. One always does.
  size_t row_bytes = gs ? widest + widest_bytes : widest_bytes;
  size_t most = m.weights_bytes_ / 16 / PI_PANEL_ROWS / row_bytes;
  readers = team->count() < most ? team->count() : most > 0 ? most : 1;
  status = rows_.allocate(model->account(), readers * static_cast<size_t>(aligned(PI_PANEL_ROWS * widest_bytes)), "read buffer", failure);
  if (status == kOk && gs) status = quants_.allocate(model->account(), readers * PI_PANEL_ROWS * widest, "read buffer", failure);
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

Status Model::Loader::read_norm(int kind, size_t index, float *to) {
  const ModelFile &file = model->file_;
  if (!file.is_gguf()) return file.checkpoint().read_rows(source, kind, index, 0, 1, to, failure);
  return file.gguf().read_floats(source, file.gguf().tensor(kind, index), 0, 1, to, failure);
}

Status Model::Loader::read_norms() {
  const Model &m = *model;
  for (size_t l = 0; l < m.n_layers_; l++) {
    float *to = model->norms_.data() + 2 * l * m.dim_;
    Status status = read_norm(PI_ATTENTION_NORM, l, to);
    if (status == kOk) status = read_norm(PI_FFN_NORM, l, to + m.dim_);
    if (status == kOk) status = advance(2 * m.dim_ * sizeof(float), failure);
    if (status != kOk) return status;
  }
  return read_norm(PI_FINAL_NORM, 0, model->norms_.data() + 2 * m.n_layers_ * m.dim_);
}

// Rows of a tensor of a GGUF file into lanes of a panel.
Status Model::Loader::read_gguf_rows(const GgufTensor &tensor, ElementType type, size_t row, size_t count, unsigned char *panel,
                                     size_t lane, unsigned char *rows, Failure *to) {
  Status status = model->file_.gguf().read_rows(source, tensor, row, count, rows, to);
  if (status != kOk) return status;
  size_t n = static_cast<size_t>(tensor.columns);
  if (element_is_blocks(type)) {
    model->kernels_->pack_blocks(type, rows, count, n / PI_GROUP_COLUMNS, lane, panel);
  } else if (element_is_half(type)) {
    to_host_u16(reinterpret_cast<uint16_t *>(rows), count * n);
    model->kernels_->pack_half(reinterpret_cast<uint16_t *>(rows), count, n, reinterpret_cast<uint16_t *>(panel) + lane);
  } else {
    to_host_f32(reinterpret_cast<float *>(rows), count * n);
    model->kernels_->pack_f32(reinterpret_cast<float *>(rows), count, n, reinterpret_cast<float *>(panel) + lane);
  }
  return kOk;
}

// Rows [row, row + count) of a tensor into lanes lane .. lane + count - 1 of a panel.
Status Model::Loader::pack_rows(int kind, size_t index, ElementType type, size_t row, size_t count, unsigned char *panel, size_t lane,
                                size_t thread) {
  unsigned char *rows = rows_.data() + rows_.count() / readers * thread;
  Failure *to = &failures_[thread];
  if (model->file_.is_gguf()) {
    const GgufTensor &tensor = model->file_.gguf().tensor(kind, index);
    Status status = read_gguf_rows(tensor, type, row, count, panel, lane, rows, to);
    return status == kOk ? advance(GgufLlama::row_bytes(tensor) * count, to) : status;
  }
  const Checkpoint &checkpoint = model->file_.checkpoint();
  const pi_tensor_span &span = checkpoint.layout().spans[kind];
  size_t gs = model->group_size_, n = static_cast<size_t>(span.columns);
  float *floats = reinterpret_cast<float *>(rows);
  Status status;
  if (gs == 0) {
    status = checkpoint.read_rows(source, kind, index, row, count, floats, to);
    if (status == kOk) model->kernels_->pack_f32(floats, count, n, reinterpret_cast<float *>(panel) + lane);
  } else {
    int8_t *quants = quants_.data() + quants_.count() / readers * thread;
    status = checkpoint.read_quantized_rows(source, kind, index, row, count, quants, floats, to);
    if (status == kOk) model->kernels_->pack_q8(quants, floats, count, n / gs, gs, lane, reinterpret_cast<int8_t *>(panel));
  }
  return status == kOk ? advance(span.tensor_bytes / span.rows * count, to) : status;
}

// The rows behind the matrix's last one, to the end of its panel, are zeros, and so are the bytes behind the last panel.
Status Model::Loader::pack_panels(const MatrixPlan &plan, size_t index, const PackedMatrix &matrix, Range panels, size_t thread) {
  size_t one = matrix.panel_bytes;
  unsigned char *at = own(matrix.panels);
  if (panels.begin < panels.end && panels.end == matrix.panel_count)
    memset(at + (panels.end - 1) * one, 0, aligned(panels.end * one) - (panels.end - 1) * one);
  size_t base = 0;  // the tensor's first row in the matrix
  for (size_t i = 0; i < plan.kind_count; i++) {
    size_t end = base + model->rows_of(plan.kinds[i]);
    size_t row = panels.begin * PI_PANEL_ROWS > base ? panels.begin * PI_PANEL_ROWS : base;
    while (row < end && row < panels.end * PI_PANEL_ROWS) {
      size_t lane = row % PI_PANEL_ROWS, count = PI_PANEL_ROWS - lane;
      if (count > end - row) count = end - row;
      if (stop.load(std::memory_order_relaxed)) return kOk;
      Status status = pack_rows(plan.kinds[i], index, matrix.type, row - base, count, at + row / PI_PANEL_ROWS * one, lane, thread);
      if (status != kOk) return status;
      row += count;
    }
    base = end;
  }
  return kOk;
}

Status Model::Loader::pack_set(const MatrixPlan &plan, size_t index, MatrixSet *set) {
  Status status = kOk;
  size_t done = 0;
  for (size_t part = 0; part < set->part_count && status == kOk; part++) {
    MatrixPlan of_part = {};
    for (; done < plan.kind_count && model->type_of(plan.kinds[done], index) == set->parts[part].type; done++)
      of_part.kinds[of_part.kind_count++] = plan.kinds[done];
    status = pack_matrix(of_part, index, set->parts[part]);
  }
  return status;
}

Status Model::Loader::pack_matrix(const MatrixPlan &plan, size_t index, const PackedMatrix &matrix) {
  struct Task {
    Loader *loader;
    const MatrixPlan *plan;
    size_t index;
    const PackedMatrix *matrix;
  };
  Task task{this, &plan, index, &matrix};
  for (size_t t = 0; t < failures_.count(); t++) failures_[t] = Failure{};
  team->run(
      [](void *context, size_t thread, size_t count) {
        const Task &t = *static_cast<const Task *>(context);
        size_t reading = t.loader->readers < count ? t.loader->readers : count;
        if (thread >= reading) return;
        Range panels = share_of(t.matrix->panel_count, 1, thread, reading);
        if (t.loader->pack_panels(*t.plan, t.index, *t.matrix, panels, thread) != kOk)
          t.loader->stop.store(true, std::memory_order_relaxed);
      },
      &task);
  for (size_t t = 0; t < failures_.count(); t++)
    if (failures_[t].status != kOk) {
      *failure = failures_[t];
      return failure->status;
    }
  return kOk;
}

Status Model::Loader::read_all() {
  Status status = read_norms();
  for (size_t l = 0; l < model->n_layers_; l++)
    for (size_t i = 0; i < kLayerSetCount && status == kOk; i++) status = pack_set(kLayerPlans[i], l, &(model->layers_[l].*kLayerSets[i]));
  if (status == kOk) status = pack_set(kEmbeddingPlan, 0, &model->embedding_);
  if (status == kOk) status = pack_set(kClassifierPlan, 0, &model->classifier_);
  if (status == kOk && cancel) cancel->set_progress(source->size_bytes(), source->size_bytes());
  return status;
}

void Model::take_weights(const unsigned char *weights, size_t weights_bytes, const float *norms, size_t norms_count) {
  weights_at_ = weights, weights_bytes_ = weights_bytes;
  norms_at_ = norms, norms_count_ = norms_count;
  place_matrices();
}

void Model::take_shape() {
  const ModelShape &shape = file_.shape();
  dim_ = static_cast<size_t>(shape.dim);
  hidden_dim_ = static_cast<size_t>(shape.hidden_dim);
  n_layers_ = static_cast<size_t>(shape.n_layers);
  n_heads_ = static_cast<size_t>(shape.n_heads);
  n_kv_heads_ = static_cast<size_t>(shape.n_kv_heads);
  vocab_size_ = static_cast<size_t>(shape.vocab_size);
  seq_len_ = static_cast<size_t>(shape.seq_len);
  head_size_ = static_cast<size_t>(shape.head_size);
  group_size_ = static_cast<size_t>(file_.group_size());
}

// docs/arithmetic.md: 1 / base ^ (2 i / head_size), divided by the factor of all frequencies and by the file's own factors where there are such.
Status Model::make_rope_frequencies(Source *source, Failure *failure) {
  size_t count = head_size_ / 2;
  Status status = rope_frequencies_.allocate(account(), count, "rope frequencies", failure);
  Buffer<float> factors;
  const GgufTensor *tensor = file_.is_gguf() ? file_.gguf().rope_factors() : nullptr;
  if (status == kOk && tensor) status = factors.allocate(account(), count, "rope factors", failure);
  if (status == kOk && tensor) status = file_.gguf().read_floats(source, *tensor, 0, 1, factors.data(), failure);
  if (status != kOk) return status;
  FpScope contract;
  float base = file_.shape().rope_base, factor = file_.shape().rope_factor;
  for (size_t i = 0; i < count; i++) {
    float frequency = 1.0f / pi_powf(base, static_cast<float>(2 * i) / static_cast<float>(head_size_));
    if (factor != 1.0f) frequency = frequency / factor;
    rope_frequencies_[i] = tensor ? frequency / factors[i] : frequency;
  }
  return kOk;
}

Status Model::load(Source *source, const Settings &settings, Cancel *cancel, Model **model, Failure *failure) {
  Ref<Model> loaded(Object::make<Model>(settings.hooks, settings.memory_limit_bytes, "model", failure));
  if (!loaded) return failure->status;
  Model *m = loaded.get();
  m->share_from_bytes_ = settings.share_from_bytes;
  m->kernels_ = settings.kernels ? settings.kernels : kernels_best();
  Status status = m->file_.open(source, m->account(), failure);
  if (status != kOk) return status;
  m->take_shape();
  status = m->pool_.create(m->account(), static_cast<size_t>(settings.threads), failure);
  if (status == kOk) status = m->make_rope_frequencies(source, failure);
  if (status == kOk) status = m->lay_out(failure);
  if (status != kOk) return status;
  if (m->file_.packed()) {
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

static uint32_t load_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// The value of little-endian word i of packed panels. On big-endian machines floats and 16-bit numbers lie in memory the other way round, bytes do not.
static uint64_t packed_word(const unsigned char *panels, ElementType type, size_t group_size, size_t i) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  bool groups = type == ElementType::kQ8Groups;
  if (!groups && element_halves_at(type, 8 * i)) {
    uint16_t quad[4];
    memcpy(quad, panels + 8 * i, sizeof(quad));
    return quad[0] | uint64_t(quad[1]) << 16 | uint64_t(quad[2]) << 32 | uint64_t(quad[3]) << 48;
  }
  size_t block = groups ? pi_q8_block_bytes(group_size) : 0;
  if (type == ElementType::kF32 || (groups && 8 * i % block >= pi_q8_scale(group_size, 0))) {
    uint32_t pair[2];
    memcpy(pair, panels + 8 * i, sizeof(pair));
    return pair[0] | uint64_t(pair[1]) << 32;
  }
#else
  (void)type, (void)group_size;
#endif
  return load_u64(panels + 8 * i);
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
  Checksum sum;
  const size_t shape[] = {dim_, hidden_dim_, n_layers_, n_heads_, n_kv_heads_, vocab_size_, seq_len_, group_size_};
  for (size_t number : shape) sum.add_word(number);
  sum.add_word(file_.shape().shared_classifier);
  if (file_.is_gguf()) add_gguf_shape(&sum);
  const unsigned char *norms = reinterpret_cast<const unsigned char *>(norms_at_);
  sum.add(norms_count_ / 2, [norms](size_t i) { return packed_word(norms, ElementType::kF32, 0, i); });  // dim is even
  if (norms_count_ % 2) sum.add_word(load_bits(norms_at_[norms_count_ - 1]));
  size_t done = 0;
  Status status = each_matrix(this, [&](const PackedMatrix &matrix) {
    // Panels are a multiple of the checksum's lanes, so that parts do not show.
    for (size_t panel = 0; panel < matrix.panel_count; panel++) {
      const unsigned char *at = matrix.panels + panel * matrix.panel_bytes;
      sum.add(matrix.panel_bytes / 8, [this, at, &matrix](size_t i) { return packed_word(at, matrix.type, group_size_, i); });
      done += matrix.panel_bytes;
      if (cancelled(cancel)) return fail(failure, kCancelled, "verifying was cancelled after %zu of %zu bytes", done, weights_bytes_);
    }
    return kOk;
  });
  *value = sum.value() ? sum.value() : 1;
  return status;
}

// What files of llama2.c do not say.
void Model::add_gguf_shape(Checksum *sum) const {
  sum->add_word(head_size_);
  sum->add_word(load_bits(rms_epsilon()));
  for (size_t i = 0; i < head_size_ / 2; i++) sum->add_word(load_bits(rope_frequencies_[i]));
  (void)each_matrix(this, [sum](const PackedMatrix &matrix) {
    sum->add_word(static_cast<uint64_t>(matrix.type));
    return kOk;
  });
}

void Model::embed(size_t token, float *x) const {
  const PackedMatrix &matrix = embedding_.parts[0];
  const unsigned char *panel = matrix.panels + token / PI_PANEL_ROWS * matrix.panel_bytes;
  size_t row = token % PI_PANEL_ROWS;
  if (matrix.type != ElementType::kQ8Groups) return dequantize_row(matrix.type, panel, row, dim_, x);
  for (size_t g = 0; g < dim_ / group_size_; g++) {
    const unsigned char *block = panel + g * pi_q8_block_bytes(group_size_);
    float scale;
    memcpy(&scale, block + pi_q8_scale(group_size_, row), sizeof(scale));
    for (size_t c = 0; c < group_size_; c++)
      x[g * group_size_ + c] = static_cast<float>(static_cast<int8_t>(block[pi_q8_weight(row, c)])) * scale;
  }
}

}  // namespace proofinfer
