#include "proved/checkpoint_layout.h"

/* Hyper-parameters as they stand in the header: each positive, dividing where division follows. */
/*@ requires \valid_read(h);
    terminates \true;
    assigns \nothing;
    ensures checked_shape: \result == PI_LAYOUT_OK ==> HeaderShape(h); */
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
/*@ requires \valid_read(h) && HeaderShape(h);
    terminates \true;
    assigns \nothing;
    ensures checked_version: \result == PI_LAYOUT_OK ==> HeaderVersion(h); */
static pi_layout_result check_version_fields(const pi_checkpoint_header *h) {
  if (h->format == PI_FORMAT_LEGACY) return PI_LAYOUT_OK;
  if (h->shared_classifier != 0 && h->shared_classifier != 1) return PI_LAYOUT_SHARED_FLAG;
  if (h->format != PI_FORMAT_V2) return PI_LAYOUT_OK;
  if (h->group_size < 1 || h->group_size > PI_MAX_GROUP_SIZE) return PI_LAYOUT_GROUP_SIZE;
  if (h->dim % h->group_size != 0) return PI_LAYOUT_GROUP_DIVIDES_DIM;
  if (h->hidden_dim % h->group_size != 0) return PI_LAYOUT_GROUP_DIVIDES_HIDDEN;
  return PI_LAYOUT_OK;
}

/* The checked numbers, in the layout's own types. Structures go by value here: the provers then need not reason about memory. */
/*@ requires \valid_read(h) && HeaderShape(h) && HeaderVersion(h);
    terminates \true;
    assigns \nothing;
    ensures taken_shape: LayoutShape(\result);
    ensures taken_format: \result.format == h->format; */
static pi_checkpoint_layout take_shape(const pi_checkpoint_header *h) {
  pi_checkpoint_layout layout = {0};
  layout.format = h->format;
  layout.dim = (uint64_t)h->dim;
  layout.hidden_dim = (uint64_t)h->hidden_dim;
  layout.n_layers = (uint64_t)h->n_layers;
  layout.n_heads = (uint64_t)h->n_heads;
  layout.n_kv_heads = (uint64_t)h->n_kv_heads;
  layout.vocab_size = (uint64_t)(h->vocab_size < 0 ? -h->vocab_size : h->vocab_size);
  layout.seq_len = (uint64_t)h->seq_len;
  layout.head_size = layout.dim / layout.n_heads;
  //@ assert heads: layout.head_size * layout.n_heads == layout.dim;
  //@ assert groups: layout.n_kv_heads <= layout.n_heads;
  //@ ghost pi_product_le(layout.n_kv_heads, layout.n_heads, layout.head_size);
  //@ ghost pi_product_le(1, layout.n_kv_heads, layout.head_size);
  layout.kv_dim = layout.head_size * layout.n_kv_heads;
  layout.group_size = h->format == PI_FORMAT_V2 ? (uint64_t)h->group_size : 0;
  layout.shared_classifier = h->format == PI_FORMAT_LEGACY ? h->vocab_size > 0 : h->shared_classifier;
  return layout;
}

/* The bytes of one tensor, and how many of them are scales. group_size 0: float32. */
/*@ requires \valid(scales_bytes) && \valid(tensor_bytes) && \separated(scales_bytes, tensor_bytes);
    terminates \true;
    assigns *scales_bytes, *tensor_bytes;
    ensures measured_bytes: \result != 0 ==> TensorBytes(rows, columns, group_size, *scales_bytes, *tensor_bytes);
    ensures measured_fits: \result != 0 ==> *tensor_bytes <= PI_SIZE_MAX; */
static int measure(uint64_t rows, uint64_t columns, uint64_t group_size, uint64_t *scales_bytes, uint64_t *tensor_bytes) {
  uint64_t weights, scales = 0;
  if (!pi_mul_checked(rows, columns, &weights)) return 0;
  if (group_size == 0) {
    *scales_bytes = 0;
    return pi_mul_checked(weights, 4, tensor_bytes);
  }
  if (!pi_mul_checked(weights / group_size, 4, &scales)) return 0;
  *scales_bytes = scales;
  return pi_add_checked(weights, scales, tensor_bytes);
}

