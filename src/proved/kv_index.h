/* Where the KV cache keeps its elements: the index map, proved in bounds and equal to the stated formula (docs/proof.md).
 *
 * A page holds PI_PAGE_POSITIONS positions of every layer and kv head. For each (layer, kv head) it has a region of
 * 2 * PI_PAGE_POSITIONS * head_size floats: first the keys in blocks of PI_KEY_BLOCK positions side by side,
 * [PI_PAGE_POSITIONS / PI_KEY_BLOCK][head_size][PI_KEY_BLOCK], then the values by position, [PI_PAGE_POSITIONS][head_size]. */
#ifndef PROOFINFER_PROVED_KV_INDEX_H
#define PROOFINFER_PROVED_KV_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "proved/lemmas.h"

#define PI_PAGE_POSITIONS 64
#define PI_KEY_BLOCK 16

typedef struct {
  size_t n_layers, n_kv_heads, kv_mul, head_size; /* kv_mul = n_heads / n_kv_heads */
} pi_kv_shape;

/*@ // The formula: the place of each element of each key and value in a page, from the shape's fields.
    logic integer KvPageCount(integer n_layers, integer n_kv_heads, integer head_size) =
      n_layers * n_kv_heads * (2 * PI_PAGE_POSITIONS) * head_size;
    logic integer KvRegion(integer n_kv_heads, integer head_size, integer layer, integer kv_head) =
      (layer * n_kv_heads + kv_head) * (2 * PI_PAGE_POSITIONS) * head_size;
    logic integer KvKey(integer head_size, integer position, integer e) =
      (position / PI_KEY_BLOCK * head_size + e) * PI_KEY_BLOCK + position % PI_KEY_BLOCK;
    logic integer KvValue(integer head_size, integer position, integer e) = position * head_size + e;

    // A shape whose pages can be addressed, in bytes too.
    predicate KvShape(integer n_layers, integer n_kv_heads, integer kv_mul, integer head_size) =
      0 < n_layers && 0 < n_kv_heads && 0 < kv_mul && 0 < head_size && n_kv_heads * kv_mul <= SIZE_MAX &&
      KvPageCount(n_layers, n_kv_heads, head_size) * 4 <= SIZE_MAX;

    predicate KvShapeOf(pi_kv_shape *s) = \valid_read(s) && KvShape(s->n_layers, s->n_kv_heads, s->kv_mul, s->head_size); */

/*@ ghost
  /@ requires 0 < n_layers && 0 < n_kv_heads && 0 < head_size;
     terminates \true;
     assigns \nothing;
     ensures slots_grow: n_layers <= n_layers * n_kv_heads;
     ensures page_grows: n_layers * n_kv_heads * 128 <= KvPageCount(n_layers, n_kv_heads, head_size);
     ensures region_fits: 128 * head_size <= KvPageCount(n_layers, n_kv_heads, head_size); @/
  static inline void pi_kv_slots(size_t n_layers, size_t n_kv_heads, size_t head_size) {
    /@ assert layers: n_layers * 1 <= n_layers * n_kv_heads; @/
    /@ assert positive: 0 <= n_layers * n_kv_heads * 128; @/
    /@ assert elements: n_layers * n_kv_heads * 128 * 1 <= n_layers * n_kv_heads * 128 * head_size; @/
    /@ assert one_slot: 1 <= n_layers * n_kv_heads; @/
    /@ assert one_region: 1 * (128 * head_size) <= (n_layers * n_kv_heads) * (128 * head_size); @/
  } */

/* Floats of one page. */
/*@ requires KvShapeOf(s);
    terminates \true;
    assigns \nothing;
    ensures page_formula: \result == KvPageCount(s->n_layers, s->n_kv_heads, s->head_size); */
static inline size_t pi_kv_page_count(const pi_kv_shape *s) {
  //@ ghost pi_kv_slots(s->n_layers, s->n_kv_heads, s->head_size);
  return s->n_layers * s->n_kv_heads * (2 * PI_PAGE_POSITIONS) * s->head_size;
}

/* The kv head that query head h reads. */
/*@ requires KvShapeOf(s);
    requires h < s->n_kv_heads * s->kv_mul;
    terminates \true;
    assigns \nothing;
    ensures gqa_formula: \result == h / s->kv_mul;
    ensures gqa_group: \result * s->kv_mul <= h < (\result + 1) * s->kv_mul;
    ensures gqa_in_range: \result < s->n_kv_heads; */
