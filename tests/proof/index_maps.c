/* What the index maps of src/proved promise together, stated over the shipped functions and proved: nothing here is compiled into the
 * library. Each function below is a theorem: its `ensures` follows from its `requires` because its body is proved. */
#include "proved/kv_index.h"
#include "proved/pack_index.h"

/*@ requires 0 < m && r1 < m && r2 < m && q1 * m + r1 == q2 * m + r2;
    terminates \true;
    assigns \nothing;
    ensures unique_quotient: q1 == q2 && r1 == r2; */
static void unique_quotient(size_t q1, size_t r1, size_t q2, size_t r2, size_t m) {
  if (q1 < q2) {
    //@ ghost pi_product_le(q1 + 1, q2, m);
    //@ assert less: q1 * m + r1 < q2 * m;
    return;
  }
  if (q2 < q1) {
    //@ ghost pi_product_le(q2 + 1, q1, m);
    //@ assert greater: q2 * m + r2 < q1 * m;
    return;
  }
  (void)r1, (void)r2, (void)m;
}

typedef struct {
  size_t layer, kv_head, position, element;
  int is_value; /* else a key */
} kv_element;

/*@ predicate KvElement(pi_kv_shape *s, kv_element *a) = \valid_read(a) && a->layer < s->n_layers && a->kv_head < s->n_kv_heads &&
      a->position < PI_PAGE_POSITIONS && a->element < s->head_size; */

/* Where an element stands in its region. */
/*@ requires KvShapeOf(s) && KvElement(s, a);
    terminates \true;
    assigns \nothing;
    ensures within_region: \result < 2 * PI_PAGE_POSITIONS * s->head_size;
    ensures within_value: a->is_value ==> \result == PI_PAGE_POSITIONS * s->head_size + KvValue(s->head_size, a->position, a->element);
    ensures within_key: !a->is_value ==> \result == KvKey(s->head_size, a->position, a->element) < PI_PAGE_POSITIONS * s->head_size; */
static size_t place_in_region(const pi_kv_shape *s, const kv_element *a) {
  //@ ghost pi_kv_slots(s->n_layers, s->n_kv_heads, s->head_size);
  //@ ghost pi_product_le(1, s->n_layers * s->n_kv_heads, s->head_size);
  //@ assert s->head_size <= s->n_layers * s->n_kv_heads * s->head_size;
  //@ assert (2 * PI_PAGE_POSITIONS) * s->head_size <= KvPageCount(s->n_layers, s->n_kv_heads, s->head_size);
  if (a->is_value) return PI_PAGE_POSITIONS * s->head_size + pi_kv_value_element(s, a->position, a->element);
  return pi_kv_key_element(s, a->position, a->element);
}

/* Where an element stands in its page, by the shipped functions. */
/*@ requires KvShapeOf(s) && KvElement(s, a);
    terminates \true;
    assigns \nothing;
    ensures place_value: a->is_value ==> \result == KvRegion(s->n_kv_heads, s->head_size, a->layer, a->kv_head) +
      PI_PAGE_POSITIONS * s->head_size + KvValue(s->head_size, a->position, a->element);
    ensures place_key: !a->is_value ==> \result == KvRegion(s->n_kv_heads, s->head_size, a->layer, a->kv_head) +
      KvKey(s->head_size, a->position, a->element);
    ensures place_in_page: \result < KvPageCount(s->n_layers, s->n_kv_heads, s->head_size); */
static size_t place_in_page(const pi_kv_shape *s, const kv_element *a) {
  if (a->is_value) return pi_kv_values(s, a->layer, a->kv_head) + pi_kv_value_element(s, a->position, a->element);
  return pi_kv_keys(s, a->layer, a->kv_head) + pi_kv_key_element(s, a->position, a->element);
}

/* No two elements of a page share a place. */
/*@ requires KvShapeOf(s) && KvElement(s, a) && KvElement(s, b);
    terminates \true;
    assigns \nothing;
    ensures kv_disjoint: \result == 0 ==> a->layer == b->layer && a->kv_head == b->kv_head && (a->is_value != 0 <==> b->is_value != 0) &&
      a->position == b->position && a->element == b->element; */