/* The first byte behind the tensors of a span. */
/*@ requires SpanEnd(span) <= PI_SIZE_MAX;
    terminates \true;
    assigns \nothing;
    ensures span_end: \result == SpanEnd(span); */
static uint64_t span_end(pi_tensor_span span) { return span.offset + span.tensor_bytes * span.tensors; }

/* Where `tensors` tensors that begin at `begin` end. */
/*@ requires \valid(end);
    terminates \true;
    assigns *end;
    ensures placed_end: \result != 0 ==> *end == begin + tensor_bytes * tensors;
    ensures placed_fits: \result != 0 ==> begin <= *end <= PI_SIZE_MAX; */
static int place(uint64_t begin, uint64_t tensor_bytes, uint64_t tensors, uint64_t *end) {
  uint64_t all;
  return pi_mul_checked(tensor_bytes, tensors, &all) && pi_add_checked(begin, all, end);
}

/* The shape of a kind. */
/*@ requires LayoutShape(l) && 0 <= kind < PI_TENSOR_KINDS;
    terminates \true;
    assigns \nothing;
    ensures kind_shape: \result.tensors == KindTensors(l, kind) && \result.rows == KindRows(l, kind) && \result.columns == KindColumns(l, kind); */
static pi_tensor_span kind_shape(pi_checkpoint_layout l, int kind) {
  pi_tensor_span span = {0};
  span.tensors = l.n_layers;
  span.rows = 1;
  span.columns = l.dim;
  switch (kind) {
    case PI_EMBEDDING: span.tensors = 1, span.rows = l.vocab_size; break;
    case PI_WQ:
    case PI_WO: span.rows = l.dim; break;
    case PI_WK:
    case PI_WV: span.rows = l.kv_dim; break;
    case PI_W1:
    case PI_W3: span.rows = l.hidden_dim; break;
    case PI_W2: span.rows = l.dim, span.columns = l.hidden_dim; break;
    case PI_FINAL_NORM: span.tensors = 1; break;
    case PI_ROPE_TABLES:
      span.tensors = l.format == PI_FORMAT_LEGACY ? 1 : 0;
      span.rows = l.seq_len;
      span.columns = l.head_size;
      break;
    case PI_CLASSIFIER: span.tensors = l.shared_classifier ? 0 : 1, span.rows = l.vocab_size; break;
    default: break; /* the norms of the layers */
  }
  return span;
}

/* Whether a kind is quantized in version 2. */
/*@ terminates \true;
    assigns \nothing;
    ensures quantizes: \result != 0 <==> Quantizes(kind); */
static int quantizes(int kind) {
  return kind != PI_ATTENTION_NORM && kind != PI_FFN_NORM && kind != PI_FINAL_NORM && kind != PI_ROPE_TABLES;
}

int pi_checkpoint_kind_at(int32_t format, int i) {
  static const int versions[PI_TENSOR_KINDS] = {
      PI_ATTENTION_NORM, PI_FFN_NORM,  PI_FINAL_NORM, PI_EMBEDDING, PI_WQ, PI_WK, PI_WV, PI_WO, PI_W1, PI_W2, PI_W3,
      PI_ROPE_TABLES,    PI_CLASSIFIER};
  return format == PI_FORMAT_LEGACY ? i : versions[i];
}

/*@ ghost
  /@ requires Planned(l);
     terminates \true;
     assigns \nothing;
     ensures kv_shape: KvShapeOfLayout(l); @/
  static void kv_shape_fits(pi_checkpoint_layout l) {
    /@ assert groups: 1 <= l.n_heads / l.n_kv_heads; @/
    /@ assert kv_width: l.n_kv_heads * l.head_size == l.kv_dim; @/
    /@ assert page: KvPageCount(l.n_layers, l.n_kv_heads, l.head_size) == l.n_layers * l.kv_dim * 128; @/
    /@ assert wk: SpanRight(l, KindAt(l.format, l.format == 0 ? 3 : 5)); @/
    /@ assert wk_bytes: l.kv_dim * l.dim <= l.spans[3].tensor_bytes; @/
    /@ assert wk_end: l.spans[3].tensor_bytes * l.n_layers <= 0x7fffffffffffffff; @/
    pi_product_le(l.kv_dim * l.dim, l.spans[3].tensor_bytes, l.n_layers);
    /@ assert wk_weights: l.kv_dim * l.dim * l.n_layers <= 0x7fffffffffffffff; @/
    if (l.kv_dim < 1048576) {
      pi_product_le(l.kv_dim, 1048576, l.n_layers);
      /@ assert small: l.n_layers * l.kv_dim <= 1048576 * 2147483648; @/
    } else {
      pi_product_le(1048576, l.dim, l.kv_dim * l.n_layers);
      /@ assert large: l.kv_dim * l.n_layers * 1048576 <= 0x7fffffffffffffff; @/
    }
  } */

