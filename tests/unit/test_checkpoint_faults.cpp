// Malformed checkpoints of all formats through the C API: each has one defect and gets the documented code and a message that names the culprit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "proved/checkpoint_layout.h"
#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

using Bytes = std::vector<uint8_t>;

const Shape kTied = {4, 6, 2, 2, 1, 5, 8};
const Shape kUntied = {4, 6, 2, 2, 1, -5, 8};
constexpr int32_t kGroup = 2;
constexpr const char *kFieldNames[7] = {"dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"};
constexpr int kVocabSize = 5;  // its place among them

// Opens a copy in an allocation of exactly that size, so that a sanitizer sees a read past its end.
Answer open_answer(const Bytes &bytes, const proofinfer_options *options = nullptr) {
  Answer answer;
  Bytes exact(bytes.begin(), bytes.end());
  open_model(exact, options, &answer);
  return answer;
}

Answer open_file_answer(const Bytes &bytes) {
  ScratchFile file(bytes);
  Answer answer;
  open_model(file.path(), nullptr, &answer);
  return answer;
}

Bytes with_i32(Bytes bytes, size_t offset, int32_t value) {
  Bytes number;
  put_i32(&number, value);
  std::copy(number.begin(), number.end(), bytes.begin() + std::ptrdiff_t(offset));
  return bytes;
}

Bytes text_bytes(const std::string &text) { return Bytes(text.begin(), text.end()); }

std::string number(uint64_t value) { return std::to_string(value); }

#define EXPECT_ANSWER(answer_expression, expected_status, ...)                         \
  do {                                                                                 \
    Answer answer_ = (answer_expression);                                              \
    EXPECT_EQ(answer_.status, (expected_status)) << answer_;                           \
    for (const std::string &part_ : std::initializer_list<std::string>{__VA_ARGS__})   \
      EXPECT_TRUE(answer_.says(part_)) << "\"" << part_ << "\" is not in " << answer_; \
  } while (false)

// What every format must refuse alike.
class CheckpointFaultsOf : public testing::TestWithParam<Format> {
 protected:
  Bytes good(const Shape &shape) const { return checkpoint(GetParam(), shape, 1, kGroup); }
  size_t field_offset(int field) const { return shape_offset(GetParam()) + 4 * size_t(field); }
  // A good file whose header integer `field` (0 to 6) is replaced.
  Bytes with_field(const Shape &shape, int field, int32_t value) const { return with_i32(good(shape), field_offset(field), value); }
  std::string at(int field) const { return std::string(kFieldNames[field]) + " at offset " + number(field_offset(field)) + " is "; }
  std::string name() const { return std::string(format_name(GetParam())) + " checkpoint"; }
};

