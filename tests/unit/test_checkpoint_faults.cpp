// Malformed legacy checkpoints through the C API: each has one defect and gets the documented code and a message that names the culprit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

using Bytes = std::vector<uint8_t>;

const Shape kTied = {4, 6, 2, 2, 1, 5, 8};
const Shape kUntied = {4, 6, 2, 2, 1, -5, 8};

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

// A good file whose header integer `field` (0 to 6) is replaced.
Bytes with_field(const Shape &shape, int field, int32_t value) {
  Bytes bytes = legacy_checkpoint(shape, 1), number;
  put_i32(&number, value);
  std::copy(number.begin(), number.end(), bytes.begin() + 4 * field);
  return bytes;
}

Bytes text_bytes(const std::string &text) { return Bytes(text.begin(), text.end()); }

std::string number(uint64_t value) { return std::to_string(value); }

}  // namespace

TEST(CheckpointFaults, checkpoint_cut_anywhere_names_the_first_missing_tensor_and_both_sizes) {
  for (const Shape &shape : {kTied, kUntied}) {
    const Bytes whole = legacy_checkpoint(shape, 1);
    const std::vector<TensorPlace> places = legacy_places(shape);
    ASSERT_TRUE(open_answer(whole).ok());
    for (size_t size = 0; size < whole.size(); size++) {
      Answer answer = open_answer(Bytes(whole.begin(), whole.begin() + std::ptrdiff_t(size)));
      if (size == 0) {
        EXPECT_EQ(answer.status, PROOFINFER_E_UNRECOGNIZED) << answer;
        EXPECT_TRUE(answer.says("empty")) << answer;
      } else if (size < 28) {
        EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED) << answer;
        EXPECT_TRUE(answer.says("header") && answer.says("28") && answer.says(number(size))) << answer;
      } else {
        auto cut = std::find_if(places.begin(), places.end(), [&](const TensorPlace &p) { return p.offset + p.bytes > size; });
        EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED) << answer;
        EXPECT_TRUE(answer.says(" " + cut->name + " ")) << size << ": " << answer;
        EXPECT_TRUE(answer.says(number(whole.size())) && answer.says(number(size))) << answer;
      }
    }
  }
}

TEST(CheckpointFaults, checkpoint_cut_in_a_file_gives_the_same_answer_as_in_memory) {
  const Bytes whole = legacy_checkpoint(kTied, 1);
  for (size_t size = 0; size <= whole.size(); size += 13) {
    Bytes part(whole.begin(), whole.begin() + std::ptrdiff_t(size));
    Answer memory = open_answer(part), file = open_file_answer(part);
    EXPECT_EQ(memory.status, file.status);
    EXPECT_TRUE(file.says(memory.message)) << memory << " / " << file;
  }
}

TEST(CheckpointFaults, bytes_after_the_last_tensor_are_an_error_with_both_sizes) {
  for (size_t extra : {1, 3, 4, 28, 1000}) {
    Bytes bytes = legacy_checkpoint(kTied, 1);
    size_t expected = bytes.size();
    bytes.resize(expected + extra);
    Answer answer = open_answer(bytes);
    EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
    EXPECT_TRUE(answer.says(number(expected)) && answer.says(number(expected + extra))) << answer;
  }
}

TEST(CheckpointFaults, header_value_below_one_names_field_offset_and_value) {
  const char *names[7] = {"dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"};
  for (int field = 0; field < 7; field++)
    for (int32_t value : {0, -1, -2, INT32_MIN}) {
      if (field == 5 && value != 0 && value != INT32_MIN) continue;  // a negative vocabulary has a meaning
      Answer answer = open_answer(with_field(kTied, field, value));
      EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
      EXPECT_TRUE(answer.says(names[field])) << answer;
      EXPECT_TRUE(answer.says("offset " + number(uint64_t(4 * field)))) << answer;
      EXPECT_TRUE(answer.says(std::to_string(value))) << answer;
    }
}

TEST(CheckpointFaults, heads_that_do_not_divide_are_named_with_both_numbers) {
  Answer answer = open_answer(with_field(kTied, 3, 3));  // 4 / 3 heads
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
  EXPECT_TRUE(answer.says("n_heads") && answer.says("3") && answer.says("4")) << answer;
  answer = open_answer(with_field({12, 6, 1, 6, 2, 5, 8}, 4, 4));  // 6 heads share 4 kv heads
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
  EXPECT_TRUE(answer.says("n_kv_heads") && answer.says("4") && answer.says("6")) << answer;
  answer = open_answer(with_field(kTied, 4, 4));  // more kv heads than heads
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
  EXPECT_TRUE(answer.says("n_kv_heads")) << answer;
  answer = open_answer(with_field(kTied, 3, 4));  // head size 1
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
  EXPECT_TRUE(answer.says("head size")) << answer;
}