/*@ ghost
  /@ requires end % 4 == 0 && bytes % 4 == 0;
     terminates \true;
     assigns \nothing;
     ensures end_aligned: (end + bytes * count) % 4 == 0; @/
  static void aligned_end(uint64_t end, uint64_t bytes, uint64_t count) {
    /@ assert whole: bytes == 4 * (bytes / 4); @/
    /@ assert product: bytes * count == 4 * ((bytes / 4) * count); @/
  } */

/* Places one kind: everything that is proved of a span. */
/*@ requires LayoutShape(l) && 0 <= kind < PI_TENSOR_KINDS && \valid(span) && \valid(end) && \separated(span, end) && *end <= PI_SIZE_MAX;
    terminates \true;
    assigns *span, *end;
    ensures kind_placed_shape: \result != 0 ==> span->tensors == KindTensors(l, kind) && span->rows == KindRows(l, kind) &&
      span->columns == KindColumns(l, kind);
    ensures kind_placed_bytes: \result != 0 ==> (Quantizes(kind) ==> SpanBytes(*span, l.group_size)) && (!Quantizes(kind) ==> SpanBytes(*span, 0));
    ensures kind_placed_at: \result != 0 ==> span->offset == \old(*end) && SpanEnd(*span) == *end;
    ensures kind_placed_end: \result != 0 ==> \old(*end) <= *end <= PI_SIZE_MAX;
    ensures kind_placed_alignment: \result != 0 && \old(*end) % 4 == 0 && (l.group_size == 0 || !Quantizes(kind)) ==> *end % 4 == 0; */
static int place_kind(pi_checkpoint_layout l, int kind, pi_tensor_span *span, uint64_t *end) {
  pi_tensor_span made = kind_shape(l, kind);
  uint64_t begin = *end, group_size = quantizes(kind) ? l.group_size : 0;
  uint64_t scales_bytes, tensor_bytes, behind;
  if (!measure(made.rows, made.columns, group_size, &scales_bytes, &tensor_bytes)) return 0;
  if (!place(begin, tensor_bytes, made.tensors, &behind)) return 0;
  /*@ ghost if (begin % 4 == 0 && group_size == 0) {
    /@ assert four_a_weight: tensor_bytes == made.rows * made.columns * 4; @/
    aligned_end(begin, tensor_bytes, made.tensors);
  } */
  made.offset = begin;
  made.scales_bytes = scales_bytes;
  made.tensor_bytes = tensor_bytes;
  *span = made;
  *end = behind;
  return 1;
}

/*@ predicate SameShape(pi_checkpoint_layout a, pi_checkpoint_layout b) = a.format == b.format && a.dim == b.dim &&
      a.hidden_dim == b.hidden_dim && a.n_layers == b.n_layers && a.n_heads == b.n_heads && a.n_kv_heads == b.n_kv_heads &&
      a.vocab_size == b.vocab_size && a.seq_len == b.seq_len && a.head_size == b.head_size && a.kv_dim == b.kv_dim &&
      a.group_size == b.group_size && a.shared_classifier == b.shared_classifier; */
/*@ ghost
  /@ requires LayoutShape(a) && SameShape(a, b);
     terminates \true;
     assigns \nothing;
     ensures kept_shape: LayoutShape(b); @/
  static void keep_shape(pi_checkpoint_layout a, pi_checkpoint_layout b) {} */

