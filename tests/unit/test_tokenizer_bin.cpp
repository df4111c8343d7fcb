// tokenizer.bin: good files load whatever their pieces are, every bad one is refused with a code and a message that names the culprit.
#include "format/tokenizer_bin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

using Bytes = std::vector<uint8_t>;

Answer open_answer(const Bytes &bytes, int32_t vocab_size, const proofinfer_options *options = nullptr) {
  Bytes exact(bytes);  // an allocation of exactly this size: a sanitizer sees one byte too far
  exact.shrink_to_fit();
  Answer answer;
  open_tokenizer(exact, vocab_size, options, &answer);
  return answer;
}

#define EXPECT_REFUSED(expected_status, expected_message, ...)  \
  do {                                                          \
    Answer refused_ = open_answer(__VA_ARGS__);                 \
    EXPECT_EQ(refused_.status, (expected_status)) << refused_;  \
    EXPECT_EQ(refused_.message, std::string(expected_message)); \
  } while (false)

std::string piece_of(const Tokenizer &tokenizer, int32_t id, float *score = nullptr) {
  std::string bytes(100000, '?');
  size_t count = 0;
  Answer answer = answer_of(proofinfer_tokenizer_piece, tokenizer.get(), id, bytes.data(), bytes.size(), &count, score);
  EXPECT_TRUE(answer.ok()) << answer;
  bytes.resize(count);
  return bytes;
}

// Pieces of the kinds that files have: plain, empty, with NUL, twice, long.
std::vector<Piece> odd_pieces() {
  return {{"<unk>", 0.0f}, {"", -1.5f}, {std::string("a\0b", 3), 2.0f}, {"x", -0.0f}, {"x", 7.0f}, {std::string(300, 'q'), -1e30f}};
}

// Byte offsets at which each piece begins, and the end of the last.
std::vector<size_t> piece_offsets(const std::vector<Piece> &pieces) {
  std::vector<size_t> offsets = {4};
  for (const Piece &piece : pieces) offsets.push_back(offsets.back() + 8 + piece.bytes.size());
  return offsets;
}

Bytes text_bytes(const std::string &text) { return Bytes(text.begin(), text.end()); }

Bytes with_bytes(Bytes bytes, size_t offset, const Bytes &value) {
  std::copy(value.begin(), value.end(), bytes.begin() + std::ptrdiff_t(offset));
  return bytes;
}

Bytes with_i32(const Bytes &bytes, size_t offset, int32_t value) {
  Bytes written;
  put_i32(&written, value);
  return with_bytes(bytes, offset, written);
}

Bytes with_f32(const Bytes &bytes, size_t offset, float value) {
  Bytes written;
  put_f32(&written, value);
  return with_bytes(bytes, offset, written);
}

// What a file cut to `length` bytes must say.
std::string truncation_message(const std::vector<Piece> &pieces, size_t length) {
  std::string start = "tokenizer.bin: " + std::to_string(pieces.size()) + " pieces wanted, the file ends ";
  if (length < 4) return start + "before piece 0: the longest piece's length at offset 0 needs 4 bytes, found " + std::to_string(length);
  std::vector<size_t> offsets = piece_offsets(pieces);
  size_t i = 0;
  while (length >= offsets[i + 1]) i++;
  size_t left = length - offsets[i];
  start += "in piece " + std::to_string(i) + ": its ";
  if (left < 8) return start + "score and length at offset " + std::to_string(offsets[i]) + " need 8 bytes, found " + std::to_string(left);
  return start + "bytes at offset " + std::to_string(offsets[i] + 8) + " should be " + std::to_string(pieces[i].bytes.size()) + ", found " +
         std::to_string(left - 8);
}

}  // namespace

TEST(TokenizerBin, pieces_are_kept_exactly_whatever_they_are) {
  std::vector<Piece> pieces = odd_pieces();
  Tokenizer tokenizer = open_tokenizer(tokenizer_file(pieces), int32_t(pieces.size()));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(proofinfer_tokenizer_vocab_size(tokenizer.get()), int32_t(pieces.size()));
  for (size_t i = 0; i < pieces.size(); i++) {
    float score = 99;
    EXPECT_EQ(piece_of(tokenizer, int32_t(i), &score), pieces[i].bytes) << i;
    EXPECT_EQ(std::memcmp(&score, &pieces[i].score, 4), 0) << i;
  }
}

TEST(TokenizerBin, the_longest_piece_is_advisory_and_may_lie) {
  std::vector<Piece> pieces = odd_pieces();
  for (int64_t longest : {int64_t(0), int64_t(1), int64_t(-5), int64_t(2147483647), int64_t(-1)}) {
    Bytes bytes = with_i32(tokenizer_file(pieces), 0, int32_t(longest));
    Tokenizer tokenizer = open_tokenizer(bytes, int32_t(pieces.size()));
    ASSERT_TRUE(tokenizer) << longest;
    EXPECT_EQ(piece_of(tokenizer, 5).size(), 300u) << longest;
  }
}

