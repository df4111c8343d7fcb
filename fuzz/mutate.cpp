#include "mutate.h"

#include "support/checkpoint.h"

namespace proofinfer_fuzz {

using proofinfer_test::Format;
using proofinfer_test::Shape;

namespace {

constexpr uint32_t kMagic = 0x616b3432;
constexpr size_t kSmallestFile = 400;  // one of every format fits

uint32_t load(const uint8_t *p) { return uint32_t(p[0]) | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24; }

void store(uint8_t *p, uint32_t value) {
  for (int i = 0; i < 4; i++) p[i] = uint8_t(value >> 8 * i);
}

// A value in [1, most], the given one where it is.
int32_t within(uint32_t value, int32_t most) {
  return value >= 1 && value <= uint32_t(most) ? int32_t(value) : 1 + int32_t(value % uint32_t(most));
}

Format format_of(const uint8_t *file, Random *random) {
  if (random->one_in(8)) return proofinfer_test::kFormats[random->below(3)];
  if (load(file) != kMagic) return Format::kLegacy;
  return load(file + 4) % 2 ? Format::kVersion1 : Format::kVersion2;
}

// The shape that the bytes at `at` say, made valid.
Shape shape_at(const uint8_t *at, Format format, Random *random) {
  uint32_t v[7];
  for (size_t i = 0; i < 7; i++) v[i] = load(at + 4 * i);
  Shape s;
  s.n_kv_heads = within(v[4], 4);
  s.n_heads = s.n_kv_heads * within(v[3] / uint32_t(s.n_kv_heads), 4);
  s.dim = within(v[0] / uint32_t(2 * s.n_heads), 12) * 2 * s.n_heads;
  s.hidden_dim = within(v[1], 96);
  s.n_layers = within(v[2], random->one_in(16) ? 300 : 4);
  bool negative = format == Format::kLegacy && int32_t(v[5]) < 0;
  s.vocab_size = within(negative ? 0u - v[5] : v[5], 400) * (negative ? -1 : 1);
  s.seq_len = within(v[6], 300);
  return s;
}

int32_t group_for(const Shape &s, uint32_t wanted) {
  int32_t group_size = within(wanted, s.dim);
  while (s.dim % group_size || s.hidden_dim % group_size) group_size--;
  return group_size;
}

// Makes the shape smaller until the file fits.
void shrink(Shape *s) {
  if (s->n_layers > 1)
    s->n_layers /= 2;
  else if (s->vocab() > 4)
    s->vocab_size /= 2;
  else if (s->seq_len > 4)
    s->seq_len /= 2;
  else if (s->hidden_dim > 2)
    s->hidden_dim /= 2;
  else
    *s = {2, 1, 1, 1, 1, 1, 1};
}

void make_one_mistake(uint8_t *file, size_t *size, size_t max_size, Format format, Random *random) {
  const uint32_t fields = format == Format::kLegacy ? 28 : 41;
  switch (random->below(4)) {
    case 0: file[random->below(fields)] = uint8_t(random->next()); break;
    case 1: file[random->below(fields)] ^= uint8_t(1u << random->below(8)); break;
    case 2: *size -= 1 + random->below(uint32_t(*size)); break;
    default:
      if (*size < max_size) file[(*size)++] = 0;
      break;
  }
}

}  // namespace

size_t repair_checkpoint(uint8_t *file, size_t size, size_t max_size, Random *random) {
  if (max_size < kSmallestFile) return size;
  for (; size < 64; size++) file[size] = uint8_t(random->next());
  const Format format = format_of(file, random);
  const bool was_versioned = load(file) == kMagic;
  Shape s = shape_at(file + (was_versioned ? 8 : 0), format, random);
  bool shared = was_versioned ? file[36] % 2 : int32_t(load(file + 20)) > 0;
  if (format != Format::kLegacy) s.vocab_size = shared ? s.vocab() : -s.vocab();
  int32_t group_size = group_for(s, was_versioned ? load(file + 37) : random->next());
  while (proofinfer_test::checkpoint_bytes(format, s, group_size) > max_size) {
    shrink(&s);
    group_size = group_for(s, uint32_t(group_size));
  }
  const std::vector<uint8_t> header = proofinfer_test::checkpoint_header(format, s, group_size);
  const size_t wanted = size_t(proofinfer_test::checkpoint_bytes(format, s, group_size));
  for (; size < wanted; size++) file[size] = uint8_t(random->one_in(3) ? 0 : random->next());
  size = wanted;
  const size_t fields = format == Format::kLegacy ? 28 : 41;  // bytes behind them may be anything
  std::memcpy(file, header.data(), fields);
  if (random->one_in(4)) make_one_mistake(file, &size, max_size, format, random);
  return size;
}

void repair_tokenizer(uint8_t *file, size_t size, uint16_t *vocab_size, Random *random) {
  uint32_t pieces = 0;
  for (size_t at = 4; size >= 8 && at <= size - 8; pieces++) {
    if ((load(file + at) & 0x7f800000u) == 0x7f800000u) file[at + 3] &= 0x3f;
    const uint32_t left = uint32_t(size - at - 8);
    uint32_t length = load(file + at + 4);
    if (length > left) store(file + at + 4, length = length % 32 <= left ? length % 32 : left);
    at += 8 + length;
  }
  *vocab_size = uint16_t(pieces);
  if (random->one_in(8)) *vocab_size = uint16_t(random->below(pieces + 3));
  if (random->one_in(8) && size > 0) file[random->below(uint32_t(size))] = uint8_t(random->next());
}

size_t mutate_with_checkpoint(uint8_t *data, size_t size, size_t max_size, unsigned seed, size_t prefix) {
  Random random(seed);
  size = LLVMFuzzerMutate(data, size, max_size);
  if (random.one_in(16) || max_size < prefix + kSmallestFile) return size;
  for (; size < prefix; size++) data[size] = uint8_t(random.next());
  return prefix + repair_checkpoint(data + prefix, size - prefix, max_size - prefix, &random);
}

}  // namespace proofinfer_fuzz