/* Places every kind of a layout whose shape is checked; the kind that does not fit, or PI_TENSOR_KINDS. */
/*@ requires \valid(l) && LayoutShape(*l);
    terminates \true;
    assigns *l;
    ensures all_placed_range: 0 <= \result <= PI_TENSOR_KINDS;
    ensures all_placed: \result == PI_TENSOR_KINDS ==> Planned(*l); */
static int place_all(pi_checkpoint_layout *l) {
  pi_checkpoint_layout plan = *l;
  uint64_t end = plan.format == PI_FORMAT_LEGACY ? PI_LEGACY_HEADER_BYTES : PI_VERSION_HEADER_BYTES;
  /*@ loop invariant plan_range: 0 <= i <= PI_TENSOR_KINDS;
      loop invariant plan_shape: LayoutShape(plan);
      loop invariant plan_end: PI_LEGACY_HEADER_BYTES <= end <= PI_SIZE_MAX;
      loop invariant plan_inside: \forall integer j; 0 <= j < i ==>
        PI_LEGACY_HEADER_BYTES <= plan.spans[KindAt(plan.format, j)].offset && SpanEnd(plan.spans[KindAt(plan.format, j)]) <= end;
      loop invariant plan_ordered: \forall integer j, k; 0 <= j < k < i ==>
        SpanEnd(plan.spans[KindAt(plan.format, j)]) <= plan.spans[KindAt(plan.format, k)].offset;
      loop invariant plan_last: 0 < i ==> SpanEnd(plan.spans[KindAt(plan.format, i - 1)]) == end;
      loop invariant plan_aligned_end: end % 4 == 0 || (plan.group_size != 0 && 3 < i);
      loop invariant plan_right: \forall integer j; 0 <= j < i ==> SpanRight(plan, KindAt(plan.format, j));
      loop assigns i, end, plan.spans[0 .. PI_TENSOR_KINDS - 1];
      loop variant PI_TENSOR_KINDS - i; */
  for (int i = 0; i < PI_TENSOR_KINDS; i++) {
    int kind = pi_checkpoint_kind_at(plan.format, i);
    pi_tensor_span span;
    if (!place_kind(plan, kind, &span, &end)) return kind;
    //@ ghost pi_checkpoint_layout before = plan;
    plan.spans[kind] = span;
    //@ ghost keep_shape(before, plan);
  }
  //@ ghost pi_checkpoint_layout placed = plan;
  plan.file_bytes = end;
  //@ ghost keep_shape(placed, plan);
  /*@ assert placed_inside: \forall integer j; 0 <= j < PI_TENSOR_KINDS ==>
        PI_LEGACY_HEADER_BYTES <= plan.spans[KindAt(plan.format, j)].offset && SpanEnd(plan.spans[KindAt(plan.format, j)]) <= plan.file_bytes; */
  /*@ assert placed_ordered: \forall integer j, k; 0 <= j < k < PI_TENSOR_KINDS ==>
        SpanEnd(plan.spans[KindAt(plan.format, j)]) <= plan.spans[KindAt(plan.format, k)].offset; */
  //@ assert placed_to: PlacedTo(plan, PI_TENSOR_KINDS, plan.file_bytes);
  //@ assert placed_last: SpanEnd(plan.spans[PI_CLASSIFIER]) == plan.file_bytes;
  //@ assert placed_right: \forall integer i; 0 <= i < PI_TENSOR_KINDS ==> SpanRight(plan, KindAt(plan.format, i));
  *l = plan;
  return PI_TENSOR_KINDS;
}

pi_layout_result pi_checkpoint_plan(const pi_checkpoint_header *header, pi_checkpoint_layout *layout, int *kind) {
  pi_layout_result result = check_shape(header);
  if (result == PI_LAYOUT_OK) result = check_version_fields(header);
  if (result != PI_LAYOUT_OK) return result;
  *layout = take_shape(header);
  int unplaced = place_all(layout);
  if (unplaced != PI_TENSOR_KINDS) {
    *kind = unplaced;
    return PI_LAYOUT_OVERFLOW;
  }
  //@ ghost kv_shape_fits(*layout);
  return PI_LAYOUT_OK;
}