TEST(TokenizerBin, bytes_after_the_wanted_pieces_are_ignored) {
  std::vector<Piece> pieces = odd_pieces();
  Bytes bytes = tokenizer_file(pieces);
  for (size_t wanted = 1; wanted <= pieces.size(); wanted++) EXPECT_TRUE(open_tokenizer(bytes, int32_t(wanted))) << wanted;
  bytes.insert(bytes.end(), {0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0xC0, 0x7F, 0x01});
  EXPECT_TRUE(open_tokenizer(bytes, int32_t(pieces.size())));
  EXPECT_FALSE(open_answer(bytes, int32_t(pieces.size()) + 1).ok());
}

TEST(TokenizerBin, a_vocabulary_of_one_empty_piece_loads) {
  Tokenizer tokenizer = open_tokenizer(tokenizer_file({{"", 0.0f}}), 1);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(piece_of(tokenizer, 0), "");
}

TEST(TokenizerBin, pieces_of_every_length_load_across_the_reader_window_from_file_and_memory) {
  std::vector<Piece> pieces;
  for (size_t length : {0, 1, 8175, 3, 8184, 5, 8191, 8192, 8193, 2, 20000, 16384, 0, 7})
    pieces.push_back({std::string(length, char('a' + pieces.size())), float(length)});
  for (size_t i = 0; i < 3000; i++) pieces.push_back({std::string(i % 23, char('a' + i % 26)), float(i)});
  Bytes bytes = tokenizer_file(pieces);
  ScratchFile file(bytes);
  Tokenizer from_memory = open_tokenizer(bytes, int32_t(pieces.size()));
  Tokenizer from_file = open_tokenizer(file.path(), int32_t(pieces.size()));
  ASSERT_TRUE(from_memory && from_file);
  for (size_t i = 0; i < pieces.size(); i++) {
    float score = -1;
    ASSERT_EQ(piece_of(from_memory, int32_t(i)), pieces[i].bytes) << i;
    ASSERT_EQ(piece_of(from_file, int32_t(i), &score), pieces[i].bytes) << i;
    ASSERT_EQ(score, pieces[i].score) << i;
  }
}

TEST(TokenizerBin, every_truncation_names_piece_offset_wanted_and_found) {
  std::vector<Piece> pieces = odd_pieces();
  Bytes bytes = tokenizer_file(pieces);
  for (size_t length = 1; length < bytes.size(); length++) {
    Bytes cut(bytes.begin(), bytes.begin() + std::ptrdiff_t(length));
    EXPECT_REFUSED(PROOFINFER_E_TRUNCATED, truncation_message(pieces, length), cut, int32_t(pieces.size()));
  }
}

TEST(TokenizerBin, every_truncation_of_a_real_file_is_refused_by_piece) {
  PROOFINFER_MODEL_OR_SKIP(path, "tok512.bin");
  std::optional<Bytes> bytes = read_file(path);
  ASSERT_TRUE(bytes);
  Tokenizer whole = open_tokenizer(*bytes, 512);
  std::vector<Piece> pieces;
  for (int32_t i = 0; i < 512; i++) pieces.push_back({piece_of(whole, i), 0.0f});
  ASSERT_EQ(piece_offsets(pieces).back(), bytes->size());
  for (size_t length = 1; length < bytes->size(); length++) {
    Bytes cut(bytes->begin(), bytes->begin() + std::ptrdiff_t(length));
    EXPECT_REFUSED(PROOFINFER_E_TRUNCATED, truncation_message(pieces, length), cut, 512);
  }
}

TEST(TokenizerBin, a_truncated_file_says_the_same_as_truncated_memory) {
  std::vector<Piece> pieces = odd_pieces();
  Bytes bytes = tokenizer_file(pieces);
  for (size_t length : {size_t(1), size_t(20), bytes.size() - 1}) {
    ScratchFile file(Bytes(bytes.begin(), bytes.begin() + std::ptrdiff_t(length)));
    Answer answer;
    open_tokenizer(file.path(), int32_t(pieces.size()), &answer);
    EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED) << answer;
    EXPECT_EQ(answer.message, truncation_message(pieces, length));
  }
}

TEST(TokenizerBin, fewer_pieces_than_the_vocabulary_names_both_numbers_and_asks_for_no_memory) {
  std::vector<Piece> pieces = odd_pieces();
  Bytes bytes = tokenizer_file(pieces);
  std::string place =
      " pieces wanted, the file ends in piece 6: its score and length at offset " + std::to_string(bytes.size()) + " need 8 bytes, found 0";
  for (int32_t wanted : {7, 32000, 2147483647}) {
    CountingAllocator allocator;
    Options options = make_options();
    allocator.install(options);
    EXPECT_REFUSED(PROOFINFER_E_TRUNCATED, "tokenizer.bin: " + std::to_string(wanted) + place, bytes, wanted, options.get());
    EXPECT_LE(allocator.calls(), 1u) << "the object itself, of a fixed size";
    EXPECT_LT(allocator.peak_bytes(), 16384u);
    EXPECT_EQ(allocator.held_blocks(), 0u);
  }
}

