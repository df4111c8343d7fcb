// Every byte of every header replaced by 00, 01, 7F, 80 and FF, and every bit of it flipped: the status is the one that a second, plain reading of
// the formats gives, nothing is allocated from a number in the header, and what loads computes.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "support/checkpoint.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint32_t kMagic = 0x616b3432;

uint32_t u32_at(const Bytes &bytes, size_t at) {
  return uint32_t(bytes[at]) | uint32_t(bytes[at + 1]) << 8 | uint32_t(bytes[at + 2]) << 16 | uint32_t(bytes[at + 3]) << 24;
}
int32_t i32_at(const Bytes &bytes, size_t at) { return int32_t(u32_at(bytes, at)); }

// The second reading of a checkpoint. For bytes that are no other kind of file.
int32_t expected_checkpoint_status(const Bytes &bytes) {
  Format format = Format::kLegacy;
  if (u32_at(bytes, 0) == kMagic) {
    const int32_t version = i32_at(bytes, 4);
    if (version != 1 && version != 2) return PROOFINFER_E_UNSUPPORTED;
    format = version == 1 ? Format::kVersion1 : Format::kVersion2;
  }
  int32_t v[7];
  for (size_t i = 0; i < 7; i++) v[i] = i32_at(bytes, shape_offset(format) + 4 * i);
  Shape s = {v[0], v[1], v[2], v[3], v[4], v[5], v[6]};
  if (s.dim < 1 || s.hidden_dim < 1 || s.n_layers < 1 || s.n_heads < 1 || s.n_kv_heads < 1 || s.seq_len < 1) return PROOFINFER_E_FORMAT;
  if (s.vocab_size == 0 || s.vocab_size == INT32_MIN || (format != Format::kLegacy && s.vocab_size < 0)) return PROOFINFER_E_FORMAT;
  if (s.dim % s.n_heads || s.n_heads % s.n_kv_heads || s.dim / s.n_heads % 2) return PROOFINFER_E_FORMAT;
  int32_t group_size = 1;
  if (format != Format::kLegacy) {
    if (bytes[kFlagOffset] > 1) return PROOFINFER_E_FORMAT;
    if (bytes[kFlagOffset] == 0) s.vocab_size = -s.vocab_size;
  }
  if (format == Format::kVersion2) {
    group_size = i32_at(bytes, kGroupOffset);
    if (group_size < 1 || group_size > 65536 || s.dim % group_size || s.hidden_dim % group_size) return PROOFINFER_E_FORMAT;
  }
  const unsigned __int128 wanted = checkpoint_bytes(format, s, group_size);
  if (wanted > INT64_MAX || wanted < bytes.size()) return PROOFINFER_E_FORMAT;
  return wanted > bytes.size() ? PROOFINFER_E_TRUNCATED : PROOFINFER_OK;
}

// The same of a tokenizer.bin of which `wanted` pieces are asked for.
int32_t expected_tokenizer_status(const Bytes &bytes, size_t wanted) {
  size_t at = 4;
  for (size_t i = 0; i < wanted; i++) {
    if (bytes.size() - at < 8) return PROOFINFER_E_TRUNCATED;
    if ((u32_at(bytes, at) & 0x7f800000u) == 0x7f800000u || i32_at(bytes, at + 4) < 0) return PROOFINFER_E_FORMAT;
    const size_t length = u32_at(bytes, at + 4);
    at += 8;
    if (length > bytes.size() - at) return PROOFINFER_E_TRUNCATED;
    at += length;
  }
  return PROOFINFER_OK;
}

// use(changed, what) for every change of the first `count` bytes.
template <typename Use>
void for_each_change(const Bytes &good, size_t count, Use use) {
  for (size_t at = 0; at < count; at++) {
    std::vector<uint8_t> values = {0x00, 0x01, 0x7F, 0x80, 0xFF};
    for (int bit = 0; bit < 8; bit++) values.push_back(uint8_t(good[at] ^ 1 << bit));
    for (uint8_t value : values) {
      Bytes changed(good);  // of exactly this size: a sanitizer sees one byte too far
      changed[at] = value;
      use(changed, "byte " + std::to_string(at) + " = " + std::to_string(value));
    }
  }
}

void print(const char *what, const std::map<std::string, int> &counts) {
  for (const auto &[status, count] : counts) std::printf("  %-12s %-28s %d\n", what, status.c_str(), count);
}

class ExhaustiveHeaders : public testing::TestWithParam<Format> {};

}  // namespace

TEST_P(ExhaustiveHeaders, every_changed_byte_and_bit_of_a_checkpoint_gives_the_status_of_a_second_reading) {
  std::map<std::string, int> counts;
  for (const Shape &shape : {Shape{4, 6, 2, 2, 1, 5, 8}, Shape{8, 8, 1, 2, 2, -3, 5}, Shape{2, 1, 1, 1, 1, 1, 1}}) {
    const Bytes good = checkpoint(GetParam(), shape, 1, shape.hidden_dim % 2 ? 1 : 2);
    for_each_change(good, header_bytes(GetParam()), [&](const Bytes &bytes, const std::string &what) {
      SCOPED_TRACE(what);
      Options options = make_options();
      CountingAllocator allocator;
      allocator.install(options);
      {
        Answer answer;
        Model model = open_model(bytes, options.get(), &answer);
        ASSERT_EQ(answer.status, expected_checkpoint_status(bytes)) << answer;
        counts[proofinfer_status_name(answer.status)]++;
        if (model) {
          Session session = make_session(model, options.get());
          ASSERT_TRUE(append(session, {0}, PROOFINFER_LOGITS_LAST).ok());
        } else {
          ASSERT_LE(allocator.peak_bytes(), 16u << 10);
        }
      }
      ASSERT_EQ(allocator.held_blocks(), 0u);
    });
  }
  print(format_name(GetParam()), counts);
}

INSTANTIATE_TEST_SUITE_P(All, ExhaustiveHeaders, testing::ValuesIn(kFormats), [](const testing::TestParamInfo<Format> &info) {
  return std::string(info.param == Format::kLegacy ? "legacy" : info.param == Format::kVersion1 ? "version1" : "version2");
});

TEST(ExhaustiveTokenizer, every_changed_byte_and_bit_gives_the_status_of_a_second_reading) {
  std::map<std::string, int> counts;
  const std::vector<Piece> pieces = {{"<unk>", 0.0f}, {"", -1.5f}, {" ", 2.0f}, {std::string("a\0b", 3), -0.0f}, {"abcdefgh", -1e30f}};
  const Bytes good = tokenizer_file(pieces);
  for (size_t wanted : {pieces.size(), size_t(1)})
    for_each_change(good, good.size(), [&](const Bytes &bytes, const std::string &what) {
      SCOPED_TRACE(what);
      Answer answer;
      open_tokenizer(bytes, int32_t(wanted), nullptr, &answer);
      ASSERT_EQ(answer.status, expected_tokenizer_status(bytes, wanted)) << answer;
      counts[proofinfer_status_name(answer.status)]++;
    });
  print("tokenizer", counts);
}

}  // namespace proofinfer_test
