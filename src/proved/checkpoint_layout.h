/* From a checkpoint's header and the file's size to the place of every tensor: the only way to a tensor's bytes. For every header and
 * every size the result is an error or a layout whose tensors are ordered, disjoint and inside the file (docs/proof.md). */
#ifndef PROOFINFER_PROVED_CHECKPOINT_LAYOUT_H
#define PROOFINFER_PROVED_CHECKPOINT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Formats. */
#define PI_FORMAT_LEGACY 0

/* Bytes of the legacy header: seven int32. */
#define PI_LEGACY_HEADER_BYTES 28

/* What a header says, as read: nothing is checked yet. */
typedef struct {
  int32_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len; /* legacy: negative vocab_size = separate classifier */
} pi_checkpoint_header;

/* The kinds of tensor, in legacy file order; every kind but the first and the last two holds n_layers tensors. */
enum {
  PI_EMBEDDING,
  PI_ATTENTION_NORM,
  PI_WQ,
  PI_WK,
  PI_WV,
  PI_WO,
  PI_FFN_NORM,
  PI_W1,
  PI_W2,
  PI_W3,
  PI_FINAL_NORM,
  PI_ROPE_TABLES, /* unused by the format's readers: seq_len * head_size floats to skip */
  PI_CLASSIFIER,
  PI_TENSOR_KINDS
};

/* Where the tensors of one kind are: `tensors` of them, one after another, each rows x columns floats. */
typedef struct {
  uint64_t offset;       /* of the first one, in bytes */
  uint64_t tensor_bytes; /* of each */
  uint64_t rows, columns;
  uint64_t tensors; /* 0: the file has none of this kind */
} pi_tensor_span;

/* Checked hyper-parameters and places. */
typedef struct {
  uint64_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len;
  uint64_t head_size, kv_dim; /* dim / n_heads; head_size * n_kv_heads */
  int shared_classifier;
  pi_tensor_span spans[PI_TENSOR_KINDS];
  uint64_t file_bytes; /* the exact size that the header asks for */
} pi_checkpoint_layout;

/* Why a header is refused. */
typedef enum {
  PI_LAYOUT_OK,
  PI_LAYOUT_DIM,                /* dim < 1 */
  PI_LAYOUT_HIDDEN_DIM,         /* hidden_dim < 1 */
  PI_LAYOUT_N_LAYERS,           /* n_layers < 1 */
  PI_LAYOUT_N_HEADS,            /* n_heads < 1 */
  PI_LAYOUT_N_KV_HEADS,         /* n_kv_heads < 1 */
  PI_LAYOUT_VOCAB_SIZE,         /* vocab_size 0 or INT32_MIN */
  PI_LAYOUT_SEQ_LEN,            /* seq_len < 1 */
  PI_LAYOUT_HEADS_DIVIDE_DIM,   /* dim % n_heads != 0 */
  PI_LAYOUT_KV_HEADS_DIVIDE,    /* n_heads % n_kv_heads != 0 */
  PI_LAYOUT_HEAD_SIZE_EVEN,     /* head_size odd */
  PI_LAYOUT_OVERFLOW,           /* the sizes exceed 2^63 - 1 bytes; *kind says where */
} pi_layout_result;

/* Fills *layout from the header. `kind` receives the tensor kind for PI_LAYOUT_OVERFLOW. The layout is complete only for PI_LAYOUT_OK; the caller
 * compares file_bytes with the file's size before it reads. */
pi_layout_result pi_checkpoint_plan(const pi_checkpoint_header *header, pi_checkpoint_layout *layout, int *kind);

/* The first kind whose last byte lies beyond file_size, or PI_TENSOR_KINDS. */
int pi_checkpoint_first_missing(const pi_checkpoint_layout *layout, uint64_t file_size);

#ifdef __cplusplus
}
#endif

#endif
