/* From a checkpoint's header to the place of every tensor: the only way to a tensor's bytes. For every header the result is an error or
 * a layout whose tensors are ordered, disjoint and inside file_bytes (docs/proof.md). */
#ifndef PROOFINFER_PROVED_CHECKPOINT_LAYOUT_H
#define PROOFINFER_PROVED_CHECKPOINT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "proved/checked.h"
#include "proved/kv_index.h"
#include "proved/pack_index.h"

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

/*@ // What the checks of a header leave: each number positive, divisions exact.
    predicate HeaderShape(pi_checkpoint_header *h) = 1 <= h->dim && 1 <= h->hidden_dim && 1 <= h->n_layers && 1 <= h->n_heads &&
      1 <= h->n_kv_heads && 1 <= h->seq_len && h->vocab_size != 0 && h->vocab_size != INT32_MIN &&
      (h->format != PI_FORMAT_LEGACY ==> 1 <= h->vocab_size) && h->dim % h->n_heads == 0 && h->n_heads % h->n_kv_heads == 0 &&
      h->dim / h->n_heads % 2 == 0;
    predicate HeaderVersion(pi_checkpoint_header *h) = (h->format != PI_FORMAT_LEGACY ==> 0 <= h->shared_classifier <= 1) &&
      (h->format == PI_FORMAT_V2 ==> 1 <= h->group_size <= PI_MAX_GROUP_SIZE && h->dim % h->group_size == 0 && h->hidden_dim % h->group_size == 0);

    predicate LayoutShape(pi_checkpoint_layout l) = 1 <= l.dim <= INT32_MAX && 1 <= l.hidden_dim <= INT32_MAX &&
      1 <= l.n_layers <= INT32_MAX && 1 <= l.n_heads <= l.dim && 1 <= l.n_kv_heads <= l.n_heads && 1 <= l.vocab_size <= INT32_MAX &&
      1 <= l.seq_len <= INT32_MAX && 2 <= l.head_size <= l.dim && l.head_size % 2 == 0 && l.dim == l.head_size * l.n_heads &&
      l.n_heads % l.n_kv_heads == 0 && l.kv_dim == l.head_size * l.n_kv_heads && 1 <= l.kv_dim <= l.dim &&
      0 <= l.shared_classifier <= 1 && l.group_size <= PI_MAX_GROUP_SIZE && (l.group_size != 0 <==> l.format == PI_FORMAT_V2) &&
      (l.group_size != 0 ==> l.dim % l.group_size == 0 && l.hidden_dim % l.group_size == 0);

    // The file order of the kinds.
    logic integer KindAt(integer format, integer i) =
      format == PI_FORMAT_LEGACY ? i :
      i == 0 ? PI_ATTENTION_NORM : i == 1 ? PI_FFN_NORM : i == 2 ? PI_FINAL_NORM : i == 3 ? PI_EMBEDDING :
      i == 4 ? PI_WQ : i == 5 ? PI_WK : i == 6 ? PI_WV : i == 7 ? PI_WO : i == 8 ? PI_W1 : i == 9 ? PI_W2 : i == 10 ? PI_W3 :
      i == 11 ? PI_ROPE_TABLES : PI_CLASSIFIER;

    lemma KindAtOnce: \forall integer format, i, j; 0 <= i < j < PI_TENSOR_KINDS ==> KindAt(format, i) != KindAt(format, j);

    // The shape of each kind.
    predicate IsNorm(integer kind) = kind == PI_ATTENTION_NORM || kind == PI_FFN_NORM || kind == PI_FINAL_NORM;
    predicate Quantizes(integer kind) = !IsNorm(kind) && kind != PI_ROPE_TABLES;
    logic integer KindTensors(pi_checkpoint_layout l, integer kind) =
      kind == PI_EMBEDDING || kind == PI_FINAL_NORM ? 1 :
      kind == PI_ROPE_TABLES ? (l.format == PI_FORMAT_LEGACY ? 1 : 0) :
      kind == PI_CLASSIFIER ? (l.shared_classifier != 0 ? 0 : 1) : l.n_layers;
    logic integer KindRows(pi_checkpoint_layout l, integer kind) =
      kind == PI_EMBEDDING || kind == PI_CLASSIFIER ? l.vocab_size :
      kind == PI_WQ || kind == PI_WO || kind == PI_W2 ? l.dim :
      kind == PI_WK || kind == PI_WV ? l.kv_dim :
      kind == PI_W1 || kind == PI_W3 ? l.hidden_dim :
      kind == PI_ROPE_TABLES ? l.seq_len : 1;
    logic integer KindColumns(pi_checkpoint_layout l, integer kind) =
      kind == PI_W2 ? l.hidden_dim : kind == PI_ROPE_TABLES ? l.head_size : l.dim;
    predicate SpanShape(pi_checkpoint_layout l, integer kind) =
      l.spans[kind].tensors == KindTensors(l, kind) && l.spans[kind].rows == KindRows(l, kind) && l.spans[kind].columns == KindColumns(l, kind);

    // The bytes of a tensor: float32, or int8 and one float32 scale a group.
    predicate TensorBytes(integer rows, integer columns, integer group_size, integer scales_bytes, integer tensor_bytes) =
      (group_size == 0 ==> scales_bytes == 0 && tensor_bytes == rows * columns * 4) &&
      (group_size != 0 ==> scales_bytes == rows * columns / group_size * 4 && tensor_bytes == rows * columns + scales_bytes);
    predicate SpanBytes(pi_tensor_span s, integer group_size) = TensorBytes(s.rows, s.columns, group_size, s.scales_bytes, s.tensor_bytes);
    logic integer SpanEnd(pi_tensor_span s) = s.offset + s.tensor_bytes * s.tensors;

    // Rows of a tensor of a span.
    logic integer TensorBegin(pi_tensor_span s, integer index) = s.offset + index * s.tensor_bytes;
    logic integer WeightsBytes(integer columns, integer group_size) = group_size == 0 ? columns * 4 : columns;
    predicate RowsOf(pi_tensor_span s, integer group_size, integer index, integer row, integer row_count) = SpanBytes(s, group_size) &&
      SpanEnd(s) <= PI_SIZE_MAX && 0 <= index < s.tensors && 1 <= s.rows && 0 <= row && 0 <= row_count && row + row_count <= s.rows &&
      0 <= group_size && (group_size != 0 ==> s.columns % group_size == 0);

    // Ordered and disjoint in file order, behind the header, none behind `end`.
    predicate PlacedTo(pi_checkpoint_layout l, integer count, integer end) =
      (\forall integer i; 0 <= i < count ==>
        PI_LEGACY_HEADER_BYTES <= l.spans[KindAt(l.format, i)].offset && SpanEnd(l.spans[KindAt(l.format, i)]) <= end) &&
      (\forall integer i, j; 0 <= i < j < count ==>
        SpanEnd(l.spans[KindAt(l.format, i)]) <= l.spans[KindAt(l.format, j)].offset);
    predicate Aligned(pi_checkpoint_layout l, integer kind) =
      l.spans[kind].tensors != 0 && (l.group_size == 0 || !Quantizes(kind)) ==> l.spans[kind].offset % 4 == 0;
    predicate SpanRight(pi_checkpoint_layout l, integer kind) = SpanShape(l, kind) && Aligned(l, kind) &&
      (Quantizes(kind) ==> SpanBytes(l.spans[kind], l.group_size)) && (!Quantizes(kind) ==> SpanBytes(l.spans[kind], 0));
    predicate Planned(pi_checkpoint_layout l) = LayoutShape(l) && l.file_bytes <= PI_SIZE_MAX &&
      PlacedTo(l, PI_TENSOR_KINDS, l.file_bytes) && SpanEnd(l.spans[PI_CLASSIFIER]) == l.file_bytes &&
      \forall integer i; 0 <= i < PI_TENSOR_KINDS ==> SpanRight(l, KindAt(l.format, i));

    // The shape of the KV cache that the session makes of a layout is one that kv_index.h asks for.
    predicate KvShapeOfLayout(pi_checkpoint_layout l) = KvShape(l.n_layers, l.n_kv_heads, l.n_heads / l.n_kv_heads, l.head_size) &&
      l.n_heads / l.n_kv_heads * l.n_kv_heads == l.n_heads; */

