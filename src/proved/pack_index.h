/* Where a packed matrix keeps its elements: panels of PI_PANEL_ROWS rows, element-interleaved, [rows / 16][n][16], the last panel
 * filled up with rows of zeros. A bijection onto the packed buffer (docs/proof.md). */
#ifndef PROOFINFER_PROVED_PACK_INDEX_H
#define PROOFINFER_PROVED_PACK_INDEX_H

#include <stddef.h>

#define PI_PANEL_ROWS 16

/* Panels of a matrix with `rows` rows. */
static inline size_t pi_panel_count(size_t rows) { return rows / PI_PANEL_ROWS + (rows % PI_PANEL_ROWS != 0); }

/* The place of element (row, column) of a matrix with n columns. */
static inline size_t pi_packed_index(size_t n, size_t row, size_t column) {
  return (row / PI_PANEL_ROWS * n + column) * PI_PANEL_ROWS + row % PI_PANEL_ROWS;
}

/* Int8 weights in groups: a panel is [group_count] blocks, each [padded group / 4][16 rows][4] weights, filled up with zeros behind the
 * group's last one, then the 16 rows' float32 scales. */

/* Weights of a group in memory: the group size filled up to a multiple of 4. */
static inline size_t pi_q8_padded(size_t group_size) { return (group_size + 3) / 4 * 4; }

/* Bytes of one group of a panel. */
static inline size_t pi_q8_block_bytes(size_t group_size) { return pi_q8_padded(group_size) * PI_PANEL_ROWS + 4 * PI_PANEL_ROWS; }

/* Where in its block the weight of a row of the panel (0 to 15) at place c of the group stands. */
static inline size_t pi_q8_weight(size_t row, size_t c) { return (c / 4 * PI_PANEL_ROWS + row) * 4 + c % 4; }

/* Where in its block the scale of a row of the panel stands, in bytes. */
static inline size_t pi_q8_scale(size_t group_size, size_t row) { return pi_q8_padded(group_size) * PI_PANEL_ROWS + 4 * row; }

#endif
