// Rows of a file, packed by every kernel set that this CPU has and read back in float32: dequantize_rows TYPE ROWS COLUMNS <bytes >floats.
// Writes the rows once for each kernel set. For reference/dequantize_test.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "kernels/kernels.h"

namespace proofinfer {
namespace {

// The rows go into a panel in two parts of which the second may be empty, as a loader's do that reads a part at a time.
void pack(const Kernels *kernels, ElementType type, const unsigned char *rows, size_t row_bytes, size_t row_count, size_t columns,
          unsigned char *panel) {
  size_t first = row_count < 5 ? row_count : 5;
  for (size_t lane = 0, count = first; lane < row_count; lane += count, count = row_count - lane) {
    const unsigned char *part = rows + lane * row_bytes;
    if (element_is_blocks(type)) {
      kernels->pack_blocks(type, part, count, columns / 32, lane, panel);
    } else if (element_is_half(type)) {
      kernels->pack_half(reinterpret_cast<const uint16_t *>(part), count, columns, reinterpret_cast<uint16_t *>(panel) + lane);
    } else {
      kernels->pack_f32(reinterpret_cast<const float *>(part), count, columns, reinterpret_cast<float *>(panel) + lane);
    }
  }
}

void write_rows(const Kernels *kernels, ElementType type, const std::vector<unsigned char> &rows, size_t row_count, size_t columns) {
  size_t row_bytes = rows.size() / row_count, panel_bytes = element_panel_bytes(type, columns);
  unsigned char *panel = static_cast<unsigned char *>(aligned_alloc(64, (panel_bytes + 63) / 64 * 64));
  if (!panel) abort();
  std::vector<float> out(columns);
  for (size_t row = 0; row < row_count; row++) {
    size_t lane = row % 16, left = row_count - row;
    if (lane == 0) {
      memset(panel, 0xa5, panel_bytes);
      pack(kernels, type, rows.data() + row * row_bytes, row_bytes, left < 16 ? left : 16, columns, panel);
    }
    dequantize_row(type, panel, lane, columns, out.data());
    if (fwrite(out.data(), sizeof(float), columns, stdout) != columns) abort();
  }
  free(panel);
}

int run(const char *name, size_t row_count, size_t columns) {
  for (size_t i = 0; i < kElementTypeCount; i++) {
    ElementType type = static_cast<ElementType>(i);
    if (strcmp(element_name(type), name) != 0) continue;
    std::vector<unsigned char> rows(row_count * columns / element_block_columns(type) * element_block_bytes(type));
    if (fread(rows.data(), 1, rows.size(), stdin) != rows.size() || fgetc(stdin) != EOF) return 2;
    for (size_t k = 0; k < kernels_count(); k++)
      if (kernels_available(k)) write_rows(kernels_at(k), type, rows, row_count, columns);
    return 0;
  }
  return 2;
}

}  // namespace
}  // namespace proofinfer

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  return proofinfer::run(argv[1], strtoul(argv[2], nullptr, 10), strtoul(argv[3], nullptr, 10));
}
