#include "format/packed.h"

#include <string.h>

#include "base/checksum.h"
#include "proved/checked.h"

namespace proofinfer {

namespace {

constexpr char kMagic[8] = {'P', 'I', 'P', 'A', 'C', 'K', 'E', 'D'};
constexpr size_t kVersionAt = 8, kFileBytesAt = 16, kShapeAt = 24, kSharedAt = 52, kGroupAt = 56, kFingerprintAt = 64, kFieldsEnd = 72;
constexpr size_t kChecksumAt = kPackedHeaderBytes - 8;
constexpr uint64_t kFileAlignment = 4096;

// The bytes of a packed matrix; 0 on overflow.
int packed_bytes(uint64_t rows, uint64_t columns, uint64_t group_size, uint64_t *bytes) {
  uint64_t padded = 0, units = 0;
  // A float32 column takes 64 bytes of a panel, a group its block.
  uint64_t unit = group_size == 0 ? PI_PANEL_ROWS * sizeof(float) : pi_q8_block_bytes(static_cast<size_t>(group_size));
  int fits = pi_add_checked(rows, PI_PANEL_ROWS - 1, &padded);
  fits &= pi_mul_checked(padded / PI_PANEL_ROWS, group_size == 0 ? columns : columns / group_size, &units);
  return fits & pi_mul_checked(units, unit, bytes);
}

}  // namespace

bool PackedPlan::plan(const pi_checkpoint_layout &l) {
  *this = PackedPlan{};
  uint64_t tables = 0, norms_bytes = 0, norms_end = 0;
  int fits = packed_bytes(l.dim + 2 * l.kv_dim, l.dim, l.group_size, &qkv_bytes);
  fits &= packed_bytes(l.dim, l.dim, l.group_size, &o_bytes);
  fits &= packed_bytes(2 * l.hidden_dim, l.dim, l.group_size, &w13_bytes);
  fits &= packed_bytes(l.dim, l.hidden_dim, l.group_size, &w2_bytes);
  fits &= packed_bytes(l.vocab_size, l.dim, l.group_size, &table_bytes);
  fits &= pi_add_checked(qkv_bytes, o_bytes, &layer_bytes);
  fits &= pi_add_checked(layer_bytes, w13_bytes, &layer_bytes);
  fits &= pi_add_checked(layer_bytes, w2_bytes, &layer_bytes);
  fits &= pi_mul_checked(layer_bytes, l.n_layers, &weights_bytes);
  fits &= pi_mul_checked(table_bytes, l.shared_classifier ? 1 : 2, &tables);
  fits &= pi_add_checked(weights_bytes, tables, &weights_bytes);
  fits &= pi_mul_checked(2 * l.n_layers + 1, l.dim, &norms_count);
  fits &= pi_mul_checked(norms_count, sizeof(float), &norms_bytes);
  fits &= pi_add_checked(norms_bytes, kPackedHeaderBytes + kFileAlignment - 1, &norms_end);
  weights_offset = norms_end / kFileAlignment * kFileAlignment;
  fits &= pi_add_checked(weights_offset, weights_bytes, &file_bytes);
  return fits != 0;
}

bool is_packed(const unsigned char *first, size_t count) { return count >= sizeof(kMagic) && memcmp(first, kMagic, sizeof(kMagic)) == 0; }

Status read_packed_header(Source *source, PackedHeader *header, Failure *failure) {
  unsigned char bytes[kPackedHeaderBytes];
  if (source->size_bytes() < sizeof(bytes))
    return fail(failure, kTruncated, "packed file: the header needs %zu bytes; found %llu", sizeof(bytes),
                (unsigned long long)source->size_bytes());
  Status status = source->read(0, bytes, sizeof(bytes), "packed file header", failure);
  if (status != kOk) return status;
  if (load_u32(bytes + kVersionAt) != kPackedVersion)
    return fail(failure, kUnsupported, "packed file header: version at offset %zu is %u; expected %u", kVersionAt,
                load_u32(bytes + kVersionAt), kPackedVersion);
  uint64_t expected = load_u64(bytes + kChecksumAt), found = checksum_of(bytes, kChecksumAt);
  if (found != expected)
    return fail(failure, kFormat, "packed file header: its bytes were changed: their checksum is %016llx; expected %016llx",
                (unsigned long long)found, (unsigned long long)expected);
  for (size_t i = kVersionAt; i < kChecksumAt; i++) {
    bool meaningless = (i >= kVersionAt + 4 && i < kFileBytesAt) || (i >= kGroupAt + 4 && i < kFingerprintAt) || i >= kFieldsEnd;
    if (meaningless && bytes[i] != 0)
      return fail(failure, kFormat, "packed file header: the byte at offset %zu, which has no meaning, is 0x%02x; expected 0", i, bytes[i]);
  }
  pi_checkpoint_header &h = header->shape;
  int32_t *const fields[] = {&h.dim, &h.hidden_dim, &h.n_layers, &h.n_heads, &h.n_kv_heads, &h.vocab_size, &h.seq_len};
  for (size_t i = 0; i < 7; i++) *fields[i] = load_i32(bytes + kShapeAt + 4 * i);
  h.shared_classifier = load_i32(bytes + kSharedAt);
  h.group_size = load_i32(bytes + kGroupAt);
  h.format = h.group_size == 0 ? PI_FORMAT_V1 : PI_FORMAT_V2;
  header->file_bytes = load_u64(bytes + kFileBytesAt);
  header->fingerprint = load_u64(bytes + kFingerprintAt);
  return kOk;
}

void write_packed_header(const pi_checkpoint_layout &layout, const PackedPlan &plan, uint64_t fingerprint, unsigned char *bytes) {
  memset(bytes, 0, kPackedHeaderBytes);
  memcpy(bytes, kMagic, sizeof(kMagic));
  store_u32(bytes + kVersionAt, kPackedVersion);
  store_u64(bytes + kFileBytesAt, plan.file_bytes);
  const uint64_t shape[] = {layout.dim,        layout.hidden_dim, layout.n_layers, layout.n_heads,
                            layout.n_kv_heads, layout.vocab_size, layout.seq_len};
  for (size_t i = 0; i < 7; i++) store_u32(bytes + kShapeAt + 4 * i, static_cast<uint32_t>(shape[i]));
  store_u32(bytes + kSharedAt, static_cast<uint32_t>(layout.shared_classifier));
  store_u32(bytes + kGroupAt, static_cast<uint32_t>(layout.group_size));
  store_u64(bytes + kFingerprintAt, fingerprint);
  store_u64(bytes + kChecksumAt, checksum_of(bytes, kChecksumAt));
}

void swap_packed(unsigned char *weights, size_t bytes, size_t group_size) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  size_t block = group_size ? pi_q8_block_bytes(group_size) : bytes, scales = group_size ? pi_q8_scale(group_size, 0) : 0;
  for (size_t at = 0; at < bytes; at += block)
    to_host_f32(reinterpret_cast<float *>(weights + at + scales), (block - scales) / sizeof(float));
#else
  (void)weights, (void)bytes, (void)group_size;
#endif
}

}  // namespace proofinfer