static int kv_places_differ(const pi_kv_shape *s, const kv_element *a, const kv_element *b) {
  size_t n = s->head_size;
  //@ ghost pi_kv_slots(s->n_layers, s->n_kv_heads, s->head_size);
  //@ ghost pi_product_le(1, s->n_layers * s->n_kv_heads, s->head_size);
  //@ assert one_slot: 2 * PI_PAGE_POSITIONS * s->head_size <= KvPageCount(s->n_layers, s->n_kv_heads, s->head_size);
  //@ ghost pi_product_le(a->layer + 1, s->n_layers, s->n_kv_heads);
  //@ ghost pi_product_le(b->layer + 1, s->n_layers, s->n_kv_heads);
  /*@ assert slots: a->layer * s->n_kv_heads + a->kv_head < s->n_layers * s->n_kv_heads &&
        b->layer * s->n_kv_heads + b->kv_head < s->n_layers * s->n_kv_heads; */
  size_t place_a = place_in_page(s, a), place_b = place_in_page(s, b);
  size_t within_a = place_in_region(s, a), within_b = place_in_region(s, b);
  size_t region_a = pi_kv_keys(s, a->layer, a->kv_head), region_b = pi_kv_keys(s, b->layer, b->kv_head);
  size_t slot_a = a->layer * s->n_kv_heads + a->kv_head, slot_b = b->layer * s->n_kv_heads + b->kv_head;
  //@ assert sum_a: place_a == region_a + within_a;
  //@ assert sum_b: place_b == region_b + within_b;
  //@ assert slots_a: region_a == slot_a * (2 * PI_PAGE_POSITIONS * n);
  //@ assert slots_b: region_b == slot_b * (2 * PI_PAGE_POSITIONS * n);
  if (place_a != place_b) return 1;
  unique_quotient(slot_a, within_a, slot_b, within_b, 2 * PI_PAGE_POSITIONS * n);
  unique_quotient(a->layer, a->kv_head, b->layer, b->kv_head, s->n_kv_heads);
  if (a->is_value && b->is_value) unique_quotient(a->position, a->element, b->position, b->element, n);
  if (!a->is_value && !b->is_value) {
    size_t block_a = a->position / PI_KEY_BLOCK, block_b = b->position / PI_KEY_BLOCK;
    unique_quotient(block_a * n + a->element, a->position % PI_KEY_BLOCK, block_b * n + b->element, b->position % PI_KEY_BLOCK,
                    PI_KEY_BLOCK);
    unique_quotient(block_a, a->element, block_b, b->element, n);
  }
  return 0;
}

/*@ lemma QuotientOf: \forall integer q, r, m; 0 <= q && 0 <= r < m ==> (q * m + r) / m == q;
    lemma RemainderOf: \forall integer q, r, m; 0 <= q && 0 <= r < m ==> (q * m + r) % m == r;
    lemma DivDiv: \forall integer a, m; 0 <= a && 0 < m ==> a / m * m <= a < (a / m + 1) * m;
    lemma QuotientBelow: \forall integer a, k, m; 0 < m && 0 <= a < k * m ==> a / m < k;

    // Packing: the inverse map undoes the index map and is undone by it; both stay in the matrix and in the buffer.
    lemma PackedSlot: \forall integer n, row, column; 0 <= row && 0 <= column < n ==>
      PackedPlace(n, row, column) / PI_PANEL_ROWS == row / PI_PANEL_ROWS * n + column
        && PackedPlace(n, row, column) % PI_PANEL_ROWS == row % PI_PANEL_ROWS;
    lemma PackedSlotPanel: \forall integer n, row, column; 0 <= row && 0 <= column < n ==>
      (row / PI_PANEL_ROWS * n + column) / n == row / PI_PANEL_ROWS;
    lemma PackedPanel: \forall integer n, row, column; 0 <= row && 0 <= column < n ==>
      PackedPlace(n, row, column) / PI_PANEL_ROWS / n == row / PI_PANEL_ROWS;
    lemma PackedRowOfPlace: \forall integer n, row, column; 0 <= row && 0 <= column < n ==>
      PackedRow(n, PackedPlace(n, row, column)) == row;
    lemma PackedColumnOfPlace: \forall integer n, row, column; 0 <= row && 0 <= column < n ==>
      PackedColumn(n, PackedPlace(n, row, column)) == column;
    lemma PackedPlaceOfElement: \forall integer n, place; 0 < n && 0 <= place ==>
      PackedPlace(n, PackedRow(n, place), PackedColumn(n, place)) == place;
    lemma PackedElementInMatrix: \forall integer n, panels, place; 0 < n && 0 <= place < panels * n * PI_PANEL_ROWS ==>
      0 <= PackedRow(n, place) < panels * PI_PANEL_ROWS && 0 <= PackedColumn(n, place) < n;
    lemma PackedPlaceInBuffer: \forall integer n, panels, row, column; 0 <= row < panels * PI_PANEL_ROWS && 0 <= column < n ==>
      0 <= PackedPlace(n, row, column) < panels * n * PI_PANEL_ROWS;
    lemma Q8RowOfPlace: \forall integer row, c; 0 <= row < PI_PANEL_ROWS && 0 <= c ==> Q8Row(Q8Weight(row, c)) == row;
    lemma Q8ColumnOfPlace: \forall integer row, c; 0 <= row < PI_PANEL_ROWS && 0 <= c ==> Q8Column(Q8Weight(row, c)) == c;
    lemma Q8PlaceOfWeight: \forall integer place; 0 <= place ==> Q8Weight(Q8Row(place), Q8Column(place)) == place;
    lemma Q8WeightInBlock: \forall integer group_size, place; 0 <= place < Q8Padded(group_size) * PI_PANEL_ROWS ==>
      0 <= Q8Row(place) < PI_PANEL_ROWS && 0 <= Q8Column(place) < Q8Padded(group_size); */