TEST(CheckpointFaults, sizes_that_wrap_are_errors) {
  // 2^30 layers of 2^16 x 2^16 floats are 2^64 bytes: exactly 0 where the product is not checked.
  const Shape wraps_to_zero = {1 << 16, 1, 1 << 30, 2, 2, 1, 1};
  const Shape all_largest = {INT32_MAX - 1, INT32_MAX, INT32_MAX, 1, 1, INT32_MAX, INT32_MAX};
  const Shape largest_vocabulary = {INT32_MAX - 1, 1, 1, 1, 1, -INT32_MAX, 1};
  for (const Shape &shape : {wraps_to_zero, all_largest, largest_vocabulary}) {
    Bytes bytes = legacy_header(shape);
    bytes.resize(4096);
    Answer answer = open_answer(bytes);
    EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
    EXPECT_TRUE(answer.says("2^63")) << answer;
  }
}

TEST(CheckpointFaults, nothing_is_allocated_for_what_a_header_only_claims) {
  const Shape asks_for_terabytes = {65536, 65536, 64, 64, 64, 1000000, 4096};
  const Shape asks_for_61_gigabytes = {4096, 11008, 75, 32, 32, 32000, 2048};
  for (const Shape &shape : {asks_for_terabytes, asks_for_61_gigabytes})
    for (size_t size : {size_t(28), size_t(1 << 16)}) {
      Bytes bytes = legacy_header(shape);
      bytes.resize(size);
      Options options = make_options();
      CountingAllocator allocator;
      allocator.install(options);
      Answer answer = open_answer(bytes, options.get());
      EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED) << answer;
      EXPECT_TRUE(answer.says(number(size))) << answer;
      EXPECT_LE(allocator.peak_bytes(), 16u << 10);
      EXPECT_EQ(allocator.held_blocks(), 0u);
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

TEST(CheckpointFaults, path_and_memory_give_the_same_model) {
  for (const Shape &shape : {kTied, kUntied, Shape{36, 50, 3, 3, 3, 101, 40}}) {
    Bytes bytes = legacy_checkpoint(shape, 9);
    ScratchFile file(bytes);
    Model from_path = open_model(file.path()), from_memory = open_model(bytes);
    Session a = make_session(from_path), b = make_session(from_memory);
    ASSERT_TRUE(append(a, {1, 2, 3, 4}, PROOFINFER_LOGITS_LAST).ok());
    ASSERT_TRUE(append(b, {1, 2, 3, 4}, PROOFINFER_LOGITS_LAST).ok());
    EXPECT_EQ(logits(a, 3), logits(b, 3));
  }
}

TEST(CheckpointFaults, bytes_at_any_alignment_are_read_right) {
  const Bytes bytes = legacy_checkpoint(kTied, 9);
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
  bytes = legacy_checkpoint(shape, (*random)());
  switch (pick(6)) {
    case 0: bytes.resize(pick(uint32_t(bytes.size()))); break;
    case 1: bytes.resize(bytes.size() + 1 + pick(8)); break;
    case 2: bytes[pick(28)] = uint8_t(pick(256)); break;
    case 3: bytes[pick(28)] ^= uint8_t(1u << pick(8)); break;
    case 4:
      for (int i = 0; i < 8; i++) bytes[28 + pick(uint32_t(bytes.size() - 28))] = uint8_t(pick(256));
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

TEST(CheckpointFaults, every_failed_allocation_is_a_clean_error) {
  const Bytes bytes = legacy_checkpoint(kUntied, 1);
  for (bool from_then_on : {false, true}) {
    for (uint64_t k = 0;; k++) {
      ASSERT_LT(k, 1000u);
      Options options = make_options();
      CountingAllocator allocator;
      allocator.install(options);
      from_then_on ? allocator.fail_from(k) : allocator.fail_call(k);
      Answer answer;
      bool complete = false;
      {
        Model model = open_model(bytes, options.get(), &answer);
        if (model) {
          Session session = make_session(model, options.get(), &answer);
          if (session) {
            answer = append(session, {1, 2, 3}, PROOFINFER_LOGITS_ALL);
            complete = answer.ok();
            EXPECT_EQ(proofinfer_session_position(session.get()), complete ? 3u : 0u);
          }
        }
      }
      EXPECT_EQ(allocator.held_blocks(), 0u);
      if (complete) {
        EXPECT_GT(k, 2u);
        break;
      }
      EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << answer;
    }
  }
}

}  // namespace proofinfer_test
