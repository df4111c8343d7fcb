#include "proved/checkpoint_layout.h"

#include "proved/checked.h"

/* Hyper-parameters as they stand in the header: each positive, dividing where division follows. */
static pi_layout_result check_shape(const pi_checkpoint_header *h) {
  if (h->dim < 1) return PI_LAYOUT_DIM;
  if (h->hidden_dim < 1) return PI_LAYOUT_HIDDEN_DIM;
  if (h->n_layers < 1) return PI_LAYOUT_N_LAYERS;
  if (h->n_heads < 1) return PI_LAYOUT_N_HEADS;
  if (h->n_kv_heads < 1) return PI_LAYOUT_N_KV_HEADS;
  if (h->vocab_size == 0 || h->vocab_size == INT32_MIN) return PI_LAYOUT_VOCAB_SIZE;
  if (h->format != PI_FORMAT_LEGACY && h->vocab_size < 0) return PI_LAYOUT_VOCAB_SIZE;
  if (h->seq_len < 1) return PI_LAYOUT_SEQ_LEN;
  if (h->dim % h->n_heads != 0) return PI_LAYOUT_HEADS_DIVIDE_DIM;
  if (h->n_heads % h->n_kv_heads != 0) return PI_LAYOUT_KV_HEADS_DIVIDE;
  if (h->dim / h->n_heads % 2 != 0) return PI_LAYOUT_HEAD_SIZE_EVEN;
  return PI_LAYOUT_OK;
}

/* What versions 1 and 2 add. */
static pi_layout_result check_version_fields(const pi_checkpoint_header *h) {
  if (h->format == PI_FORMAT_LEGACY) return PI_LAYOUT_OK;
  if (h->shared_classifier != 0 && h->shared_classifier != 1) return PI_LAYOUT_SHARED_FLAG;
  if (h->format != PI_FORMAT_V2) return PI_LAYOUT_OK;
  if (h->group_size < 1 || h->group_size > PI_MAX_GROUP_SIZE) return PI_LAYOUT_GROUP_SIZE;
  if (h->dim % h->group_size != 0) return PI_LAYOUT_GROUP_DIVIDES_DIM;
  if (h->hidden_dim % h->group_size != 0) return PI_LAYOUT_GROUP_DIVIDES_HIDDEN;
  return PI_LAYOUT_OK;
}

/* The checked numbers, in the layout's own types. */
static void take_shape(const pi_checkpoint_header *h, pi_checkpoint_layout *layout) {
  layout->format = h->format;
  layout->dim = (uint64_t)h->dim;
  layout->hidden_dim = (uint64_t)h->hidden_dim;
  layout->n_layers = (uint64_t)h->n_layers;
  layout->n_heads = (uint64_t)h->n_heads;
  layout->n_kv_heads = (uint64_t)h->n_kv_heads;
  layout->vocab_size = (uint64_t)(h->vocab_size < 0 ? -h->vocab_size : h->vocab_size);
  layout->seq_len = (uint64_t)h->seq_len;
  layout->head_size = layout->dim / layout->n_heads;
  layout->kv_dim = layout->head_size * layout->n_kv_heads;
  layout->group_size = h->format == PI_FORMAT_V2 ? (uint64_t)h->group_size : 0;
  layout->shared_classifier = h->format == PI_FORMAT_LEGACY ? h->vocab_size > 0 : h->shared_classifier;
}

/* Puts span->tensors tensors of span->rows x span->columns weights at *end and moves *end behind them. group_size 0: float32. */
static int place(pi_tensor_span *span, uint64_t group_size, uint64_t *end) {
  uint64_t weights, all;
  span->offset = *end;
  span->scales_bytes = 0;
  if (!pi_mul_checked(span->rows, span->columns, &weights)) return 0;
  if (group_size == 0) {
    if (!pi_mul_checked(weights, 4, &span->tensor_bytes)) return 0;
  } else {
    if (!pi_mul_checked(weights / group_size, 4, &span->scales_bytes)) return 0;
    if (!pi_add_checked(weights, span->scales_bytes, &span->tensor_bytes)) return 0;
  }
  return pi_mul_checked(span->tensor_bytes, span->tensors, &all) && pi_add_checked(*end, all, end);
}

/* The shape of a kind, and whether it is quantized in version 2. */
static int kind_shape(const pi_checkpoint_layout *l, int kind, pi_tensor_span *span) {
  span->tensors = l->n_layers;
  span->rows = 1;
  span->columns = l->dim;
  switch (kind) {
    case PI_EMBEDDING: span->tensors = 1, span->rows = l->vocab_size; return 1;
    case PI_WQ:
    case PI_WO: span->rows = l->dim; return 1;
    case PI_WK:
    case PI_WV: span->rows = l->kv_dim; return 1;
    case PI_W1:
    case PI_W3: span->rows = l->hidden_dim; return 1;
    case PI_W2: span->rows = l->dim, span->columns = l->hidden_dim; return 1;
    case PI_FINAL_NORM: span->tensors = 1; return 0;
    case PI_ROPE_TABLES:
      span->tensors = l->format == PI_FORMAT_LEGACY ? 1 : 0;
      span->rows = l->seq_len;
      span->columns = l->head_size;
      return 0;
    case PI_CLASSIFIER: span->tensors = l->shared_classifier ? 0 : 1, span->rows = l->vocab_size; return 1;
    default: return 0; /* the norms of the layers */
  }
}

int pi_checkpoint_kind_at(int32_t format, int i) {
  static const int versions[PI_TENSOR_KINDS] = {
      PI_ATTENTION_NORM, PI_FFN_NORM,  PI_FINAL_NORM, PI_EMBEDDING, PI_WQ, PI_WK, PI_WV, PI_WO, PI_W1, PI_W2, PI_W3,
      PI_ROPE_TABLES,    PI_CLASSIFIER};
  return format == PI_FORMAT_LEGACY ? i : versions[i];
}

pi_layout_result pi_checkpoint_plan(const pi_checkpoint_header *header, pi_checkpoint_layout *layout, int *kind) {
  pi_layout_result result = check_shape(header);
  if (result == PI_LAYOUT_OK) result = check_version_fields(header);
  if (result != PI_LAYOUT_OK) return result;
  take_shape(header, layout);
  uint64_t end = header->format == PI_FORMAT_LEGACY ? PI_LEGACY_HEADER_BYTES : PI_VERSION_HEADER_BYTES;
  for (int i = 0; i < PI_TENSOR_KINDS; i++) {
    int k = pi_checkpoint_kind_at(header->format, i);
    int quantized = kind_shape(layout, k, &layout->spans[k]);
    if (!place(&layout->spans[k], quantized ? layout->group_size : 0, &end)) {
      *kind = k;
      return PI_LAYOUT_OVERFLOW;
    }
  }
  layout->file_bytes = end;
  return PI_LAYOUT_OK;
}

int pi_checkpoint_first_missing(const pi_checkpoint_layout *layout, uint64_t file_size) {
  for (int i = 0; i < PI_TENSOR_KINDS; i++) {
    int k = pi_checkpoint_kind_at(layout->format, i);
    const pi_tensor_span *span = &layout->spans[k];
    if (span->offset + span->tensor_bytes * span->tensors > file_size) return k;
  }
  return PI_TENSOR_KINDS;
}