std::string test_name(const testing::TestParamInfo<Format> &info) {
  std::string name = format_name(info.param);
  name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
  return name;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(All, CheckpointFaultsOf, testing::ValuesIn(kFormats), test_name);

TEST_P(CheckpointFaultsOf, cut_anywhere_names_the_first_missing_tensor_and_both_sizes) {
  const size_t header = header_bytes(GetParam());
  const bool legacy = GetParam() == Format::kLegacy;
  for (const Shape &shape : {kTied, kUntied}) {
    const Bytes whole = good(shape);
    const std::vector<TensorPlace> places = tensor_places(GetParam(), shape, kGroup);
    ASSERT_EQ(places.back().offset + places.back().bytes, whole.size());
    ASSERT_EQ(uint64_t(checkpoint_bytes(GetParam(), shape, kGroup)), whole.size());
    ASSERT_TRUE(open_answer(whole).ok());
    for (size_t size = 0; size < whole.size(); size++) {
      SCOPED_TRACE(size);
      Bytes part(whole.begin(), whole.begin() + std::ptrdiff_t(size));
      if (size == 0) {
        EXPECT_ANSWER(open_answer(part), PROOFINFER_E_UNRECOGNIZED, "empty");
      } else if (size < 4 && !legacy) {  // not even the magic: what is left is the format without one
        EXPECT_ANSWER(open_answer(part), PROOFINFER_E_TRUNCATED,
                      "legacy checkpoint: the header (seven int32) needs 28 bytes; found " + number(size));
      } else if (size < header) {
        EXPECT_ANSWER(open_answer(part), PROOFINFER_E_TRUNCATED, legacy ? "legacy checkpoint" : "versioned checkpoint",
                      "needs " + number(header) + " bytes; found " + number(size));
      } else {
        auto cut = std::find_if(places.begin(), places.end(), [&](const TensorPlace &p) { return p.offset + p.bytes > size; });
        EXPECT_ANSWER(open_answer(part), PROOFINFER_E_TRUNCATED,
                      name() + ": expected " + number(whole.size()) + " bytes by its header, found " + number(size) + ": tensor " +
                          cut->name + " at offset " + number(cut->offset) + " needs " + number(cut->bytes) + " bytes and " +
                          number(size - cut->offset) + " are there");
      }
    }
  }
}

TEST_P(CheckpointFaultsOf, cut_in_a_file_gives_the_same_answer_as_in_memory) {
  const Bytes whole = good(kTied);
  for (size_t size = 0; size <= whole.size(); size += 13) {
    Bytes part(whole.begin(), whole.begin() + std::ptrdiff_t(size));
    Answer memory = open_answer(part);
    EXPECT_ANSWER(open_file_answer(part), memory.status, memory.message);
  }
}

TEST_P(CheckpointFaultsOf, bytes_after_the_last_tensor_are_an_error_with_both_sizes) {
  for (size_t extra : {1, 3, 4, 28, 1000}) {
    Bytes bytes = good(kTied);
    size_t expected = bytes.size();
    bytes.resize(expected + extra);
    EXPECT_ANSWER(open_answer(bytes), PROOFINFER_E_FORMAT,
                  name() + ": expected exactly " + number(expected) + " bytes by its header, found " + number(expected + extra) + ": " +
                      number(extra) + " bytes follow the last tensor");
  }
}

TEST_P(CheckpointFaultsOf, header_value_below_one_names_field_offset_and_value) {
  for (int field = 0; field < 7; field++)
    for (int32_t value : {0, -1, -2, INT32_MIN}) {
      // A negative vocabulary has a meaning in the legacy format.
      if (GetParam() == Format::kLegacy && field == kVocabSize && value != 0 && value != INT32_MIN) continue;
      EXPECT_ANSWER(open_answer(with_field(kTied, field, value)), PROOFINFER_E_FORMAT,
                    name() + " header: " + at(field) + std::to_string(value) + "; expected ");
    }
}

TEST_P(CheckpointFaultsOf, heads_that_do_not_divide_are_named_with_both_numbers) {
  EXPECT_ANSWER(open_answer(with_field(kTied, 3, 3)), PROOFINFER_E_FORMAT,
                name() + " header: " + at(3) + "3; expected a divisor of dim, which is 4");
  EXPECT_ANSWER(open_answer(with_field({12, 6, 1, 6, 2, 5, 8}, 4, 4)), PROOFINFER_E_FORMAT,
                at(4) + "4; expected a divisor of n_heads, which is 6");
  EXPECT_ANSWER(open_answer(with_field(kTied, 4, 4)), PROOFINFER_E_FORMAT, at(4) + "4; expected a divisor of n_heads, which is 2");
  EXPECT_ANSWER(open_answer(with_field(kTied, 3, 4)), PROOFINFER_E_FORMAT, "dim / n_heads is 4 / 4 = 1; expected an even head size");
  EXPECT_ANSWER(open_answer(with_field({12, 6, 1, 6, 2, 5, 8}, 3, 4)), PROOFINFER_E_FORMAT, "12 / 4 = 3; expected an even head size");
}

TEST_P(CheckpointFaultsOf, sizes_that_wrap_are_errors) {
  // 2^30 layers of 2^16 x 2^16 floats are 2^64 bytes: exactly 0 where the product is not checked.
  const Shape wraps_to_zero = {1 << 16, 1 << 16, 1 << 30, 2, 2, 1, 1};
  const Shape all_largest = {INT32_MAX - 1, INT32_MAX - 1, INT32_MAX, 1, 1, INT32_MAX, INT32_MAX};
  const Shape largest_vocabulary = {INT32_MAX - 1, 2, 1, 1, 1, -INT32_MAX, 1};
  struct Wrapping {
    Shape shape;
    std::string tensor[3];  // the first one whose end does not fit 2^63, in each format
  };
  const Wrapping wrappings[] = {{wraps_to_zero, {"wq", "wq", "wq"}},
                                {all_largest, {"token_embedding", "attention_norm", "attention_norm"}},
                                {largest_vocabulary, {"token_embedding", "token_embedding", "token_embedding"}}};
  for (const Wrapping &wrapping : wrappings) {
    Bytes bytes = checkpoint_header(GetParam(), wrapping.shape, kGroup);
    bytes.resize(4096);
    EXPECT_ANSWER(open_answer(bytes), PROOFINFER_E_FORMAT,
                  name() + " header: the sizes up to tensor " + wrapping.tensor[int(GetParam())] + " exceed 2^63 bytes (dim " +
                      std::to_string(wrapping.shape.dim) + ",");
  }
}

TEST_P(CheckpointFaultsOf, nothing_is_allocated_for_what_a_header_only_claims) {
  const Shape asks_for_terabytes = {65536, 65536, 64, 64, 64, 1000000, 4096};
  const Shape asks_for_61_gigabytes = {4096, 11008, 75, 32, 32, 32000, 2048};
  for (const Shape &shape : {asks_for_terabytes, asks_for_61_gigabytes})
    for (size_t size : {header_bytes(GetParam()), size_t(1 << 16)}) {
      Bytes bytes = checkpoint_header(GetParam(), shape, 64);
      bytes.resize(size);
      Options options = make_options();
      CountingAllocator allocator;
      allocator.install(options);
      const TensorPlace first = tensor_places(GetParam(), shape, 64).front(), last = tensor_places(GetParam(), shape, 64).back();
      ASSERT_GT(first.offset + first.bytes * uint64_t(shape.n_layers), size);
      EXPECT_ANSWER(open_answer(bytes, options.get()), PROOFINFER_E_TRUNCATED,
                    "expected " + number(last.offset + last.bytes) + " bytes by its header, found " + number(size) + ": tensor ");
      EXPECT_LE(allocator.peak_bytes(), 16u << 10);
      EXPECT_EQ(allocator.held_blocks(), 0u);
    }
}

TEST_P(CheckpointFaultsOf, path_and_memory_give_the_same_model) {
  for (const Shape &shape : {kTied, kUntied, Shape{36, 50, 3, 3, 3, 101, 40}}) {
    Bytes bytes = good(shape);
    ScratchFile file(bytes);
    Model from_path = open_model(file.path()), from_memory = open_model(bytes);
    Session a = make_session(from_path), b = make_session(from_memory);
    ASSERT_TRUE(append(a, {1, 2, 3, 4}, PROOFINFER_LOGITS_LAST).ok());
    ASSERT_TRUE(append(b, {1, 2, 3, 4}, PROOFINFER_LOGITS_LAST).ok());
    EXPECT_EQ(logits(a, 3), logits(b, 3));
  }
}

TEST_P(CheckpointFaultsOf, bytes_at_any_alignment_are_read_right) {
  const Bytes bytes = good(kTied);
  Model expected_model = open_model(bytes);
  Session expected = make_session(expected_model);
  ASSERT_TRUE(append(expected, {1, 2}, PROOFINFER_LOGITS_LAST).ok());
  for (size_t shift = 1; shift < 8; shift++) {
    Bytes shifted(shift);
    shifted.insert(shifted.end(), bytes.begin(), bytes.end());
    proofinfer_model *made = nullptr;
    Answer answer = answer_of(proofinfer_model_open_memory, shifted.data() + shift, bytes.size(), nullptr, nullptr, &made);
    ASSERT_TRUE(answer.ok()) << answer;
    Model model(made);
    shifted.assign(shifted.size(), 0xAA);  // copied, not kept
    Session session = make_session(model);
    ASSERT_TRUE(append(session, {1, 2}, PROOFINFER_LOGITS_LAST).ok());
    EXPECT_EQ(logits(session, 1), logits(expected, 1));
  }
}

// The fields that only versions 1 and 2 have.

TEST(CheckpointFaults, no_tensor_is_missing_in_a_file_of_the_right_size_or_a_larger_one) {
  const pi_checkpoint_header header = {PI_FORMAT_V1, 4, 6, 2, 2, 1, 5, 8, 1, 0};
  pi_checkpoint_layout layout;
  int kind = 0;
  ASSERT_EQ(pi_checkpoint_plan(&header, &layout, &kind), PI_LAYOUT_OK);
  EXPECT_EQ(pi_checkpoint_first_missing(&layout, layout.file_bytes), PI_TENSOR_KINDS);
  EXPECT_EQ(pi_checkpoint_first_missing(&layout, UINT64_MAX), PI_TENSOR_KINDS);
  EXPECT_EQ(pi_checkpoint_first_missing(&layout, 0), PI_ATTENTION_NORM);
}

TEST(CheckpointFaults, a_version_that_is_not_1_or_2_is_unsupported_by_number) {
  for (int32_t version : {0, 3, -1, INT32_MIN, INT32_MAX, 1 << 24})
    EXPECT_ANSWER(open_answer(with_i32(version1_checkpoint(kTied, 1), 4, version)), PROOFINFER_E_UNSUPPORTED,
                  "versioned checkpoint header: version at offset 4 is " + std::to_string(version) + "; expected 1 or 2");
}

TEST(CheckpointFaults, a_version_header_from_a_machine_of_the_other_byte_order_is_said_to_be_one) {
  for (Format format : {Format::kVersion1, Format::kVersion2}) {
    Bytes bytes = checkpoint(format, kTied, 1, kGroup);
    for (size_t i = 0; i < 36; i += 4) std::reverse(bytes.begin() + std::ptrdiff_t(i), bytes.begin() + std::ptrdiff_t(i) + 4);
    EXPECT_ANSWER(open_answer(bytes), PROOFINFER_E_UNSUPPORTED, "a byte-swapped llama2.c checkpoint with a version header");
  }
}

TEST(CheckpointFaults, a_version_1_file_called_version_2_and_the_other_way_round_do_not_load) {
  EXPECT_ANSWER(open_answer(with_i32(version1_checkpoint(kTied, 1), 4, 2)), PROOFINFER_E_FORMAT,
                "group_size at offset 37 is 0; expected 1 to 65536");
  Bytes as_1 = with_i32(version2_checkpoint(kTied, 1, kGroup), 4, 1);
  EXPECT_ANSWER(open_answer(as_1), PROOFINFER_E_TRUNCATED,
                "version 1 checkpoint: expected " + number(version1_checkpoint(kTied, 1).size()) + " bytes",
                "found " + number(as_1.size()));
}

TEST(CheckpointFaults, a_shared_classifier_flag_other_than_0_and_1_is_named) {
  for (Format format : {Format::kVersion1, Format::kVersion2})
    for (int flag = 2; flag < 256; flag++) {
      Bytes bytes = checkpoint(format, kTied, 1, kGroup);
      bytes[kFlagOffset] = uint8_t(flag);
      EXPECT_ANSWER(open_answer(bytes), PROOFINFER_E_FORMAT,
                    std::string(format_name(format)) + " checkpoint header: the shared-classifier flag at offset 36 is " +
                        std::to_string(flag) + "; expected 0 or 1");
    }
}

TEST(CheckpointFaults, a_shared_classifier_flag_that_lies_is_noticed_by_the_size) {
  for (Format format : {Format::kVersion1, Format::kVersion2}) {
    Bytes tied = checkpoint(format, kTied, 1, kGroup), untied = checkpoint(format, kUntied, 1, kGroup);
    const uint64_t tied_bytes = tied.size(), untied_bytes = untied.size();
    tied[kFlagOffset] = 0, untied[kFlagOffset] = 1;
    EXPECT_ANSWER(
        open_answer(tied), PROOFINFER_E_TRUNCATED, "expected " + number(untied_bytes),
        "tensor classifier at offset " + number(tied_bytes) + " needs " + number(untied_bytes - tied_bytes) + " bytes and 0 are there");
    EXPECT_ANSWER(open_answer(untied), PROOFINFER_E_FORMAT, "expected exactly " + number(tied_bytes), "found " + number(untied_bytes));
  }
}

TEST(CheckpointFaults, group_sizes_are_positive_at_most_65536_and_divide_dim_and_hidden_dim) {
  const Bytes good = version2_checkpoint(kTied, 1, kGroup);
  for (int32_t group_size : {0, -1, -2, INT32_MIN, 65537, INT32_MAX})
    EXPECT_ANSWER(open_answer(with_i32(good, kGroupOffset, group_size)), PROOFINFER_E_FORMAT,
                  "version 2 checkpoint header: group_size at offset 37 is " + std::to_string(group_size) + "; expected 1 to 65536");
  for (int32_t group_size : {3, 5, 8, 65536})
    EXPECT_ANSWER(open_answer(with_i32(good, kGroupOffset, group_size)), PROOFINFER_E_FORMAT,
                  "group_size at offset 37 is " + std::to_string(group_size) + "; expected a divisor of dim, which is 4");
  EXPECT_ANSWER(open_answer(with_i32(good, kGroupOffset, 4)), PROOFINFER_E_FORMAT,
                "group_size at offset 37 is 4; expected a divisor of hidden_dim, which is 6");
  // The shape of a published model whose hidden dimension is no multiple of the usual group: its bytes were written with 64 all the same.
  Bytes published = checkpoint_header(Format::kVersion2, {512, 1376, 8, 8, 8, 32000, 1024}, 64);
  published.resize(4096);
  EXPECT_ANSWER(open_answer(published), PROOFINFER_E_FORMAT,
                "group_size at offset 37 is 64; expected a divisor of hidden_dim, which is 1376");
}

TEST(CheckpointFaults, another_group_size_that_divides_is_noticed_by_the_size) {
  Bytes bytes = version2_checkpoint({8, 8, 1, 2, 1, 5, 8}, 1, 4);
  uint64_t with_2 = version2_checkpoint({8, 8, 1, 2, 1, 5, 8}, 1, 2).size(),
           with_8 = version2_checkpoint({8, 8, 1, 2, 1, 5, 8}, 1, 8).size();
  EXPECT_ANSWER(open_answer(with_i32(bytes, kGroupOffset, 2)), PROOFINFER_E_TRUNCATED, "expected " + number(with_2),
                "found " + number(bytes.size()));
  EXPECT_ANSWER(open_answer(with_i32(bytes, kGroupOffset, 8)), PROOFINFER_E_FORMAT, "expected exactly " + number(with_8),
                "found " + number(bytes.size()));
}

TEST(CheckpointFaults, the_largest_group_is_accepted) {
  const Shape shape = {65536, 65536, 1, 32768, 1, 2, 2};
  // Only the header can be tried without gigabytes: the size is what is missing, not the group.
  Bytes bytes = checkpoint_header(Format::kVersion2, shape, 65536);
  bytes.resize(4096);
  EXPECT_ANSWER(open_answer(bytes), PROOFINFER_E_TRUNCATED, "version 2 checkpoint: expected ");
}

TEST(CheckpointFaults, header_bytes_behind_the_fields_are_not_looked_at) {
  for (Format format : {Format::kVersion1, Format::kVersion2}) {
    Bytes bytes = checkpoint(format, kTied, 1, kGroup);
    std::fill(bytes.begin() + (format == Format::kVersion1 ? 37 : 41), bytes.begin() + 256, uint8_t(0xFF));
    EXPECT_TRUE(open_answer(bytes).ok());
  }
}

TEST(CheckpointFaults, the_wrong_file_is_called_what_it_looks_like) {
  Bytes swapped = legacy_checkpoint(kTied, 1);
  for (size_t i = 0; i < 28; i += 4) std::reverse(swapped.begin() + std::ptrdiff_t(i), swapped.begin() + std::ptrdiff_t(i) + 4);
  Bytes zip = text_bytes("PK\x03\x04");
  zip.resize(200);
  struct Wrong {
    Bytes bytes;
    int32_t status;
    const char *says;
  };
  Bytes gguf = text_bytes("GGUF"), pickle = text_bytes("\x80\x02}q");
  gguf.resize(300), pickle.resize(300);
  Bytes prose = text_bytes("The quick brown fox jumps over the lazy dog, again and again.\n");
  const Wrong wrongs[] = {
      {{}, PROOFINFER_E_UNRECOGNIZED, "empty"},
      {text_bytes("<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"), PROOFINFER_E_UNRECOGNIZED, "HTML"},
      {text_bytes("  <html><body>Not found</body></html>"), PROOFINFER_E_UNRECOGNIZED, "HTML"},
      {text_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"), PROOFINFER_E_UNRECOGNIZED, "Git LFS"},
      {swapped, PROOFINFER_E_UNRECOGNIZED, "byte order"},
      {prose, PROOFINFER_E_UNRECOGNIZED, "text"},
      {text_bytes(std::string(40, ' ')), PROOFINFER_E_UNRECOGNIZED, "text"},
      {text_bytes(std::string(300, '\n')), PROOFINFER_E_UNRECOGNIZED, "text"},
      {gguf, PROOFINFER_E_UNSUPPORTED, "GGUF"},
      {zip, PROOFINFER_E_UNSUPPORTED, "ZIP"},
      {pickle, PROOFINFER_E_UNSUPPORTED, "pickle"},
  };
  for (const Wrong &wrong : wrongs) {
    Answer answer = open_answer(wrong.bytes);
    EXPECT_EQ(answer.status, wrong.status) << answer;
    EXPECT_TRUE(answer.says(wrong.says)) << answer;
    EXPECT_EQ(open_file_answer(wrong.bytes).status, wrong.status);
  }
}

TEST(CheckpointFaults, a_good_file_that_begins_like_another_kind_still_loads) {
  // dim 0x...: the first bytes of a legitimate header may spell anything; here hidden_dim looks like text.
  Shape shape = {32, 32, 1, 2, 2, 33, 8};
  EXPECT_TRUE(open_answer(legacy_checkpoint(shape, 2)).ok());
}

TEST(CheckpointFaults, non_finite_weights_load_and_give_canonical_nans_that_cannot_be_sampled) {
  const float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  for (float bad : {kNan, -kNan, kInf, -kInf}) {
    Bytes bytes = legacy_checkpoint(kTied, 1), poison;
    put_f32(&poison, bad);
    poison[0] |= std::isnan(bad) ? 0x55 : 0;  // a payload of its own
    for (const TensorPlace &place : legacy_places(kTied)) {
      if (place.name != "layers.0.wv") continue;
      for (uint64_t at = place.offset; at < place.offset + place.bytes; at += 4)
        std::copy(poison.begin(), poison.end(), bytes.begin() + std::ptrdiff_t(at));
    }
    for (const std::string &isa : available_isas()) {
      Options options = make_options();
      set_text(options, "isa", isa);
      Model model = open_model(bytes, options.get());
      ASSERT_TRUE(model);
      Session session = make_session(model);
      ASSERT_TRUE(append(session, {1, 2, 3}, PROOFINFER_LOGITS_LAST).ok());
      std::vector<float> found = logits(session, 2);
      size_t nans = 0;
      for (float value : found) {
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        if (std::isnan(value)) {
          nans++;
          EXPECT_EQ(bits, 0x7fc00000u);
        }
      }
      EXPECT_GT(nans, 0u) << bad << " " << isa;
      Sampler sampler = make_sampler(5);
      int32_t token = -1;
      EXPECT_EQ(answer_of(proofinfer_sampler_sample, sampler.get(), found.data(), found.size(), &token).status, PROOFINFER_E_NOT_FINITE);
    }
  }
}

TEST(CheckpointFaults, all_zero_weights_give_zero_logits_and_the_lowest_id) {
  Bytes bytes = legacy_checkpoint(kTied, 1);
  std::fill(bytes.begin() + 28, bytes.end(), uint8_t(0));
  Model model = open_model(bytes);
  Session session = make_session(model);
  ASSERT_TRUE(append(session, {1, 2, 3}, PROOFINFER_LOGITS_LAST).ok());
  std::vector<float> found = logits(session, 2);
  EXPECT_EQ(found, std::vector<float>(5, 0.0f));
  Sampler sampler = make_sampler(5);
  int32_t token = -1;
  ASSERT_TRUE(answer_of(proofinfer_sampler_sample, sampler.get(), found.data(), found.size(), &token).ok());
  EXPECT_EQ(token, 0);
}

namespace {

// A buffer that a fuzzer would make: random bytes, or a plausible header with a size near what it asks for.
Bytes random_buffer(std::mt19937 *random, bool plausible) {
  auto pick = [&](uint32_t n) { return uint32_t((*random)() % n); };
  Bytes bytes;
  if (!plausible) {
    bytes.resize(pick(400));
    for (uint8_t &byte : bytes) byte = uint8_t(pick(256));
    return bytes;
  }
  int32_t kv_heads = int32_t(1 + pick(3)), heads = kv_heads * int32_t(1 + pick(3)), head_size = int32_t(2 * (1 + pick(3)));
  Shape shape = {heads * head_size, int32_t(1 + pick(20)), int32_t(1 + pick(3)), heads,
                 kv_heads,          int32_t(1 + pick(40)), int32_t(1 + pick(20))};
  if (pick(2)) shape.vocab_size = -shape.vocab_size;
  const Format format = kFormats[pick(3)];
  const int32_t group_size = shape.hidden_dim % 2 == 0 && pick(2) ? 2 : 1;
  bytes = checkpoint(format, shape, (*random)(), group_size);
  const uint32_t header = uint32_t(format == Format::kLegacy ? 28 : 41), first = uint32_t(header_bytes(format));
  switch (pick(6)) {
    case 0: bytes.resize(pick(uint32_t(bytes.size()))); break;
    case 1: bytes.resize(bytes.size() + 1 + pick(8)); break;
    case 2: bytes[pick(header)] = uint8_t(pick(256)); break;
    case 3: bytes[pick(header)] ^= uint8_t(1u << pick(8)); break;
    case 4:
      for (int i = 0; i < 8; i++) bytes[first + pick(uint32_t(bytes.size()) - first)] = uint8_t(pick(256));
      break;
    default: break;
  }
  return bytes;
}

bool is_documented(int32_t status) {
  return status == PROOFINFER_OK || status == PROOFINFER_E_UNRECOGNIZED || status == PROOFINFER_E_TRUNCATED ||
         status == PROOFINFER_E_FORMAT || status == PROOFINFER_E_UNSUPPORTED;
}

}  // namespace

TEST(CheckpointFaults, two_thousand_random_buffers_load_or_give_an_error) {
  std::mt19937 random(20260101);
  int loaded = 0;
  for (int i = 0; i < 2000; i++) {
    Bytes bytes = random_buffer(&random, i % 2 == 1);
    Options options = make_options();
    CountingAllocator allocator;
    allocator.install(options);
    {
      Answer answer;
      Bytes exact(bytes.begin(), bytes.end());
      Model model = open_model(exact, options.get(), &answer);
      EXPECT_TRUE(is_documented(answer.status)) << i << ": " << answer;
      EXPECT_LE(allocator.peak_bytes(), 4 * bytes.size() + (16u << 20)) << i;
      if (i % 10 < 2) {
        EXPECT_EQ(open_file_answer(bytes).status, answer.status) << i;
      }
      if (model) {
        loaded++;
        Session session = make_session(model, options.get());
        EXPECT_TRUE(append(session, {0}, PROOFINFER_LOGITS_LAST).ok()) << i;
      }
    }
    ASSERT_EQ(allocator.held_blocks(), 0u) << i;
  }
  std::printf("of 2000 buffers %d loaded\n", loaded);
  EXPECT_GE(loaded, 200);  // else the test no longer reaches past the header
}

}  // namespace proofinfer_test
