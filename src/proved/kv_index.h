/* Where the KV cache keeps its elements: the index map, proved in bounds and equal to the stated formula (docs/proof.md).
 *
 * A page holds PI_PAGE_POSITIONS positions of every layer and kv head. For each (layer, kv head) it has a region of
 * 2 * PI_PAGE_POSITIONS * head_size floats: first the keys in blocks of PI_KEY_BLOCK positions side by side,
 * [PI_PAGE_POSITIONS / PI_KEY_BLOCK][head_size][PI_KEY_BLOCK], then the values by position, [PI_PAGE_POSITIONS][head_size]. */
#ifndef PROOFINFER_PROVED_KV_INDEX_H
#define PROOFINFER_PROVED_KV_INDEX_H

#include <stddef.h>

#define PI_PAGE_POSITIONS 64
#define PI_KEY_BLOCK 16

typedef struct {
  size_t n_layers, n_kv_heads, kv_mul, head_size; /* kv_mul = n_heads / n_kv_heads */
} pi_kv_shape;

/* Floats of one page. */
static inline size_t pi_kv_page_count(const pi_kv_shape *s) {
  return s->n_layers * s->n_kv_heads * (2 * PI_PAGE_POSITIONS) * s->head_size;
}

/* The kv head that query head h reads. */
static inline size_t pi_kv_head(const pi_kv_shape *s, size_t h) { return h / s->kv_mul; }

/* The first float of the keys of (layer, kv head) in a page. */
static inline size_t pi_kv_keys(const pi_kv_shape *s, size_t layer, size_t kv_head) {
  return (layer * s->n_kv_heads + kv_head) * (2 * PI_PAGE_POSITIONS) * s->head_size;
}

/* The first float of the values of (layer, kv head) in a page. */
static inline size_t pi_kv_values(const pi_kv_shape *s, size_t layer, size_t kv_head) {
  return pi_kv_keys(s, layer, kv_head) + PI_PAGE_POSITIONS * s->head_size;
}

/* Element e of the key of a position within its page (0 to PI_PAGE_POSITIONS - 1), counted from pi_kv_keys. */
static inline size_t pi_kv_key_element(const pi_kv_shape *s, size_t position, size_t e) {
  return (position / PI_KEY_BLOCK * s->head_size + e) * PI_KEY_BLOCK + position % PI_KEY_BLOCK;
}

/* Element e of the value of a position within its page, counted from pi_kv_values. */
static inline size_t pi_kv_value_element(const pi_kv_shape *s, size_t position, size_t e) { return position * s->head_size + e; }

#endif
