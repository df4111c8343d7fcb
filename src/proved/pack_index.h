/* Where a packed matrix keeps its elements: panels of PI_PANEL_ROWS rows, element-interleaved, [rows / 16][n][16], the last panel
 * filled up with rows of zeros. A bijection onto the packed buffer (docs/proof.md). */
#ifndef PROOFINFER_PROVED_PACK_INDEX_H
#define PROOFINFER_PROVED_PACK_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "proved/lemmas.h"

#define PI_PANEL_ROWS 16

/*@ // The place of an element, and the element of a place.
    logic integer PackedPlace(integer n, integer row, integer column) =
      (row / PI_PANEL_ROWS * n + column) * PI_PANEL_ROWS + row % PI_PANEL_ROWS;
    logic integer PackedRow(integer n, integer place) = place / PI_PANEL_ROWS / n * PI_PANEL_ROWS + place % PI_PANEL_ROWS;
    logic integer PackedColumn(integer n, integer place) = place / PI_PANEL_ROWS % n; */

/*@ ghost
  /@ requires 1 <= n && row < panel_count * 16;
     terminates \true;
     assigns \nothing;
     ensures panel_below: (row / 16 + 1) * n * 16 <= panel_count * n * 16; @/
  static inline void pi_panel_below(size_t panel_count, size_t n, size_t row) {
    pi_product_le(row / 16 + 1, panel_count, n);
  } */

/* Panels of a matrix with `rows` rows: the least number that holds them. */
/*@ terminates \true;
    assigns \nothing;
    ensures panels_hold_rows: rows <= \result * PI_PANEL_ROWS;
    ensures panels_least: \result * PI_PANEL_ROWS < rows + PI_PANEL_ROWS; */
static inline size_t pi_panel_count(size_t rows) { return rows / PI_PANEL_ROWS + (rows % PI_PANEL_ROWS != 0); }

/* The place of element (row, column) of a matrix with n columns. */
/*@ requires column < n;
    requires fits: (row / PI_PANEL_ROWS + 1) * n * PI_PANEL_ROWS <= SIZE_MAX;
    terminates \true;
    assigns \nothing;
    ensures pack_formula: \result == PackedPlace(n, row, column);
    ensures pack_in_panel: row / PI_PANEL_ROWS * n * PI_PANEL_ROWS <= \result < (row / PI_PANEL_ROWS + 1) * n * PI_PANEL_ROWS; */
static inline size_t pi_packed_index(size_t n, size_t row, size_t column) {
  return (row / PI_PANEL_ROWS * n + column) * PI_PANEL_ROWS + row % PI_PANEL_ROWS;
}

/* Int8 weights in groups: a panel is [group_count] blocks, each [padded group / 4][16 rows][4] weights, filled up with zeros behind the
 * group's last one, then the 16 rows' float32 scales. */

/* The largest group: no sum of 8-bit products can leave int32, 65536 * 255 * 127 < 2^31 (255: a kernel may add 128 to weights). */
#define PI_MAX_GROUP_SIZE 65536

/*@ logic integer Q8Padded(integer group_size) = (group_size + 3) / 4 * 4;
    logic integer Q8BlockBytes(integer group_size) = Q8Padded(group_size) * PI_PANEL_ROWS + 4 * PI_PANEL_ROWS;
    // The place of a weight in its block, and the weight of a place.
    logic integer Q8Weight(integer row, integer c) = (c / 4 * PI_PANEL_ROWS + row) * 4 + c % 4;
    logic integer Q8Row(integer place) = place / 4 % PI_PANEL_ROWS;
    logic integer Q8Column(integer place) = place / 4 / PI_PANEL_ROWS * 4 + place % 4;
    logic integer Q8Scale(integer group_size, integer row) = Q8Padded(group_size) * PI_PANEL_ROWS + 4 * row; */

/* Weights of a group in memory: the group size filled up to a multiple of 4. */
/*@ requires group_size <= PI_MAX_GROUP_SIZE;
    terminates \true;
    assigns \nothing;
    ensures padded_formula: \result == Q8Padded(group_size);
    ensures padded_holds: group_size <= \result < group_size + 4 && \result % 4 == 0 && \result <= PI_MAX_GROUP_SIZE; */
static inline size_t pi_q8_padded(size_t group_size) { return (group_size + 3) / 4 * 4; }

/* Bytes of one group of a panel. */
/*@ requires group_size <= PI_MAX_GROUP_SIZE;
    terminates \true;
    assigns \nothing;
    ensures block_formula: \result == Q8BlockBytes(group_size); */
static inline size_t pi_q8_block_bytes(size_t group_size) { return pi_q8_padded(group_size) * PI_PANEL_ROWS + 4 * PI_PANEL_ROWS; }

/* Where in its block the weight of a row of the panel (0 to 15) at place c of the group stands. */
/*@ requires row < PI_PANEL_ROWS && c < PI_MAX_GROUP_SIZE;
    terminates \true;
    assigns \nothing;
    ensures weight_formula: \result == Q8Weight(row, c);
    ensures weight_in_block: \forall integer group_size; c < Q8Padded(group_size) ==> \result < Q8Padded(group_size) * PI_PANEL_ROWS; */
static inline size_t pi_q8_weight(size_t row, size_t c) { return (c / 4 * PI_PANEL_ROWS + row) * 4 + c % 4; }

/* Where in its block the scale of a row of the panel stands, in bytes. */
/*@ requires row < PI_PANEL_ROWS && group_size <= PI_MAX_GROUP_SIZE;
    terminates \true;
    assigns \nothing;
    ensures scale_formula: \result == Q8Scale(group_size, row);
    ensures scale_in_block: Q8Padded(group_size) * PI_PANEL_ROWS <= \result && \result + 4 <= Q8BlockBytes(group_size); */
static inline size_t pi_q8_scale(size_t group_size, size_t row) { return pi_q8_padded(group_size) * PI_PANEL_ROWS + 4 * row; }

#endif
