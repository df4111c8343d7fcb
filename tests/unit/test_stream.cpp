// The streaming decoder: only whole valid UTF-8 comes out, whatever the pieces are and however they are cut; nothing is lost on a retry.
#include "model/stream.h"

#include <gtest/gtest.h>

#include "support/checkpoint.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

// The rows of the Unicode standard's table of well-formed byte sequences: how many bytes, and the range of each of the first two.
struct Row {
  uint8_t first_low, first_high, second_low, second_high;
  size_t count;
};
constexpr Row kRows[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                         {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                         {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};

// How many of the bytes from `at` on are a whole character (*whole) or a beginning of one; 0: not even the first.
size_t match(const std::string &bytes, size_t at, bool *whole) {
  uint8_t first = uint8_t(bytes[at]);
  for (const Row &row : kRows) {
    if (first < row.first_low || first > row.first_high) continue;
    size_t n = 1;
    while (n < row.count && at + n < bytes.size()) {
      uint8_t byte = uint8_t(bytes[at + n]);
      if (byte < (n == 1 ? row.second_low : 0x80) || byte > (n == 1 ? row.second_high : 0xBF)) break;
      n++;
    }
    *whole = n == row.count;
    return n;
  }
  *whole = false;
  return 0;
}

// All bytes at once: characters, and one U+FFFD for every maximal part of anything else. The part that further bytes could complete is left out
// without `at_end`.
std::string expected_text(const std::string &bytes, bool at_end) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    bool whole = false;
    size_t n = match(bytes, at, &whole);
    if (!whole && n > 0 && at + n == bytes.size() && !at_end) break;
    text += whole ? bytes.substr(at, n) : kReplacement;
    at += n > 0 ? n : 1;
  }
  return text;
}

bool is_valid(const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    bool whole = false;
    at += match(text, at, &whole);
    if (!whole) return false;
  }
  return true;
}

struct Random {
  uint64_t state;
  uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t((state >> 33) % n);
  }
};

Tokenizer open_pieces(const std::vector<Piece> &pieces) { return open_tokenizer(tokenizer_file(pieces), int32_t(pieces.size())); }

Stream make_stream(const Tokenizer &tokenizer, int32_t previous = -1) {
  proofinfer_stream *stream = nullptr;
  Answer answer = answer_of(proofinfer_stream_create, tokenizer.get(), previous, &stream);
  EXPECT_TRUE(answer.ok()) << answer;
  return Stream(stream);
}

// Pushes with too small a buffer first, which must change nothing.
std::string push(const Stream &stream, int32_t token) {
  char buffer[512];
  size_t needed = 0, again = 0;
  Answer answer = answer_of(proofinfer_stream_push, stream.get(), token, nullptr, size_t(0), &needed);
  if (needed == 0) {
    EXPECT_TRUE(answer.ok()) << answer;
    return "";
  }
  EXPECT_EQ(answer.status, PROOFINFER_E_BUFFER) << answer;
  answer = answer_of(proofinfer_stream_push, stream.get(), token, buffer, needed - 1, &again);
  EXPECT_EQ(answer.status, PROOFINFER_E_BUFFER) << answer;
  EXPECT_EQ(again, needed);
  answer = answer_of(proofinfer_stream_push, stream.get(), token, buffer, needed, &again);
  EXPECT_TRUE(answer.ok()) << answer;
  EXPECT_EQ(again, needed);
  return std::string(buffer, needed);
}

std::string flush(const Stream &stream) {
  char buffer[8];
  size_t needed = 0;
  Answer answer = answer_of(proofinfer_stream_flush, stream.get(), nullptr, size_t(0), &needed);
  if (needed == 0) {
    EXPECT_TRUE(answer.ok()) << answer;
    return "";
  }
  EXPECT_EQ(answer.status, PROOFINFER_E_BUFFER) << answer;
  answer = answer_of(proofinfer_stream_flush, stream.get(), buffer, sizeof(buffer), &needed);
  EXPECT_TRUE(answer.ok()) << answer;
  return std::string(buffer, needed);
}

std::string filter_all(const std::string &bytes, size_t cut) {
  proofinfer::Utf8Filter filter;
  std::string out(3 * bytes.size() + 16, '?');
  const unsigned char *data = reinterpret_cast<const unsigned char *>(bytes.data());
  size_t n = filter.push({data, cut}, out.data());
  n += filter.push({data + cut, bytes.size() - cut}, out.data() + n);
  n += filter.flush(out.data() + n);
  out.resize(n);
  return out;
}

}  // namespace

TEST(Stream, four_byte_pieces_give_one_whole_emoji) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({}));
  Stream stream = make_stream(tokenizer);
  EXPECT_EQ(push(stream, 243), "");
  EXPECT_EQ(push(stream, 162), "");
  EXPECT_EQ(push(stream, 169), "");
  EXPECT_EQ(push(stream, 156), "\xF0\x9F\xA6\x99");
  EXPECT_EQ(flush(stream), "");
}

TEST(Stream, an_incomplete_character_at_the_end_becomes_one_replacement) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({"x"}));
  for (size_t bytes = 1; bytes <= 3; bytes++) {
    Stream stream = make_stream(tokenizer);
    for (size_t i = 0; i < bytes; i++) EXPECT_EQ(push(stream, 3 + uint8_t("\xF0\x9F\xA6\x99"[i])), "");
    EXPECT_EQ(flush(stream), kReplacement);
    EXPECT_EQ(flush(stream), "") << "then nothing is held";
    EXPECT_EQ(push(stream, 260), "x");
  }
}

