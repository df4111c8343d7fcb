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

#endif
