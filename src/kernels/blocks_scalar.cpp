#include "kernels/blocks_scalar.h"

#include <assert.h>
#include <string.h>

#include "base/half.h"
#include "kernels/block_layout.h"
#include "kernels/kernels.h"
#include "proved/float_contract.h"
#include "proved/pack_index.h"

namespace proofinfer {
namespace {

constexpr size_t kPanelRows = PI_PANEL_ROWS;
constexpr size_t kColumns = PI_GROUP_COLUMNS;
constexpr size_t kHalfColumns = kColumns / 2;

// How a block type stores its numbers.
struct Shape {
  size_t file_bytes;   // of a row's block in a file
  size_t groups;       // of a block
  size_t panel_bytes;  // of the 16 rows' block in a panel
  size_t payload;      // bytes of a group's payload in a panel
  int bits;
  int offset;  // what the payload has too much; signed payloads: 0
  bool minimum;
};

Shape shape_of(ElementType type) {
  constexpr size_t kTypeK = PI_K_GROUPS;
  switch (type) {
    case ElementType::kQ4_0: return {18, 1, PI_PAYLOAD_4 + PI_HALVES, PI_PAYLOAD_4, 4, 8, false};
    case ElementType::kQ4_1: return {20, 1, PI_PAYLOAD_4 + 2 * PI_HALVES, PI_PAYLOAD_4, 4, 0, true};
    case ElementType::kQ5_0: return {22, 1, PI_PAYLOAD_5 + PI_HALVES, PI_PAYLOAD_5, 5, 16, false};
    case ElementType::kQ5_1: return {24, 1, PI_PAYLOAD_5 + 2 * PI_HALVES, PI_PAYLOAD_5, 5, 0, true};
    case ElementType::kQ4_K: return {144, kTypeK, PI_K_HEADER + kTypeK * PI_PAYLOAD_4, PI_PAYLOAD_4, 4, 0, true};
    case ElementType::kQ5_K: return {176, kTypeK, PI_K_HEADER + kTypeK * PI_PAYLOAD_5, PI_PAYLOAD_5, 5, 0, true};
    case ElementType::kQ6_K: return {210, kTypeK, PI_Q6K_HEADER + kTypeK * PI_PAYLOAD_6, PI_PAYLOAD_6, 6, 32, false};
    default: return {34, 1, PI_PAYLOAD_8 + PI_HALVES, PI_PAYLOAD_8, 8, 0, false};  // Q8_0
  }
}

float widen_half(ElementType type, uint16_t half) { return type == ElementType::kF16 ? widen_f16(half) : widen_bf16(half); }

uint16_t load_half(const unsigned char *halves, size_t row) {
  uint16_t half;
  memcpy(&half, halves + 2 * row, sizeof half);
  return half;
}

// ---- a group, unpacked ----

// 32 columns of a row: column c is scale[c / 16] * w[c], plus the minimum where the type has one.
struct Group {
  int32_t w[kColumns];
  float scale[2];
  float minimum;
};

void unpack_payload(const Shape &shape, const unsigned char *payload, size_t row, int32_t *w) {
  if (shape.bits == 8) {
    for (size_t c = 0; c < kColumns; c++) {
      int byte = payload[pi_byte_place(row, c)];
      w[c] = byte < 128 ? byte : byte - 256;
    }
    return;
  }
  for (size_t c = 0; c < kColumns; c++) w[c] = (payload[pi_nibble_place(row, c)] >> pi_nibble_shift(c) & 15) - shape.offset;
  const unsigned char *high = payload + PI_HIGH_BITS;
  if (shape.bits == 5)
    for (size_t c = 0; c < kColumns; c++) w[c] += (high[pi_fifth_place(row, c)] >> pi_fifth_shift(c) & 1) << 4;
  if (shape.bits == 6)
    for (size_t c = 0; c < kColumns; c++) w[c] += (high[pi_sixth_place(row, c)] >> pi_sixth_shift(c) & 3) << 4;
}

void scales_of(ElementType type, const Shape &shape, const unsigned char *block, size_t group, size_t row, Group *out) {
  if (shape.groups == 1) {
    out->scale[0] = out->scale[1] = widen_f16(load_half(block + shape.payload, row));
    out->minimum = shape.minimum ? widen_f16(load_half(block + shape.payload + PI_HALVES, row)) : 0.0f;
    return;
  }
  float d = widen_f16(load_half(block, row));
  if (type == ElementType::kQ6_K) {
    for (size_t half = 0; half < 2; half++) {
      int scale = block[PI_Q6K_SCALES + (2 * group + half) * PI_BYTES + row];
      out->scale[half] = d * static_cast<float>(scale < 128 ? scale : scale - 256);
    }
    out->minimum = 0.0f;
    return;
  }
  out->scale[0] = out->scale[1] = d * static_cast<float>(block[PI_K_SCALES + group * PI_BYTES + row]);
  float product = widen_f16(load_half(block + PI_HALVES, row)) * static_cast<float>(block[PI_K_MINIMA + group * PI_BYTES + row]);
  out->minimum = -product;
}

// group: of the panel's row.
void unpack(ElementType type, const Shape &shape, const unsigned char *panel, size_t row, size_t group, Group *out) {
  const unsigned char *block = panel + group / shape.groups * shape.panel_bytes;
  size_t in_block = group % shape.groups;
  size_t header = shape.groups == 1 ? 0 : shape.panel_bytes - shape.groups * shape.payload;
  const unsigned char *payload = block + header + in_block * shape.payload;
  unpack_payload(shape, payload, row, out->w);
  scales_of(type, shape, block, in_block, row, out);
}

// ---- products ----

// An activation, quantized: its dwords of four digits are q_step bytes apart, its scales scale_step, its sums of halves half_step.
struct Activation {
  const int8_t *digits;
  const float *scales;
  const int32_t *sums;
  size_t q_step, scale_step, sum_step, half_step;
};

void numbers_of(const Activation &x, size_t g, int32_t *q) {
  const int8_t *high = x.digits + g * (PI_GROUP_DIGITS / 4) * x.q_step, *low = high + kColumns / 4 * x.q_step;
  for (size_t c = 0; c < kColumns; c++) {
    size_t at = c / 4 * x.q_step + c % 4;
    q[c] = PI_DIGIT_BASE * high[at] + low[at];
  }
}

// At most 16 * 128 * PI_MOST_Q: two halves fit into an int32.
int32_t dot_half(const int32_t *w, const int32_t *q) {
  int32_t dot = 0;
  for (size_t c = 0; c < kHalfColumns; c++) dot += w[c] * q[c];
  return dot;
}

// What a group adds to the sum of its row, before the activation's scale. q: its numbers; sum: theirs.
float group_product(ElementType type, const Shape &shape, const Group &group, const int32_t *q, int32_t sum) {
  int32_t first = dot_half(group.w, q);
  int32_t second = dot_half(group.w + kHalfColumns, q + kHalfColumns);
  if (type == ElementType::kQ6_K) return static_cast<float>(first) * group.scale[0] + static_cast<float>(second) * group.scale[1];
  float product = static_cast<float>(first + second) * group.scale[0];
  return shape.minimum ? product + static_cast<float>(sum) * group.minimum : product;
}

// out: the sums of a panel's rows.
void multiply_panel(ElementType type, const Shape &shape, const unsigned char *panel, size_t group_count, const Activation &x, float *out) {
  for (size_t row = 0; row < kPanelRows; row++) out[row] = 0.0f;
  for (size_t g = 0; g < group_count; g++) {
    int32_t q[kColumns];
    numbers_of(x, g, q);
    const int32_t *sums = x.sums + g * x.sum_step;
    for (size_t row = 0; row < kPanelRows; row++) {
      Group group;
      unpack(type, shape, panel, row, g, &group);
      out[row] = out[row] + group_product(type, shape, group, q, sums[0] + sums[x.half_step]) * x.scales[g * x.scale_step];
    }
  }
}

void multiply_blocks(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count, const Activation &x,
                     float *out) {
  Shape shape = shape_of(type);
  size_t panel_bytes = group_count / shape.groups * shape.panel_bytes;
  for (size_t p = 0; p < panel_count; p++) multiply_panel(type, shape, panels + p * panel_bytes, group_count, x, out + p * kPanelRows);
}

void multiply_half(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x, size_t x_step, float *out) {
  for (size_t row = 0; row < panel_count * kPanelRows; row++) {
    float acc = 0.0f;
    for (size_t j = 0; j < n; j++) acc = acc + widen_half(type, panels[pi_packed_index(n, row, j)]) * x[j * x_step];
    out[row] = acc;
  }
}

}  // namespace

void matvec_half_scalar(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x, float *out) {
  multiply_half(type, panels, panel_count, n, x, 1, out);
}

void matmul_half_scalar(ElementType type, const uint16_t *panels, size_t panel_count, size_t n, const float *x_blocks, size_t row_count,
                        float *out, size_t out_stride) {
  for (size_t i = 0; i < row_count; i++)
    multiply_half(type, panels, panel_count, n, x_blocks + i / kRowBlock * n * kRowBlock + i % kRowBlock, kRowBlock, out + i * out_stride);
}

void pack_half_scalar(const uint16_t *rows, size_t row_count, size_t n, uint16_t *panel) {
  for (size_t j = 0; j < n; j++)
    for (size_t r = 0; r < row_count; r++) panel[j * kPanelRows + r] = rows[r * n + j];
}

namespace {

// The largest magnitude of a group, or NaN if an element is not finite.
float group_max(const float *x) {
  float most = 0.0f, probe = 0.0f;  // the probe stays 0 unless an element is not finite: then NaN
  for (size_t c = 0; c < kColumns; c++) {
    float magnitude = x[c] < 0.0f ? -x[c] : x[c];
    probe += x[c] * 0.0f;
    if (magnitude > most) most = magnitude;
  }
  return probe == 0.0f ? most : probe;
}

// x / scale rounded half away from zero and held within its limits, which it passes only where the scale, which is > 0, is subnormal.
int32_t quantize_one(float x, float scale) {
  constexpr float kMost = PI_MOST_Q;
  float quotient = x / scale;
  if (quotient >= kMost) return PI_MOST_Q;
  if (quotient <= -kMost) return -PI_MOST_Q;
  int32_t whole = static_cast<int32_t>(quotient);
  float rest = quotient - static_cast<float>(whole);  // exact
  return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

}  // namespace

void quantize_blocks_scalar(const float *x, size_t group_count, int8_t *digits, float *scales, int32_t *sums) {
  for (size_t g = 0; g < group_count; g++, x += kColumns, digits += PI_GROUP_DIGITS) {
    scales[g] = group_max(x) / static_cast<float>(PI_MOST_Q);
    sums[2 * g] = sums[2 * g + 1] = 0;
    for (size_t c = 0; c < kColumns; c++) {
      int32_t q = scales[g] > 0.0f ? quantize_one(x[c], scales[g]) : 0;
      int32_t high = (q + (q < 0 ? -PI_DIGIT_BASE / 2 : PI_DIGIT_BASE / 2)) / PI_DIGIT_BASE;
      digits[c] = static_cast<int8_t>(high);
      digits[kColumns + c] = static_cast<int8_t>(q - PI_DIGIT_BASE * high);
      sums[2 * g + c / kHalfColumns] += q;
    }
  }
}

void matvec_blocks_scalar(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count, const int8_t *digits,
                          const float *scales, const int32_t *sums, float *out) {
  multiply_blocks(type, panels, panel_count, group_count, Activation{digits, scales, sums, 4, 1, 2, 1}, out);
}

void matmul_blocks_scalar(ElementType type, const unsigned char *panels, size_t panel_count, size_t group_count,
                          const int8_t *digits_blocks, const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out,
                          size_t out_stride) {
  for (size_t i = 0; i < row_count; i++) {
    size_t block = i / kRowBlock, lane = i % kRowBlock;
    Activation x = {digits_blocks + block * group_count * PI_GROUP_DIGITS * kRowBlock + lane * 4,
                    scales_blocks + block * group_count * kRowBlock + lane,
                    sums_blocks + block * group_count * 2 * kRowBlock + lane,
                    4 * kRowBlock,
                    kRowBlock,
                    2 * kRowBlock,
                    kRowBlock};
    multiply_blocks(type, panels, panel_count, group_count, x, out + i * out_stride);
  }
}

// ---- packing ----

namespace {

uint32_t load_dword(const unsigned char *p) {
  uint32_t dword;
  memcpy(&dword, p, sizeof dword);
  return dword;
}

void store_dword(unsigned char *p, uint32_t dword) { memcpy(p, &dword, sizeof dword); }

// A little-endian number of a file into a row's place.
void pack_f16(const unsigned char *file, unsigned char *halves, size_t row) {
  uint16_t half = static_cast<uint16_t>(file[0] | file[1] << 8);
  memcpy(halves + 2 * row, &half, sizeof half);
}

// 16 bytes with columns 0 to 15 in the lower halves and 16 to 31 in the upper ones, as the legacy types have them in files too.
void pack_nibbles(const unsigned char *file, unsigned char *payload, size_t row) {
  for (size_t v = 0; v < 4; v++) memcpy(payload + pi_nibble_place(row, 4 * v), file + 4 * v, 4);
}

// Bits 0, 4, 8, ... 28 side by side.
uint32_t every_fourth(uint32_t bits) {
  bits &= 0x11111111u;
  bits = (bits | bits >> 3) & 0x03030303u;
  bits = (bits | bits >> 6) & 0x000f000fu;
  return (bits | bits >> 12) & 0xffu;
}

// Bit c of the file's number is the fifth bit of column c.
void pack_fifth_bits(const unsigned char *file, unsigned char *payload, size_t row) {
  uint32_t bits =
      file[0] | static_cast<uint32_t>(file[1]) << 8 | static_cast<uint32_t>(file[2]) << 16 | static_cast<uint32_t>(file[3]) << 24;
  unsigned char *high = payload + PI_HIGH_BITS;
  for (unsigned c = 0; c < 4; c++) high[pi_fifth_place(row, c)] = static_cast<unsigned char>(every_fourth(bits >> c));
}

void pack_legacy(ElementType type, const Shape &shape, const unsigned char *file, size_t row, unsigned char *block) {
  unsigned char *scales = block + shape.payload;
  pack_f16(file, scales, row);
  file += 2;
  if (shape.minimum) {
    pack_f16(file, scales + PI_HALVES, row);
    file += 2;
  }
  if (type == ElementType::kQ8_0) {
    for (size_t c = 0; c < kColumns; c += 4) memcpy(block + pi_byte_place(row, c), file + c, 4);
    return;
  }
  if (shape.bits == 5) {
    pack_fifth_bits(file, block, row);
    file += 4;
  }
  pack_nibbles(file, block, row);
}

// The halves of 32 bytes of a file, `shift` 0 the lower ones, become the nibbles of a group.
void pack_half_bytes(const unsigned char *file, unsigned shift, unsigned char *payload, size_t row) {
  for (size_t v = 0; v < 4; v++) {
    uint32_t low = load_dword(file + 4 * v) >> shift & 0x0f0f0f0fu, high = load_dword(file + kHalfColumns + 4 * v) >> shift & 0x0f0f0f0fu;
    store_dword(payload + pi_nibble_place(row, 4 * v), low | high << 4);
  }
}

// The 6-bit scales and minima of a block of Q4_K or Q5_K: the first four whole, the others' upper bits above those.
void pack_k_scales(const unsigned char *file, size_t row, unsigned char *block) {
  for (size_t g = 0; g < PI_K_GROUPS; g++) {
    unsigned scale = file[g % 4], minimum = file[4 + g % 4];
    if (g < 4) {
      scale &= 63;
      minimum &= 63;
    } else {
      scale = (file[g + 4] & 15u) | (scale >> 6) << 4;
      minimum = file[g + 4] >> 4 | (minimum >> 6) << 4;
    }
    block[PI_K_SCALES + g * PI_BYTES + row] = static_cast<unsigned char>(scale);
    block[PI_K_MINIMA + g * PI_BYTES + row] = static_cast<unsigned char>(minimum);
  }
}

// Q4_K and Q5_K: d, dmin, scales [12], for Q5_K the fifth bits [32] (bit g of byte c: column c of group g), nibbles [4][32] (groups 2 k and 2 k + 1).
void pack_k(const Shape &shape, const unsigned char *file, size_t row, unsigned char *block) {
  constexpr size_t kScalesBytes = 12;
  pack_f16(file, block, row);
  pack_f16(file + 2, block + PI_HALVES, row);
  pack_k_scales(file + 4, row, block);
  file += 4 + kScalesBytes;
  const unsigned char *fifth = file;
  if (shape.bits == 5) file += kColumns;
  for (unsigned g = 0; g < PI_K_GROUPS; g++) {
    unsigned char *payload = block + PI_K_HEADER + g * shape.payload;
    pack_half_bytes(file + g / 2 * kColumns, g % 2 * 4, payload, row);
    if (shape.bits != 5) continue;
    uint32_t bits = 0;
    for (unsigned quad = 0; quad < kColumns / 4; quad++) bits |= (load_dword(fifth + 4 * quad) >> g & 0x01010101u) << quad;
    store_dword(payload + PI_HIGH_BITS + pi_fifth_place(row, 0), bits);
  }
}

// Q6_K: nibbles [2][64], upper two bits [2][32], scales [16], d. Groups 4 k to 4 k + 3 share the 64 and the 32 bytes number k.
void pack_q6k(const unsigned char *file, size_t row, unsigned char *block) {
  constexpr size_t kNibbles = 128, kUpper = 64;
  const unsigned char *scales = file + kNibbles + kUpper;
  for (size_t i = 0; i < 2 * PI_K_GROUPS; i++) block[PI_Q6K_SCALES + i * PI_BYTES + row] = scales[i];
  pack_f16(scales + 2 * PI_K_GROUPS, block, row);
  for (unsigned g = 0; g < PI_K_GROUPS; g++) {
    unsigned char *payload = block + PI_Q6K_HEADER + g * PI_PAYLOAD_6;
    pack_half_bytes(file + g / 4 * 64 + g % 2 * kColumns, g % 4 / 2 * 4, payload, row);
    const unsigned char *upper = file + kNibbles + g / 4 * kColumns;
    for (size_t half = 0; half < 2; half++) {
      uint32_t bits = 0;
      for (unsigned quad = 0; quad < 4; quad++)
        bits |= (load_dword(upper + half * kHalfColumns + 4 * quad) >> g % 4 * 2 & 0x03030303u) << 2 * quad;
      store_dword(payload + PI_HIGH_BITS + pi_sixth_place(row, half * kHalfColumns), bits);
    }
  }
}

}  // namespace

void pack_blocks(ElementType type, const unsigned char *rows, size_t row_count, size_t group_count, size_t lane, unsigned char *panel) {
  Shape shape = shape_of(type);
  size_t blocks = group_count / shape.groups;
  for (size_t b = 0; b < blocks; b++) {
    unsigned char *block = panel + b * shape.panel_bytes;
    for (size_t r = 0; r < row_count; r++) {
      const unsigned char *file = rows + (r * blocks + b) * shape.file_bytes;
      if (type == ElementType::kQ6_K) {
        pack_q6k(file, lane + r, block);
      } else if (shape.groups == 1) {
        pack_legacy(type, shape, file, lane + r, block);
      } else {
        pack_k(shape, file, lane + r, block);
      }
    }
  }
}

// ---- element_type.h ----

const char *element_name(ElementType type) {
  static const char *const kNames[] = {"F32", "F16", "BF16", "Q8", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"};
  static_assert(sizeof kNames / sizeof *kNames == kElementTypeCount, "a name for each type");
  return kNames[static_cast<size_t>(type)];
}

bool element_is_blocks(ElementType type) { return type >= ElementType::kQ8_0; }

bool element_is_half(ElementType type) { return type == ElementType::kF16 || type == ElementType::kBF16; }

size_t element_block_columns(ElementType type) {
  if (type == ElementType::kQ8Groups) return 0;
  return element_is_blocks(type) ? shape_of(type).groups * kColumns : 1;
}

size_t element_block_bytes(ElementType type) {
  if (type == ElementType::kQ8Groups) return 0;
  return element_is_blocks(type) ? shape_of(type).file_bytes : element_is_half(type) ? 2 : 4;
}

size_t element_panel_bytes(ElementType type, size_t columns) {
  assert(type != ElementType::kQ8Groups && columns % element_block_columns(type) == 0);
  if (!element_is_blocks(type)) return columns * kPanelRows * element_block_bytes(type);
  Shape shape = shape_of(type);
  return columns / (shape.groups * kColumns) * shape.panel_bytes;
}

bool element_halves_at(ElementType type, size_t place) {
  if (!element_is_blocks(type)) return element_is_half(type);
  Shape shape = shape_of(type);
  size_t in_block = place % shape.panel_bytes;
  if (shape.groups == 1) return in_block >= shape.payload;
  size_t end = type == ElementType::kQ6_K ? PI_Q6K_SCALES : PI_K_SCALES;
  return in_block < end;
}

void dequantize_row(ElementType type, const unsigned char *panel, size_t lane, size_t columns, float *out) {
  assert(type != ElementType::kQ8Groups && lane < kPanelRows);
  if (!element_is_blocks(type)) {
    for (size_t j = 0; j < columns; j++) {
      size_t place = pi_packed_index(columns, lane, j);
      if (type == ElementType::kF32) {
        memcpy(out + j, panel + 4 * place, sizeof *out);
      } else {
        out[j] = widen_half(type, load_half(panel, place));
      }
    }
    return;
  }
  Shape shape = shape_of(type);
  for (size_t g = 0; g < columns / kColumns; g++, out += kColumns) {
    Group group;
    unpack(type, shape, panel, lane, g, &group);
    for (size_t c = 0; c < kColumns; c++) {
      float product = group.scale[c / kHalfColumns] * static_cast<float>(group.w[c]);
      out[c] = shape.minimum ? product + group.minimum : product;
    }
  }
}

}  // namespace proofinfer
