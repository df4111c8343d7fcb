#include "proved/checkpoint_layout.h"

#include "proved/checked.h"

/* Hyper-parameters as they stand in the header: each positive, dividing where division follows. */
static pi_layout_result check_header(const pi_checkpoint_header *h, pi_checkpoint_layout *layout) {
  if (h->dim < 1) return PI_LAYOUT_DIM;
  if (h->hidden_dim < 1) return PI_LAYOUT_HIDDEN_DIM;
  if (h->n_layers < 1) return PI_LAYOUT_N_LAYERS;
  if (h->n_heads < 1) return PI_LAYOUT_N_HEADS;
  if (h->n_kv_heads < 1) return PI_LAYOUT_N_KV_HEADS;
  if (h->vocab_size == 0 || h->vocab_size == INT32_MIN) return PI_LAYOUT_VOCAB_SIZE;
  if (h->seq_len < 1) return PI_LAYOUT_SEQ_LEN;
  if (h->dim % h->n_heads != 0) return PI_LAYOUT_HEADS_DIVIDE_DIM;
  if (h->n_heads % h->n_kv_heads != 0) return PI_LAYOUT_KV_HEADS_DIVIDE;
  if (h->dim / h->n_heads % 2 != 0) return PI_LAYOUT_HEAD_SIZE_EVEN;
  layout->dim = (uint64_t)h->dim;
  layout->hidden_dim = (uint64_t)h->hidden_dim;
  layout->n_layers = (uint64_t)h->n_layers;
  layout->n_heads = (uint64_t)h->n_heads;
  layout->n_kv_heads = (uint64_t)h->n_kv_heads;
  layout->vocab_size = (uint64_t)(h->vocab_size < 0 ? -h->vocab_size : h->vocab_size);
  layout->seq_len = (uint64_t)h->seq_len;
  layout->head_size = layout->dim / layout->n_heads;
  layout->kv_dim = layout->head_size * layout->n_kv_heads;
  layout->shared_classifier = h->vocab_size > 0;
  return PI_LAYOUT_OK;
}

/* Puts `tensors` float32 tensors of rows x columns at *end and moves *end behind them. */
static int place(pi_tensor_span *span, uint64_t tensors, uint64_t rows, uint64_t columns, uint64_t *end) {
  uint64_t elements, all;
  span->offset = *end;
  span->tensors = tensors;
  span->rows = rows;
  span->columns = columns;
  return pi_mul_checked(rows, columns, &elements) && pi_mul_checked(elements, 4, &span->tensor_bytes) &&
         pi_mul_checked(span->tensor_bytes, tensors, &all) && pi_add_checked(*end, all, end);
}

/* The shape of a kind: tensors, rows, columns. */
static void kind_shape(const pi_checkpoint_layout *l, int kind, uint64_t *tensors, uint64_t *rows, uint64_t *columns) {
  *tensors = l->n_layers;
  *rows = 1;
  *columns = l->dim;
  switch (kind) {
    case PI_EMBEDDING: *tensors = 1, *rows = l->vocab_size; break;
    case PI_WQ:
    case PI_WO: *rows = l->dim; break;
    case PI_WK:
    case PI_WV: *rows = l->kv_dim; break;
    case PI_W1:
    case PI_W3: *rows = l->hidden_dim; break;
    case PI_W2: *rows = l->dim, *columns = l->hidden_dim; break;
    case PI_FINAL_NORM: *tensors = 1; break;
    case PI_ROPE_TABLES: *tensors = 1, *rows = l->seq_len, *columns = l->head_size; break;
    case PI_CLASSIFIER: *tensors = l->shared_classifier ? 0 : 1, *rows = l->vocab_size; break;
    default: break; /* the norms */
  }
}

pi_layout_result pi_checkpoint_plan(const pi_checkpoint_header *header, pi_checkpoint_layout *layout, int *kind) {
  pi_layout_result result = check_header(header, layout);
  if (result != PI_LAYOUT_OK) return result;
  uint64_t end = PI_LEGACY_HEADER_BYTES;
  for (int k = 0; k < PI_TENSOR_KINDS; k++) {
    uint64_t tensors, rows, columns;
    kind_shape(layout, k, &tensors, &rows, &columns);
    if (!place(&layout->spans[k], tensors, rows, columns, &end)) {
      *kind = k;
      return PI_LAYOUT_OVERFLOW;
    }
  }
  layout->file_bytes = end;
  return PI_LAYOUT_OK;
}

int pi_checkpoint_first_missing(const pi_checkpoint_layout *layout, uint64_t file_size) {
  for (int k = 0; k < PI_TENSOR_KINDS; k++) {
    const pi_tensor_span *span = &layout->spans[k];
    if (span->offset + span->tensor_bytes * span->tensors > file_size) return k;
  }
  return PI_TENSOR_KINDS;
}