/* Fills *layout from the header. *kind receives the tensor kind for PI_LAYOUT_OVERFLOW. The layout is complete only for PI_LAYOUT_OK; the
 * caller compares file_bytes with the file's size before it reads. */
/*@ requires \valid_read(header) && \valid(layout) && \valid(kind) && \separated(header, layout, kind);
    terminates \true;
    assigns *layout, *kind;
    ensures plan_accepts_checked: \result == PI_LAYOUT_OK ==> HeaderShape{Pre}(header) && HeaderVersion{Pre}(header);
    ensures plan_layout: \result == PI_LAYOUT_OK ==> Planned(*layout);
    ensures plan_kv_shape: \result == PI_LAYOUT_OK ==> KvShapeOfLayout(*layout); */
pi_layout_result pi_checkpoint_plan(const pi_checkpoint_header *header, pi_checkpoint_layout *layout, int *kind);

/* The kind at place i in [0, PI_TENSOR_KINDS) of the file order of a format. */
/*@ requires 0 <= i < PI_TENSOR_KINDS;
    terminates \true;
    assigns \nothing;
    ensures kind_order: \result == KindAt(format, i);
    ensures kind_in_range: 0 <= \result < PI_TENSOR_KINDS; */
int pi_checkpoint_kind_at(int32_t format, int i);

