/* From a checkpoint's header to the place of every tensor: the only way to a tensor's bytes. For every header the result is an error or
 * a layout whose tensors are ordered, disjoint and inside file_bytes (docs/proof.md). */
#ifndef PROOFINFER_PROVED_CHECKPOINT_LAYOUT_H
#define PROOFINFER_PROVED_CHECKPOINT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Formats: llama2.c's legacy one, its version 1 (float32) and its version 2 (Q8_0 groups). */
#define PI_FORMAT_LEGACY 0
#define PI_FORMAT_V1 1
#define PI_FORMAT_V2 2

/* Bytes before the first tensor. */
#define PI_LEGACY_HEADER_BYTES 28
#define PI_VERSION_HEADER_BYTES 256

/* The largest group for which no sum of 8-bit products can leave int32: 65536 * 255 * 127 < 2^31 (255: a kernel may add 128 to weights). */
#define PI_MAX_GROUP_SIZE 65536

/* What a header says, as read: nothing is checked yet. */
typedef struct {
  int32_t format;                                                              /* PI_FORMAT_: known from the magic */
  int32_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len; /* legacy: negative vocab_size = separate classifier */
  int32_t shared_classifier;                                                   /* version 1 and 2: the flag byte */
  int32_t group_size;                                                          /* version 2 */
} pi_checkpoint_header;

/* The kinds of tensor; a kind with one tensor a layer holds n_layers of them, one after another. */
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
  PI_ROPE_TABLES, /* legacy: unused by the format's readers, seq_len * head_size floats to skip */
  PI_CLASSIFIER,
  PI_TENSOR_KINDS
};

/* Where the tensors of one kind are: `tensors` of them, one after another, each of rows x columns weights. */
typedef struct {
  uint64_t offset;       /* of the first one, in bytes */
  uint64_t tensor_bytes; /* of each */
  uint64_t rows, columns;
  uint64_t tensors; /* 0: the file has none of this kind */
  uint64_t
      scales_bytes; /* 0: float32 weights; else: int8 weights (rows * columns bytes), then this many bytes of float32 scales, one a group */
} pi_tensor_span;

/* Checked hyper-parameters and places. */
typedef struct {
  int32_t format;
  uint64_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len;
  uint64_t head_size, kv_dim; /* dim / n_heads; head_size * n_kv_heads */
  uint64_t group_size;        /* 0: not quantized; else it divides dim and hidden_dim and is at most PI_MAX_GROUP_SIZE */
  int shared_classifier;
  pi_tensor_span spans[PI_TENSOR_KINDS];
  uint64_t file_bytes; /* the exact size that the header asks for */
} pi_checkpoint_layout;

/* Why a header is refused. */
typedef enum {
  PI_LAYOUT_OK,
  PI_LAYOUT_DIM,                  /* dim < 1 */
  PI_LAYOUT_HIDDEN_DIM,           /* hidden_dim < 1 */
  PI_LAYOUT_N_LAYERS,             /* n_layers < 1 */
  PI_LAYOUT_N_HEADS,              /* n_heads < 1 */
  PI_LAYOUT_N_KV_HEADS,           /* n_kv_heads < 1 */
  PI_LAYOUT_VOCAB_SIZE,           /* vocab_size 0 or INT32_MIN; versions 1 and 2: < 1 */
  PI_LAYOUT_SEQ_LEN,              /* seq_len < 1 */
  PI_LAYOUT_HEADS_DIVIDE_DIM,     /* dim % n_heads != 0 */
  PI_LAYOUT_KV_HEADS_DIVIDE,      /* n_heads % n_kv_heads != 0 */
  PI_LAYOUT_HEAD_SIZE_EVEN,       /* head_size odd */
  PI_LAYOUT_SHARED_FLAG,          /* flag neither 0 nor 1 */
  PI_LAYOUT_GROUP_SIZE,           /* group_size < 1 or > PI_MAX_GROUP_SIZE */
  PI_LAYOUT_GROUP_DIVIDES_DIM,    /* dim % group_size != 0 */
  PI_LAYOUT_GROUP_DIVIDES_HIDDEN, /* hidden_dim % group_size != 0 */
  PI_LAYOUT_OVERFLOW              /* the sizes exceed 2^63 - 1 bytes; *kind says where */
} pi_layout_result;

/* Fills *layout from the header. *kind receives the tensor kind for PI_LAYOUT_OVERFLOW. The layout is complete only for PI_LAYOUT_OK; the
 * caller compares file_bytes with the file's size before it reads. */
pi_layout_result pi_checkpoint_plan(const pi_checkpoint_header *header, pi_checkpoint_layout *layout, int *kind);

/* The kind at place i in [0, PI_TENSOR_KINDS) of the file order of a format. */
int pi_checkpoint_kind_at(int32_t format, int i);

/* The first kind in file order whose last byte lies beyond file_size, or PI_TENSOR_KINDS. layout: one that pi_checkpoint_plan completed. */
int pi_checkpoint_first_missing(const pi_checkpoint_layout *layout, uint64_t file_size);

#ifdef __cplusplus
}
#endif

#endif