TEST(TokenizerBin, a_negative_length_is_named) {
  std::vector<Piece> pieces = odd_pieces();
  size_t offset = piece_offsets(pieces)[3] + 4;
  for (int32_t length : {-1, -5, std::numeric_limits<int32_t>::min()})
    EXPECT_REFUSED(
        PROOFINFER_E_FORMAT,
        "tokenizer.bin: piece 3, offset " + std::to_string(offset) + ": expected a length of 0 or more, found " + std::to_string(length),
        with_i32(tokenizer_file(pieces), offset, length), int32_t(pieces.size()));
}

TEST(TokenizerBin, a_length_past_the_end_is_named) {
  std::vector<Piece> pieces = odd_pieces();
  Bytes bytes = tokenizer_file(pieces);
  size_t offset = piece_offsets(pieces)[3] + 4;
  size_t left = bytes.size() - offset - 4;
  for (int32_t length : {int32_t(left) + 1, 1 << 20, std::numeric_limits<int32_t>::max()})
    EXPECT_REFUSED(PROOFINFER_E_TRUNCATED,
                   "tokenizer.bin: 6 pieces wanted, the file ends in piece 3: its bytes at offset " + std::to_string(offset + 4) +
                       " should be " + std::to_string(length) + ", found " + std::to_string(left),
                   with_i32(bytes, offset, length), int32_t(pieces.size()));
}

TEST(TokenizerBin, scores_that_are_not_finite_are_named) {
  std::vector<Piece> pieces = odd_pieces();
  size_t offset = piece_offsets(pieces)[2];
  std::string start = "tokenizer.bin: piece 2, offset " + std::to_string(offset) + ": expected a finite score, found ";
  Bytes bytes = tokenizer_file(pieces);
  EXPECT_REFUSED(PROOFINFER_E_FORMAT, start + "NaN (bits 0x7fc00000)", with_f32(bytes, offset, std::nanf("")), 6);
  EXPECT_REFUSED(PROOFINFER_E_FORMAT, start + "infinity (bits 0x7f800000)", with_f32(bytes, offset, INFINITY), 6);
  EXPECT_REFUSED(PROOFINFER_E_FORMAT, start + "infinity (bits 0xff800000)", with_f32(bytes, offset, -INFINITY), 6);
}