int pi_checkpoint_first_missing(const pi_checkpoint_layout *layout, uint64_t file_size) {
  pi_checkpoint_layout plan = *layout;
  /*@ loop invariant missing_range: 0 <= i <= PI_TENSOR_KINDS;
      loop invariant missing_before: \forall integer j; 0 <= j < i ==> SpanEnd(plan.spans[KindAt(plan.format, j)]) <= file_size;
      loop assigns i;
      loop variant PI_TENSOR_KINDS - i; */
  for (int i = 0; i < PI_TENSOR_KINDS; i++) {
    int k = pi_checkpoint_kind_at(plan.format, i);
    pi_tensor_span span = plan.spans[k];
    //@ assert missing_inside: SpanEnd(span) <= plan.file_bytes;
    if (span_end(span) > file_size) return k;
  }
  //@ assert missing_last: SpanEnd(plan.spans[KindAt(plan.format, 12)]) <= file_size;
  return PI_TENSOR_KINDS;
}

/* The first byte of a tensor. */
/*@ requires SpanEnd(span) <= PI_SIZE_MAX && index < span.tensors;
    terminates \true;
    assigns \nothing;
    ensures tensor_begin: \result == TensorBegin(span, index);
    ensures tensor_inside: span.offset <= \result && \result + span.tensor_bytes <= SpanEnd(span); */
static uint64_t tensor_begin(pi_tensor_span span, uint64_t index) {
  //@ ghost pi_product_le(index + 1, span.tensors, span.tensor_bytes);
  //@ assert inside: index * span.tensor_bytes + span.tensor_bytes <= span.tensor_bytes * span.tensors;
  return span.offset + index * span.tensor_bytes;
}

uint64_t pi_checkpoint_rows_offset(const pi_tensor_span *span, uint64_t group_size, uint64_t index, uint64_t row, uint64_t row_count) {
  pi_tensor_span s = *span;
  uint64_t begin = tensor_begin(s, index);
  (void)row_count;
  //@ ghost pi_product_le(1, s.rows, s.columns);
  //@ assert columns_fit: s.columns * 4 <= SIZE_MAX || group_size != 0;
  uint64_t row_bytes = group_size == 0 ? s.columns * 4 : s.columns;
  //@ ghost pi_product_le(row + row_count, s.rows, row_bytes);
  //@ assert all_rows: s.rows * row_bytes == s.tensor_bytes - s.scales_bytes;
  //@ assert these_rows: row * row_bytes + row_count * row_bytes <= s.tensor_bytes - s.scales_bytes;
  return begin + row * row_bytes;
}

/*@ ghost
  /@ requires 1 <= group_size && columns % group_size == 0 && rows * columns <= PI_SIZE_MAX;
     terminates \true;
     assigns \nothing;
     ensures whole_groups: rows * columns / group_size == rows * (columns / group_size); @/
  static void whole_groups(uint64_t rows, uint64_t columns, uint64_t group_size) {
    /@ assert columns_of: columns == columns / group_size * group_size; @/
    /@ assert product_of: rows * columns == (rows * (columns / group_size)) * group_size; @/
    pi_product_le(columns / group_size, columns, rows);
    uint64_t groups = rows * (columns / group_size), quotient = rows * columns / group_size;
    /@ assert groups_of: groups * group_size == rows * columns; @/
    /@ assert quotient_of: quotient * group_size <= rows * columns < quotient * group_size + group_size; @/
    if (quotient < groups) pi_product_le(quotient + 1, groups, group_size);
    if (groups < quotient) pi_product_le(groups + 1, quotient, group_size);
  } */

uint64_t pi_checkpoint_scales_offset(const pi_tensor_span *span, uint64_t group_size, uint64_t index, uint64_t row, uint64_t row_count) {
  pi_tensor_span s = *span;
  uint64_t begin = tensor_begin(s, index);
  uint64_t row_scales = s.columns / group_size;
  (void)row_count;
  //@ ghost whole_groups(s.rows, s.columns, group_size);
  //@ ghost pi_product_le(row + row_count, s.rows, row_scales);
  //@ assert all_scales: s.rows * row_scales * 4 == s.scales_bytes;
  //@ assert these_scales: row * row_scales * 4 + row_count * row_scales * 4 <= s.scales_bytes;
  //@ assert weights_fit: s.rows * s.columns <= s.tensor_bytes;
  return begin + s.rows * s.columns + row * row_scales * 4;
}