TEST(Stream, maximal_parts_follow_the_examples_of_the_standard) {
  const std::string r = kReplacement;
  EXPECT_EQ(filter_all("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", 0), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(filter_all("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", 0), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(filter_all("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", 0), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(filter_all("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", 0), r + r + r + r + "A");
}

TEST(Stream, every_sequence_of_three_bytes_from_the_borders_is_treated_as_the_table_says) {
  const uint8_t borders[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
                             0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  for (uint8_t a : borders)
    for (uint8_t b : borders)
      for (uint8_t c : borders)
        for (uint8_t d : {uint8_t(0x41), uint8_t(0x80), uint8_t(0xF0)}) {
          std::string bytes = {char(a), char(b), char(c), char(d)};
          for (size_t cut = 0; cut <= 4; cut++)
            ASSERT_EQ(filter_all(bytes, cut), expected_text(bytes, true)) << testing::PrintToString(bytes) << " cut " << cut;
        }
}

TEST(Stream, every_pair_of_bytes_is_treated_as_the_table_says) {
  for (int a = 0; a < 256; a++)
    for (int b = 0; b < 256; b++) {
      std::string bytes = {char(a), char(b)};
      for (size_t cut = 0; cut <= 2; cut++) ASSERT_EQ(filter_all(bytes, cut), expected_text(bytes, true)) << a << " " << b;
    }
}

TEST(Stream, random_pieces_come_out_whole_as_soon_as_they_can) {
  Random random{1};
  const std::string parts[] = {"a",    "\xC3", "\xA9",     "\xE2\x80",  "\x94",     "\xF0", "\x9F\xA6",
                               "\x99", "\xFF", "\xED\xA0", " \xF4\x90", "\xE0\x9F", ""};
  for (int round = 0; round < 300; round++) {
    std::vector<std::string> texts;
    for (int i = 0; i < 20; i++) {
      std::string text;
      for (uint32_t k = random.below(4); k > 0; k--) text += parts[random.below(13)];
      texts.push_back(text);
    }
    Tokenizer tokenizer = open_pieces(small_vocabulary(texts));
    Stream stream = make_stream(tokenizer);
    std::string bytes, text;
    for (int i = 0; i < 30; i++) {
      uint32_t k = random.below(20);
      bytes += texts[k];
      std::string emitted = push(stream, int32_t(260 + k));
      ASSERT_LE(emitted.size(), 3 + 3 * texts[k].size());
      ASSERT_TRUE(is_valid(emitted));
      text += emitted;
      ASSERT_EQ(text, expected_text(bytes, false));
    }
    text += flush(stream);
    ASSERT_EQ(text, expected_text(bytes, true));
  }
}

TEST(Stream, the_previous_id_decides_about_the_leading_space) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({" a"}));
  Stream after_bos = make_stream(tokenizer, 1);
  EXPECT_EQ(push(after_bos, 260), "a");
  EXPECT_EQ(push(after_bos, 260), " a");
  Stream after_nothing = make_stream(tokenizer);
  EXPECT_EQ(push(after_nothing, 260), " a");
  push(after_nothing, 1);
  EXPECT_EQ(flush(after_nothing), "");
  EXPECT_EQ(push(after_nothing, 260), "a") << "a flush keeps the previous id";
}

TEST(Stream, a_refused_id_changes_nothing) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({}));
  Stream stream = make_stream(tokenizer, 1);
  push(stream, 3 + 0xC3);
  char buffer[8];
  size_t needed = 7;
  for (int32_t id : {-1, 260}) {
    Answer answer = answer_of(proofinfer_stream_push, stream.get(), id, buffer, sizeof(buffer), &needed);
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(answer.message, "token is " + std::to_string(id) + "; expected 0 to 259");
    EXPECT_EQ(needed, 0u);
  }
  EXPECT_EQ(push(stream, 3 + 0xA9), "\xC3\xA9");
}

TEST(Stream, a_previous_id_outside_the_vocabulary_is_refused) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({}));
  for (int32_t previous : {-2, 260}) {
    proofinfer_stream *stream = reinterpret_cast<proofinfer_stream *>(8);
    Answer answer = answer_of(proofinfer_stream_create, tokenizer.get(), previous, &stream);
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(answer.message, "previous is " + std::to_string(previous) + "; expected -1 or 0 to 259");
    EXPECT_EQ(stream, nullptr);
  }
}

TEST(Stream, the_tokenizer_lives_as_long_as_its_stream_and_pushing_allocates_nothing) {
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  std::vector<Piece> pieces = small_vocabulary({"abc"});
  Tokenizer tokenizer = open_tokenizer(tokenizer_file(pieces), int32_t(pieces.size()), options.get());
  Stream stream = make_stream(tokenizer);
  tokenizer.reset();
  uint64_t calls = allocator.calls();
  EXPECT_EQ(push(stream, 260), "abc");
  EXPECT_EQ(flush(stream), "");
  EXPECT_EQ(allocator.calls(), calls);
  stream.reset();
  EXPECT_EQ(allocator.held_blocks(), 0u);
}

TEST(Stream, a_second_thread_inside_is_told_busy) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({}));
  Stream stream = make_stream(tokenizer);
  proofinfer::BusyFlag *busy = reinterpret_cast<proofinfer::Stream *>(stream.get())->busy();
  ASSERT_TRUE(busy->try_enter());
  size_t needed = 0;
  EXPECT_EQ(answer_of(proofinfer_stream_push, stream.get(), 100, nullptr, size_t(0), &needed).status, PROOFINFER_E_BUSY);
  EXPECT_EQ(answer_of(proofinfer_stream_flush, stream.get(), nullptr, size_t(0), &needed).status, PROOFINFER_E_BUSY);
  busy->leave();
  EXPECT_EQ(push(stream, 100), "a");
}

}  // namespace proofinfer_test
