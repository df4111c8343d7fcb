// Good files that hardening must not refuse: odd, extreme and unusual ones. Each loads and computes. (The long tier adds one of 5 GB.)
#include <gtest/gtest.h>

#include <algorithm>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

using Bytes = std::vector<uint8_t>;

// From memory and from a file, computing one position.
void expect_loads(const Bytes &bytes, const std::string &what) {
  SCOPED_TRACE(what);
  ScratchFile file(bytes);
  for (const Model &model : {open_model(bytes), open_model(file.path())}) {
    ASSERT_TRUE(model);
    Options options = make_options();
    set(options, "context_length", 1);
    Session session = make_session(model, options.get());
    EXPECT_TRUE(append(session, {int32_t(model_i64(model, PROOFINFER_MODEL_VOCAB_SIZE)) - 1}, PROOFINFER_LOGITS_LAST).ok());
  }
}

}  // namespace

TEST(MustStillLoad, shapes_at_their_borders_in_every_format) {
  const Shape shapes[] = {{2, 1, 1, 1, 1, 1, 1},        {2, 1, 1, 1, 1, -1, 1},       {2, 1, 300, 1, 1, 2, 1},
                          {64, 1, 1, 32, 1, 3, 2},      {64, 1, 1, 32, 32, 3, 2},     {64, 1, 1, 1, 1, 3, 2},
                          {2, 5000, 1, 1, 1, 3, 2},     {2, 1, 1, 1, 1, 70000, 1},    {34, 86, 1, 17, 17, -33, 3},
                          {250, 500, 1, 125, 5, 17, 2}, {16, 16, 1, 8, 4, 15, 70000}, {48, 128, 1, 6, 2, 1001, 64}};
  for (const Shape &shape : shapes)
    for (Format format : kFormats)
      for (int32_t group_size = 1; group_size <= shape.dim; group_size++) {
        if (shape.dim % group_size || shape.hidden_dim % group_size) continue;
        if (group_size > 1 && format != Format::kVersion2) continue;
        expect_loads(checkpoint(format, shape, 3, group_size), std::string(format_name(format)) + ", dim " + std::to_string(shape.dim) +
                                                                   ", hidden_dim " + std::to_string(shape.hidden_dim) + ", group_size " +
                                                                   std::to_string(group_size));
      }
}

TEST(MustStillLoad, the_longest_context_that_a_header_can_name) {
  // Versions 1 and 2 store nothing for it; the legacy format's tables would be gigabytes.
  for (Format format : {Format::kVersion1, Format::kVersion2})
    expect_loads(checkpoint(format, {4, 6, 1, 2, 1, 5, INT32_MAX}, 1, 2), format_name(format));
}

TEST(MustStillLoad, headers_with_bytes_behind_their_fields) {
  for (Format format : {Format::kVersion1, Format::kVersion2}) {
    Bytes bytes = checkpoint(format, {4, 6, 1, 2, 1, 5, 8}, 1, 2);
    std::fill(bytes.begin() + (format == Format::kVersion1 ? 37 : 41), bytes.begin() + 256, uint8_t(0xA5));
    expect_loads(bytes, format_name(format));
  }
}

TEST(MustStillLoad, legacy_headers_whose_first_bytes_are_another_kinds_magic) {
  // A dimension may spell anything; the size decides. 640 is 80 02, as pickles begin.
  expect_loads(legacy_checkpoint({640, 1, 1, 1, 1, 1, 1}, 1), "dim 640, a pickle's first bytes");
}

TEST(MustStillLoad, weights_of_any_value) {
  const Shape shape = {4, 6, 1, 2, 1, 5, 8};
  for (Format format : kFormats)
    for (uint8_t value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      Bytes bytes = checkpoint(format, shape, 1, 2);
      std::fill(bytes.begin() + std::ptrdiff_t(header_bytes(format)), bytes.end(), value);
      expect_loads(bytes, std::string(format_name(format)) + ", all bytes " + std::to_string(value));
    }
}

TEST(MustStillLoad, tokenizers_of_every_kind) {
  const std::vector<std::vector<Piece>> vocabularies = {
      {{"", 0.0f}},
      {{"a", 1e-45f}, {"a", 3.4e38f}, {"a", -3.4e38f}},
      {{std::string(100000, 'z'), 0.0f}, {" ", 1.0f}},
      {{std::string("\0\0\0", 3), 0.0f}, {"<0xZZ>", 0.0f}, {"<0x-1>", 0.0f}, {"\xFF\xFE", 0.0f}},
      std::vector<Piece>(5000, {"x", 1.0f}),
      small_vocabulary({"a", "b"})};
  for (const std::vector<Piece> &pieces : vocabularies)
    for (int64_t longest : {-1, 0, 1, INT32_MAX}) {
      Bytes bytes = tokenizer_file(pieces, longest);
      ScratchFile file(bytes);
      EXPECT_TRUE(open_tokenizer(bytes, int32_t(pieces.size())));
      EXPECT_TRUE(open_tokenizer(file.path(), int32_t(pieces.size())));
    }
}

}  // namespace proofinfer_test