static inline size_t pi_kv_head(const pi_kv_shape *s, size_t h) { return h / s->kv_mul; }

/* The first float of the keys of (layer, kv head) in a page. */
/*@ requires KvShapeOf(s);
    requires layer < s->n_layers && kv_head < s->n_kv_heads;
    terminates \true;
    assigns \nothing;
    ensures keys_formula: \result == KvRegion(s->n_kv_heads, s->head_size, layer, kv_head);
    ensures keys_in_page: \result + 2 * PI_PAGE_POSITIONS * s->head_size <= KvPageCount(s->n_layers, s->n_kv_heads, s->head_size); */
static inline size_t pi_kv_keys(const pi_kv_shape *s, size_t layer, size_t kv_head) {
  //@ ghost pi_kv_slots(s->n_layers, s->n_kv_heads, s->head_size);
  //@ ghost pi_product_le(layer + 1, s->n_layers, s->n_kv_heads);
  //@ assert layer_below: layer * s->n_kv_heads + s->n_kv_heads <= s->n_layers * s->n_kv_heads;
  //@ assert slot_below: layer * s->n_kv_heads + kv_head + 1 <= s->n_layers * s->n_kv_heads;
  /*@ ghost pi_product_le((layer * s->n_kv_heads + kv_head + 1) * (2 * PI_PAGE_POSITIONS),
                          s->n_layers * s->n_kv_heads * (2 * PI_PAGE_POSITIONS), s->head_size); */
  /*@ assert region_below: KvRegion(s->n_kv_heads, s->head_size, layer, kv_head) + 2 * PI_PAGE_POSITIONS * s->head_size <=
        KvPageCount(s->n_layers, s->n_kv_heads, s->head_size); */
  return (layer * s->n_kv_heads + kv_head) * (2 * PI_PAGE_POSITIONS) * s->head_size;
}

/* The first float of the values of (layer, kv head) in a page. */
/*@ requires KvShapeOf(s);
    requires layer < s->n_layers && kv_head < s->n_kv_heads;
    terminates \true;
    assigns \nothing;
    ensures values_formula: \result == KvRegion(s->n_kv_heads, s->head_size, layer, kv_head) + PI_PAGE_POSITIONS * s->head_size;
    ensures values_in_page: \result + PI_PAGE_POSITIONS * s->head_size <= KvPageCount(s->n_layers, s->n_kv_heads, s->head_size); */
static inline size_t pi_kv_values(const pi_kv_shape *s, size_t layer, size_t kv_head) {
  return pi_kv_keys(s, layer, kv_head) + PI_PAGE_POSITIONS * s->head_size;
}

/* Element e of the key of a position within its page (0 to PI_PAGE_POSITIONS - 1), counted from pi_kv_keys. */
/*@ requires KvShapeOf(s);
    requires position < PI_PAGE_POSITIONS && e < s->head_size;
    terminates \true;
    assigns \nothing;
    ensures key_formula: \result == KvKey(s->head_size, position, e);
    ensures key_in_region: \result < PI_PAGE_POSITIONS * s->head_size; */
static inline size_t pi_kv_key_element(const pi_kv_shape *s, size_t position, size_t e) {
  //@ ghost pi_kv_slots(s->n_layers, s->n_kv_heads, s->head_size);
  //@ ghost pi_product_le(position / PI_KEY_BLOCK, 3, s->head_size);
  //@ assert block_below: position / PI_KEY_BLOCK * s->head_size + e + 1 <= 4 * s->head_size;
  return (position / PI_KEY_BLOCK * s->head_size + e) * PI_KEY_BLOCK + position % PI_KEY_BLOCK;
}

/* Element e of the value of a position within its page, counted from pi_kv_values. */
/*@ requires KvShapeOf(s);
    requires position < PI_PAGE_POSITIONS && e < s->head_size;
    terminates \true;
    assigns \nothing;
    ensures value_formula: \result == KvValue(s->head_size, position, e);
    ensures value_in_region: \result < PI_PAGE_POSITIONS * s->head_size; */
static inline size_t pi_kv_value_element(const pi_kv_shape *s, size_t position, size_t e) {
  //@ ghost pi_kv_slots(s->n_layers, s->n_kv_heads, s->head_size);
  //@ ghost pi_product_le(position, 63, s->head_size);
  return position * s->head_size + e;
}

#endif