/* The first kind in file order whose last byte lies beyond file_size, or PI_TENSOR_KINDS. layout: one that pi_checkpoint_plan completed. */
/*@ requires \valid_read(layout) && Planned(*layout);
    terminates \true;
    assigns \nothing;
    ensures missing_range: 0 <= \result <= PI_TENSOR_KINDS;
    ensures missing_none: \result == PI_TENSOR_KINDS <==> (*layout).file_bytes <= file_size;
    ensures missing_kind: \result < PI_TENSOR_KINDS ==> SpanEnd((*layout).spans[\result]) > file_size; */
int pi_checkpoint_first_missing(const pi_checkpoint_layout *layout, uint64_t file_size);

/* Where rows [row, row + row_count) of tensor `index` of a span begin in the file. group_size: 0 for float32, else the layout's. */
/*@ requires \valid_read(span) && RowsOf(*span, group_size, index, row, row_count);
    terminates \true;
    assigns \nothing;
    ensures rows_formula: \result == TensorBegin(*span, index) + row * WeightsBytes(span->columns, group_size);
    ensures rows_inside: TensorBegin(*span, index) <= \result &&
      \result + row_count * WeightsBytes(span->columns, group_size) <= TensorBegin(*span, index) + span->tensor_bytes - span->scales_bytes <=
        SpanEnd(*span); */
uint64_t pi_checkpoint_rows_offset(const pi_tensor_span *span, uint64_t group_size, uint64_t index, uint64_t row, uint64_t row_count);

/* Where the scales of these rows begin, columns / group_size floats a row. */
/*@ requires \valid_read(span) && RowsOf(*span, group_size, index, row, row_count) && group_size != 0;
    terminates \true;
    assigns \nothing;
    ensures scales_formula: \result == TensorBegin(*span, index) + span->rows * span->columns + row * (span->columns / group_size) * 4;
    ensures scales_inside: TensorBegin(*span, index) + span->tensor_bytes - span->scales_bytes <= \result &&
      \result + row_count * (span->columns / group_size) * 4 <= TensorBegin(*span, index) + span->tensor_bytes <= SpanEnd(*span); */
uint64_t pi_checkpoint_scales_offset(const pi_tensor_span *span, uint64_t group_size, uint64_t index, uint64_t row, uint64_t row_count);

#ifdef __cplusplus
}
#endif

#endif