TEST(TokenizerBin, the_wrong_file_is_called_what_it_looks_like) {
  std::vector<std::pair<Bytes, std::string>> files = {
      {{}, "not a tokenizer.bin: this is an empty file (0 bytes)"},
      {text_bytes("<!DOCTYPE html><html><head><title>404</title></head></html>"), "this is a web page (HTML or XML)"},
      {text_bytes("\n  <HTML lang=\"en\">"), "this is a web page (HTML or XML)"},
      {text_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 433869\n"), "this is a Git LFS pointer"},
      {version2_checkpoint({8, 8, 1, 2, 2, 16, 8}, 1, 4), "this is a llama2.c checkpoint"},
      {legacy_checkpoint({8, 8, 1, 2, 2, 16, 8}, 1), "this looks like a llama2.c checkpoint"},
      {legacy_checkpoint({64, 172, 5, 8, 4, -512, 512}, 1), "this looks like a llama2.c checkpoint"},
      {text_bytes("PK\3\4" + std::string(60, '\0')), "this is a ZIP archive or a PyTorch file"},
      {text_bytes("{\"model\": {\"type\": \"BPE\"}}"), "this looks like JSON text"},
      {text_bytes("the quick brown fox jumps over the lazy dog\n"), "this looks like text"},
      {text_bytes("\x0A\x0E\x0A\x05<unk>\x15" + std::string(4, '\0') + "\x18\x02"), "this looks like a SentencePiece model"},
  };
  for (const auto &[bytes, expected] : files) {
    Answer answer = open_answer(bytes, 512);
    EXPECT_EQ(answer.status, PROOFINFER_E_UNRECOGNIZED) << answer;
    EXPECT_TRUE(answer.says(expected)) << answer;
  }
}

TEST(TokenizerBin, what_is_no_checkpoint_is_not_called_one) {
  for (int32_t n_heads : {3, 4})  // dim 8 is no multiple of 3, and 4 heads none of 3 key heads
    EXPECT_FALSE(open_answer(checkpoint_header(Format::kLegacy, {8, 8, 1, n_heads, 3, 16, 8}, 1), 16).says("llama2.c checkpoint"));
}

TEST(TokenizerBin, white_space_is_text_however_much_there_is) {
  for (size_t count : {28u, 63u, 64u, 65u, 300u}) {
    Answer answer = open_answer(Bytes(count, ' '), 3);
    EXPECT_EQ(answer.status, PROOFINFER_E_UNRECOGNIZED) << answer;
    EXPECT_TRUE(answer.says("this looks like text")) << answer;
  }
}

TEST(TokenizerBin, garbage_that_looks_like_nothing_keeps_its_own_error) {
  Bytes bytes = {7, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3};
  EXPECT_REFUSED(PROOFINFER_E_FORMAT, "tokenizer.bin: piece 0, offset 8: expected a length of 0 or more, found -1", bytes, 512);
}

TEST(TokenizerBin, a_vocabulary_of_no_size_is_an_argument_error) {
  Bytes bytes = tokenizer_file(odd_pieces());
  EXPECT_REFUSED(PROOFINFER_E_ARGUMENT, "vocab_size is 0; a tokenizer.bin does not say how many pieces it has: expected 1 or more", bytes,
                 0);
  EXPECT_REFUSED(PROOFINFER_E_ARGUMENT, "vocab_size is -2147483648; expected 0 or more", bytes, std::numeric_limits<int32_t>::min());
}

TEST(TokenizerBin, a_path_that_is_no_readable_file_is_an_io_error) {
  Answer answer;
  open_tokenizer("/nonexistent/tokenizer.bin", 512, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_IO) << answer;
  EXPECT_TRUE(answer.says("/nonexistent/tokenizer.bin")) << answer;
  open_tokenizer("/", 512, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_IO) << answer;
}

TEST(TokenizerBin, any_allocation_may_fail_and_nothing_leaks) {
  Bytes bytes = tokenizer_file(small_vocabulary({"a", "b", "ab"}));
  int32_t vocab_size = 263;
  CountingAllocator counter;
  Options options = make_options();
  counter.install(options);
  ASSERT_TRUE(open_tokenizer(bytes, vocab_size, options.get()));
  uint64_t calls = counter.calls();
  EXPECT_GT(calls, 5u);
  for (uint64_t i = 0; i < calls; i++) {
    counter.fail_call(i);
    Answer answer = open_answer(bytes, vocab_size, options.get());
    EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << i << ": " << answer;
    EXPECT_EQ(counter.held_blocks(), 0u) << i;
  }
}

TEST(TokenizerBin, the_memory_limit_is_kept) {
  Bytes bytes = tokenizer_file(small_vocabulary({"a", "b", "ab"}));
  Options options = make_options();
  set_u64(options, "memory_limit_bytes", 2000);
  Answer answer = open_answer(bytes, 263, options.get());
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << answer;
  EXPECT_TRUE(answer.says("2000")) << answer;
}

TEST(TokenizerBin, random_bytes_never_do_more_than_fail) {
  uint64_t state = 1;
  auto next = [&state] { return state = state * 6364136223846793005u + 1442695040888963407u, uint32_t(state >> 33); };
  for (int round = 0; round < 2000; round++) {
    Bytes bytes = round % 2 ? tokenizer_file(odd_pieces()) : Bytes();
    bytes.resize(bytes.size() + next() % 64);
    for (uint32_t i = 0, changes = 1 + next() % 16; i < changes && !bytes.empty(); i++) bytes[next() % bytes.size()] = uint8_t(next());
    Answer answer = open_answer(bytes, 1 + int32_t(next() % 8));
    EXPECT_TRUE(answer.ok() || answer.status == PROOFINFER_E_UNRECOGNIZED || answer.status == PROOFINFER_E_TRUNCATED ||
                answer.status == PROOFINFER_E_FORMAT)
        << answer;
  }
}

TEST(TokenizerBin, the_whole_vocabulary_is_described_by_offsets) {
  std::vector<Piece> pieces = odd_pieces();
  Bytes bytes = tokenizer_file(pieces);
  proofinfer::Source source;
  source.open_memory(bytes.data(), bytes.size());
  proofinfer::Account account(proofinfer::MemoryHooks(), 0);
  proofinfer::Failure failure;
  proofinfer::Vocabulary vocabulary;
  ASSERT_EQ(proofinfer::read_tokenizer_bin(&source, pieces.size(), &account, &vocabulary, &failure), proofinfer::kOk) << failure.message;
  EXPECT_EQ(vocabulary.count, pieces.size());
  EXPECT_EQ(vocabulary.longest_bytes, 300u);
  EXPECT_EQ(vocabulary.pieces.offsets[0], 0u);
  EXPECT_EQ(vocabulary.pieces.offsets[pieces.size()], vocabulary.pieces.bytes.count());
}

}  // namespace proofinfer_test
