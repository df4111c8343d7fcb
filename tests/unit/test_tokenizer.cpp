// Text to ids and back: equal to a slow, direct form of the reference's algorithm, in near-linear time, on small stacks, from many threads.
#include "model/tokenizer.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <functional>
#include <limits>
#include <thread>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

using Ids = std::vector<int32_t>;

struct Random {
  uint64_t state;
  uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t((state >> 33) % n);
  }
};

// The algorithm as golden/README.md describes it, with nothing clever: every round looks at every pair.
struct SlowTokenizer {
  std::vector<Piece> pieces;

  int32_t find(const std::string &bytes) const {
    for (size_t i = 0; i < pieces.size(); i++)
      if (pieces[i].bytes == bytes) return int32_t(i);
    return -1;
  }

  Ids units(const std::string &text) const {
    Ids ids = {find(" ")};
    for (size_t at = 0, length; at < text.size(); at += length) {
      length = 1;
      while (length < 4 && at + length < text.size() && (text[at + length] & 0xC0) == 0x80) length++;
      int32_t id = find(text.substr(at, length));
      if (id >= 0)
        ids.push_back(id);
      else
        for (size_t i = at; i < at + length; i++) ids.push_back(3 + uint8_t(text[i]));
    }
    return ids;
  }

  Ids encode(const std::string &text, uint32_t flags) const {
    Ids ids = text.empty() ? Ids() : units(text);
    if (flags & PROOFINFER_ENCODE_BOS) ids.insert(ids.begin(), 1);
    for (;;) {
      float best_score = -1e10f;
      size_t best = ids.size();
      int32_t best_id = -1;
      for (size_t i = 0; i + 1 < ids.size(); i++) {
        int32_t id = find(pieces[size_t(ids[i])].bytes + pieces[size_t(ids[i + 1])].bytes);
        if (id < 0 || !(pieces[size_t(id)].score > best_score)) continue;
        best_score = pieces[size_t(id)].score;
        best = i;
        best_id = id;
      }
      if (best_id < 0) break;
      ids[best] = best_id;
      ids.erase(ids.begin() + std::ptrdiff_t(best) + 1);
    }
    if (flags & PROOFINFER_ENCODE_EOS) ids.push_back(2);
    return ids;
  }
};

std::string decode(const Tokenizer &tokenizer, int32_t previous, int32_t token, uint32_t flags = 0) {
  char buffer[256];
  size_t count = 0;
  Answer answer = answer_of(proofinfer_tokenizer_decode, tokenizer.get(), previous, token, flags, buffer, sizeof(buffer), &count);
  EXPECT_TRUE(answer.ok()) << answer;
  return std::string(buffer, answer.ok() ? count : 0);
}

Tokenizer open_pieces(const std::vector<Piece> &pieces) { return open_tokenizer(tokenizer_file(pieces), int32_t(pieces.size())); }

// A random text over an alphabet.
std::string random_text(Random *random, const std::string &alphabet, size_t length) {
  std::string text;
  for (size_t i = 0; i < length; i++) text += alphabet[random->below(uint32_t(alphabet.size()))];
  return text;
}

// The fixed ids, the byte pieces, " ", and random strings with scores that tie often; some occur twice, some are empty or hold a NUL.
std::vector<Piece> random_pieces(Random *random, const std::string &alphabet) {
  std::vector<Piece> pieces = small_vocabulary({});
  uint32_t count = random->below(80), longest = 1 + random->below(8), levels = 1 + random->below(12);
  for (uint32_t i = 0; i < count; i++) {
    std::string bytes = random_text(random, alphabet, random->below(longest + 1));
    float score = -float(random->below(levels));
    if (random->below(40) == 0) score = -1e10f;
    if (random->below(40) == 0) score = -0.0f;
    if (random->below(40) == 0) score = 1e30f;
    pieces.push_back({bytes, score});
    if (random->below(10) == 0) pieces.push_back({bytes, -float(random->below(levels))});
  }
  // Byte pieces may be anything: a piece that merges, an empty one, the same one twice.
  for (uint32_t i = random->below(12); i > 0; i--)
    pieces[3 + uint8_t(alphabet[random->below(uint32_t(alphabet.size()))])].bytes = random_text(random, alphabet, random->below(3));
  if (random->below(4) == 0) pieces[1].bytes = random_text(random, alphabet, random->below(3));
  return pieces;
}

// Runs on a thread with a stack of 64 KiB.
void on_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 65536), 0);
  pthread_t thread;
  auto run = [](void *argument) -> void * { return (*static_cast<std::function<void()> *>(argument))(), nullptr; };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// Five times the promised second, for builds with sanitizers on busy machines.
constexpr double kMostSeconds = 5.0;

void expect_fast(const Tokenizer &tokenizer, const std::string &name, const std::string &text) {
  std::vector<int32_t> ids(text.size() + 3);
  on_small_stack([&] {
    auto start = std::chrono::steady_clock::now();
    size_t count = 0;
    int32_t status = proofinfer_tokenizer_encode(tokenizer.get(), text.data(), text.size(), PROOFINFER_ENCODE_BOS, ids.data(), ids.size(),
                                                 &count, nullptr);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(status, PROOFINFER_OK) << name;
    EXPECT_LT(seconds, kMostSeconds) << name;
    ::testing::Test::RecordProperty(name, std::to_string(seconds));
  });
}

std::string prose(size_t bytes) {
  const char *words[] = {"the",     "river",  "ran",   "past",   "a",     "small",    "house",       "where",  "nobody",
                         "had",     "lived",  "for",   "years,", "and",   "in",       "its",         "garden", "grew",
                         "apples.", "\nOnce", "again", "Ann",    "said:", "\"yes\",", "na\xC3\xAFve"};
  Random random{3};
  std::string text;
  while (text.size() < bytes) text += std::string(words[random.below(25)]) + " ";
  text.resize(bytes);
  return text;
}

void expect_all_fast(const Tokenizer &tokenizer) {
  const size_t megabyte = 1000000;
  Random random{5};
  std::string noise, emoji;
  for (size_t i = 0; i < megabyte; i++) noise += char(random.below(256));
  while (emoji.size() < megabyte) emoji += "\xF0\x9F\xA6\x99";
  expect_fast(tokenizer, "prose", prose(megabyte));
  expect_fast(tokenizer, "one_letter", std::string(megabyte, 'a'));
  expect_fast(tokenizer, "spaces", std::string(megabyte, ' '));
  expect_fast(tokenizer, "newlines", std::string(10000, '\n'));
  expect_fast(tokenizer, "nul_bytes", std::string(megabyte, '\0'));
  expect_fast(tokenizer, "random_bytes", noise);
  expect_fast(tokenizer, "emoji", emoji);
}

}  // namespace

// ---- Encode ----

TEST(Tokenizer, encode_equals_the_direct_algorithm_on_random_vocabularies) {
  Random random{1};
  const std::string alphabets[] = {"a ", "ab ", "abc \n", std::string("a\0b ", 4), "\xC3\xA9\xE2\x80\x94 a", "aAbBcC .,\xFF\x80"};
  for (int round = 0; round < 1500; round++) {
    const std::string &alphabet = alphabets[random.below(6)];
    SlowTokenizer slow{random_pieces(&random, alphabet)};
    Tokenizer fast = open_pieces(slow.pieces);
    ASSERT_TRUE(fast);
    for (int text_round = 0; text_round < 6; text_round++) {
      std::string text = random_text(&random, alphabet, random.below(40));
      uint32_t flags = random.below(4);
      ASSERT_EQ(encode(fast, text, flags), slow.encode(text, flags)) << "round " << round << " text " << testing::PrintToString(text);
    }
  }
}

TEST(Tokenizer, encode_equals_the_direct_algorithm_on_long_runs_with_one_score) {
  Random random{2};
  for (int round = 0; round < 40; round++) {
    std::vector<Piece> pieces = small_vocabulary({});
    for (size_t length = 1; length <= 9; length++)
      if (length == 1 || random.below(2)) pieces.push_back({std::string(length, 'a'), round % 2 ? 0.0f : -float(random.below(3))});
    SlowTokenizer slow{pieces};
    Tokenizer fast = open_pieces(pieces);
    for (size_t length : {1, 2, 3, 31, 64, 150, 257}) {
      std::string text(length, 'a');
      if (round % 3 == 0) text[random.below(uint32_t(length))] = 'b';
      ASSERT_EQ(encode(fast, text), slow.encode(text, 0)) << round << " " << length;
    }
  }
}

TEST(Tokenizer, encode_equals_the_direct_algorithm_on_pieces_that_differ_behind_eight_equal_bytes) {
  Random random{6};
  for (int round = 0; round < 60; round++) {
    const bool ends_equal = round % 2 != 0;
    auto joined = [&](const std::string &equal, const std::string &other) { return ends_equal ? other + equal : equal + other; };
    std::vector<Piece> pieces = small_vocabulary({});
    for (const char *letter : {"a", "b", "c"}) pieces.push_back({letter, 0.0f});
    for (size_t length = 2; length <= 8; length++) pieces.push_back({std::string(length, 'a'), 9.0f});
    for (int i = 0; i < 40; i++)
      pieces.push_back({joined("aaaaaaaa", random_text(&random, "abc", 1 + random.below(4))), float(random.below(8))});
    SlowTokenizer slow{pieces};
    Tokenizer fast = open_pieces(pieces);
    for (int text_round = 0; text_round < 20; text_round++) {
      std::string text = joined("aaaaaaaa", random_text(&random, "abc", 6));
      ASSERT_EQ(encode(fast, text), slow.encode(text, 0)) << "round " << round << " text " << text;
    }
  }
}

TEST(Tokenizer, encode_equals_the_direct_algorithm_on_a_real_vocabulary) {
  PROOFINFER_MODEL_OR_SKIP(path, "tok512.bin");
  Tokenizer fast = open_tokenizer(path, 512);
  SlowTokenizer slow;
  for (int32_t i = 0; i < 512; i++) {
    char bytes[64];
    size_t count = 0;
    Piece piece{"", 0};
    ASSERT_EQ(proofinfer_tokenizer_piece(fast.get(), i, bytes, sizeof(bytes), &count, &piece.score, nullptr), PROOFINFER_OK);
    piece.bytes.assign(bytes, count);
    slow.pieces.push_back(piece);
  }
  Random random{4};
  std::string story = prose(20000);
  for (int round = 0; round < 300; round++) {
    std::string text;
    if (round % 3 == 0) {
      text = story.substr(random.below(19000), random.below(80));
    } else {
      for (uint32_t i = random.below(30); i > 0; i--)
        text += round % 3 == 1 ? slow.pieces[random.below(512)].bytes : std::string(1, char(random.below(256)));
    }
    uint32_t flags = random.below(4);
    ASSERT_EQ(encode(fast, text, flags), slow.encode(text, flags)) << testing::PrintToString(text);
  }
}

TEST(Tokenizer, facts_about_texts_hold_with_the_real_vocabulary) {
  PROOFINFER_MODEL_OR_SKIP(path, "tokenizer.bin");
  Tokenizer tokenizer = open_tokenizer(path, 32000);
  auto with_bos = [&](const std::string &text) { return encode(tokenizer, text, PROOFINFER_ENCODE_BOS); };
  EXPECT_EQ(with_bos(" Hello world"), (Ids{1, 29871, 15043, 3186}));
  EXPECT_EQ(with_bos("    Hello\n    Hello"), (Ids{1, 268, 15043, 13, 1678, 15043}));
  EXPECT_EQ(with_bos("This is \xF0\x9F\xA6\x99.cpp"), (Ids{1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223}));
  EXPECT_EQ(with_bos("<s>"), (Ids{1, 529, 29879, 29958})) << "special pieces in the text stay text";
  EXPECT_EQ(with_bos(std::string(64, ' ') + "X"), (Ids{1, 462, 462, 462, 462, 1060}));
  EXPECT_EQ(encode(tokenizer, "x", PROOFINFER_ENCODE_BOS | PROOFINFER_ENCODE_EOS), (Ids{1, 921, 2}));
}

TEST(Tokenizer, an_empty_text_gives_only_the_ids_that_were_asked_for) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({"a"}));
  EXPECT_EQ(encode(tokenizer, "", 0), Ids());
  EXPECT_EQ(encode(tokenizer, "", PROOFINFER_ENCODE_BOS), Ids{1});
  EXPECT_EQ(encode(tokenizer, "", PROOFINFER_ENCODE_EOS), Ids{2});
  EXPECT_EQ(encode(tokenizer, "", PROOFINFER_ENCODE_BOS | PROOFINFER_ENCODE_EOS), (Ids{1, 2}));
}

TEST(Tokenizer, nul_in_a_text_is_an_ordinary_byte) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({"a", "b"}));
  EXPECT_EQ(encode(tokenizer, std::string("a\0b\0", 4)), (Ids{259, 260, 3, 261, 3}));
  std::vector<Piece> pieces = small_vocabulary({"a", std::string("\0", 1), std::string("a\0", 2)});
  EXPECT_EQ(encode(open_pieces(pieces), std::string("a\0\0", 3)), (Ids{259, 262, 261})) << "a piece may hold it";
}

TEST(Tokenizer, of_equal_pieces_the_lowest_id_is_taken) {
  std::vector<Piece> pieces = small_vocabulary({"a", "b", "ab", "ab", "a"});
  pieces[263].score = 100.0f;  // the second "ab"
  EXPECT_EQ(encode(open_pieces(pieces), "aab"), (Ids{259, 260, 262}));
}

TEST(Tokenizer, a_merge_needs_a_score_above_the_floor) {
  std::vector<Piece> pieces = small_vocabulary({"a", "b", "ab"});
  pieces[262].score = -1e10f;
  EXPECT_EQ(encode(open_pieces(pieces), "ab"), (Ids{259, 260, 261}));
  pieces[262].score = -9.9e9f;
  EXPECT_EQ(encode(open_pieces(pieces), "ab"), (Ids{259, 262}));
}

TEST(Tokenizer, negative_and_positive_zero_scores_tie) {
  std::vector<Piece> pieces = small_vocabulary({"a", "b", "c", "ab", "bc"});
  pieces[263].score = -0.0f;
  pieces[264].score = 0.0f;
  EXPECT_EQ(encode(open_pieces(pieces), "abc"), (Ids{259, 263, 262})) << "the leftmost of equal scores";
}

TEST(Tokenizer, bytes_without_a_piece_fall_back_to_byte_pieces) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({}));
  EXPECT_EQ(encode(tokenizer, "\xF0\x9F\x99"), (Ids{259, 3 + 0xF0, 3 + 0x9F, 3 + 0x99}));
  EXPECT_EQ(encode(tokenizer, "\x80\x80\x80\x80\x80"), (Ids{259, 131, 131, 131, 131, 131}));
}

TEST(Tokenizer, a_missing_byte_piece_is_named) {
  std::vector<Piece> pieces = small_vocabulary({});
  pieces.resize(100);
  pieces[50].bytes = " ";
  Ids ids;
  Answer answer = encode_answer(open_pieces(pieces), "!!z", 0, &ids);
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT);
  EXPECT_EQ(answer.message, "the byte 0x7A at offset 2 of the text needs the byte piece 125; the vocabulary has 100 pieces");
  answer = encode_answer(open_pieces(pieces), "!\xC3\xA9", 0, &ids);
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT);
  EXPECT_EQ(answer.message, "the byte 0xC3 at offset 1 of the text needs the byte piece 198; the vocabulary has 100 pieces");
}

TEST(Tokenizer, a_missing_space_piece_is_named_and_an_empty_text_does_not_need_it) {
  std::vector<Piece> pieces = small_vocabulary({"a"});
  pieces[259].bytes = "_";
  Tokenizer tokenizer = open_pieces(pieces);
  Ids ids;
  Answer answer = encode_answer(tokenizer, "a", 0, &ids);
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT);
  EXPECT_EQ(answer.message, "the vocabulary of 261 pieces has no piece \" \" (one space), with which every text begins");
  EXPECT_EQ(encode(tokenizer, "", PROOFINFER_ENCODE_BOS), Ids{1});
}

TEST(Tokenizer, special_ids_that_the_vocabulary_lacks_are_minus_one_and_cannot_be_asked_for) {
  for (int32_t size = 1; size <= 3; size++) {
    std::vector<Piece> pieces = small_vocabulary({});
    pieces.resize(size_t(size));
    Tokenizer tokenizer = open_pieces(pieces);
    EXPECT_EQ(proofinfer_tokenizer_bos(tokenizer.get()), size > 1 ? 1 : -1);
    EXPECT_EQ(proofinfer_tokenizer_eos(tokenizer.get()), size > 2 ? 2 : -1);
    Ids ids;
    Answer bos = encode_answer(tokenizer, "", PROOFINFER_ENCODE_BOS, &ids), eos = encode_answer(tokenizer, "", PROOFINFER_ENCODE_EOS, &ids);
    EXPECT_EQ(bos.status, size > 1 ? PROOFINFER_OK : PROOFINFER_E_FORMAT) << bos;
    EXPECT_EQ(eos.status, size > 2 ? PROOFINFER_OK : PROOFINFER_E_FORMAT) << eos;
    EXPECT_EQ(bos.message, size > 1 ? "" : "the id of BOS is asked for and the vocabulary of 1 pieces has none");
  }
  EXPECT_EQ(proofinfer_tokenizer_bos(nullptr), -1);
  EXPECT_EQ(proofinfer_tokenizer_eos(nullptr), -1);
  EXPECT_EQ(proofinfer_tokenizer_vocab_size(nullptr), -1);
}

TEST(Tokenizer, a_small_capacity_writes_nothing_and_says_what_is_needed) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({"a"}));
  Ids whole = encode(tokenizer, "aaaa", PROOFINFER_ENCODE_BOS);
  ASSERT_EQ(whole.size(), 6u);
  for (size_t capacity = 0; capacity <= 6; capacity++) {
    Ids ids(6, -9);
    size_t needed = 0;
    Answer answer = answer_of(proofinfer_tokenizer_encode, tokenizer.get(), "aaaa", size_t(4), PROOFINFER_ENCODE_BOS,
                              capacity ? ids.data() : nullptr, capacity, &needed);
    EXPECT_EQ(needed, 6u);
    EXPECT_EQ(answer.status, capacity < 6 ? PROOFINFER_E_BUFFER : PROOFINFER_OK) << answer;
    EXPECT_EQ(ids, capacity < 6 ? Ids(6, -9) : whole);
  }
}

TEST(Tokenizer, hostile_encode_arguments_are_refused) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({"a"}));
  size_t needed = 5;
  Answer answer =
      answer_of(proofinfer_tokenizer_encode, tokenizer.get(), "a", std::numeric_limits<size_t>::max(), 0u, nullptr, size_t(0), &needed);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
  EXPECT_TRUE(answer.says("18446744073709551615") && answer.says("2147483632")) << answer;
  answer = answer_of(proofinfer_tokenizer_encode, tokenizer.get(), "a", size_t(1), 16u, nullptr, size_t(0), &needed);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
  EXPECT_TRUE(answer.says("0x10") && answer.says("0xf")) << answer;
  answer = answer_of(proofinfer_tokenizer_encode, tokenizer.get(), nullptr, size_t(1), 0u, nullptr, size_t(0), &needed);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
  EXPECT_EQ(needed, 0u);
}

TEST(Tokenizer, scratch_memory_is_bounded_given_back_and_may_run_out) {
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  std::vector<Piece> pieces = small_vocabulary({"a", "aa", "aaaa"});
  Tokenizer tokenizer = open_tokenizer(tokenizer_file(pieces), int32_t(pieces.size()), options.get());
  uint64_t held = allocator.held_bytes(), calls = allocator.calls(), load_peak = allocator.peak_bytes();
  std::string text(200000, 'a');
  encode(tokenizer, text);
  EXPECT_EQ(allocator.held_bytes(), held);
  EXPECT_LE(allocator.peak_bytes(), std::max(load_peak, held + 56 * text.size() + 256));
  uint64_t used = allocator.calls() - calls;
  for (uint64_t i = 0; i < used; i++) {
    allocator.fail_call(i);
    Ids ids;
    Answer answer = encode_answer(tokenizer, text, 0, &ids);
    EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << answer;
    EXPECT_EQ(ids, Ids());
    EXPECT_EQ(allocator.held_bytes(), held);
  }
}

TEST(Tokenizer, the_memory_limit_holds_while_encoding) {
  std::vector<Piece> pieces = small_vocabulary({"a", "aa"});
  Options options = make_options();
  set_u64(options, "memory_limit_bytes", 100000);
  Tokenizer tokenizer = open_tokenizer(tokenizer_file(pieces), int32_t(pieces.size()), options.get());
  ASSERT_TRUE(tokenizer);
  Ids ids;
  EXPECT_TRUE(encode_answer(tokenizer, std::string(1000, 'a'), 0, &ids).ok());
  Answer answer = encode_answer(tokenizer, std::string(100000, 'a'), 0, &ids);
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << answer;
  EXPECT_TRUE(encode_answer(tokenizer, std::string(1000, 'a'), 0, &ids).ok()) << "the failed call held nothing";
}

TEST(Tokenizer, many_threads_encode_at_once_with_the_same_result) {
  std::vector<Piece> pieces = small_vocabulary({"a", "b", "ab", "the", "th", "t", "h", "e", " t", " the"});
  Tokenizer tokenizer = open_pieces(pieces);
  std::string text = prose(30000);
  Ids expected = encode(tokenizer, text);
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (size_t i = 0; i < 8; i++)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; round++) wrong[i] += encode(tokenizer, text) != expected;
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

// ---- Time ----

TEST(Tokenizer, a_megabyte_takes_less_than_a_second_on_a_small_stack_with_a_small_vocabulary) {
  expect_all_fast(
      open_pieces(small_vocabulary({"a", "aa", "aaaa", "aaaaaaaa", "\n", "\n\n", "  ", "    ", "th", " th", " the", "t", "h", "e"})));
}

TEST(Tokenizer, a_megabyte_takes_less_than_a_second_on_a_small_stack_with_the_real_vocabulary) {
  PROOFINFER_MODEL_OR_SKIP(path, "tokenizer.bin");
  expect_all_fast(open_tokenizer(path, 32000));
}

// Every token is a byte piece of 50,000 bytes: a merge must not cost its length.
TEST(Tokenizer, long_pieces_do_not_make_encoding_slow) {
  std::vector<Piece> pieces = small_vocabulary({});
  std::string half(50000, 'x');
  pieces[3 + 'a'] = {half, 0.0f};
  pieces.push_back({half + half, 1.0f});
  pieces.push_back({half + half + half + half, 2.0f});
  Tokenizer tokenizer = open_pieces(pieces);
  expect_fast(tokenizer, "long_byte_pieces", std::string(200000, 'a'));
  EXPECT_EQ(encode(tokenizer, "aaaaa"), (Ids{259, 261, 3 + 'a'}));
}

// Every length of a run is a piece: n^2 / 2 ways to write the longest ones as two.
TEST(Tokenizer, a_vocabulary_of_nested_pieces_loads_and_encodes_fast) {
  std::vector<std::string> texts;
  for (size_t length = 1; length <= 600; length++) texts.push_back(std::string(length, 'a'));
  std::vector<Piece> pieces = small_vocabulary(texts);
  auto start = std::chrono::steady_clock::now();
  Tokenizer tokenizer = open_pieces(pieces);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), kMostSeconds);
  expect_fast(tokenizer, "nested", std::string(300000, 'a'));
}

// ---- Decode ----

TEST(Tokenizer, decode_drops_one_space_after_bos_only) {
  std::vector<Piece> pieces = small_vocabulary({" a", "  b", " "});
  Tokenizer tokenizer = open_pieces(pieces);
  EXPECT_EQ(decode(tokenizer, 1, 260), "a");
  EXPECT_EQ(decode(tokenizer, 1, 261), " b");
  EXPECT_EQ(decode(tokenizer, 1, 259), "");
  for (int32_t previous : {-1, 0, 2, 260}) EXPECT_EQ(decode(tokenizer, previous, 260), " a") << previous;
}

TEST(Tokenizer, decode_turns_exactly_spelled_byte_pieces_into_their_byte) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({}));
  for (int byte = 0; byte < 256; byte++) {
    EXPECT_EQ(decode(tokenizer, -1, 3 + byte), std::string(1, char(byte)));
    char spelled[8];
    std::snprintf(spelled, sizeof(spelled), "<0x%02X>", unsigned(byte));
    EXPECT_EQ(decode(tokenizer, 1, 3 + byte, PROOFINFER_DECODE_SPELLED), spelled);
  }
}

TEST(Tokenizer, other_spellings_are_ordinary_text) {
  std::vector<std::string> texts = {"<0x-1>",
                                    "<0xZZ>",
                                    "<0x1>",
                                    "<0x123>",
                                    "<0x12",
                                    "<0x12> ",
                                    "<0x12>>",
                                    "<0X12>",
                                    "< 0x12>",
                                    "0x12",
                                    "<0x>",
                                    "<0x 1>",
                                    "<0x1 >",
                                    "<0x+1>",
                                    "",
                                    "<",
                                    std::string("<0x\0\0>", 6),
                                    std::string("\0", 1)};
  Tokenizer tokenizer = open_pieces(small_vocabulary(texts));
  for (size_t i = 0; i < texts.size(); i++) EXPECT_EQ(decode(tokenizer, -1, int32_t(260 + i)), texts[i]);
  Tokenizer lower = open_pieces(small_vocabulary({"<0xaF>", " <0x41>"}));
  EXPECT_EQ(decode(lower, -1, 260), "\xAF") << "either case of digit";
  EXPECT_EQ(decode(lower, -1, 261), " <0x41>");
  EXPECT_EQ(decode(lower, 1, 261), "A") << "as in the reference, the space goes before the spelling is looked at";
}

TEST(Tokenizer, ids_outside_the_vocabulary_are_refused_with_the_bounds) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({}));
  char buffer[16];
  size_t needed = 9;
  for (int32_t id : {-1, 260, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    Answer answer = answer_of(proofinfer_tokenizer_decode, tokenizer.get(), -1, id, 0u, buffer, sizeof(buffer), &needed);
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(answer.message, "token is " + std::to_string(id) + "; expected 0 to 259");
    answer = answer_of(proofinfer_tokenizer_piece, tokenizer.get(), id, buffer, sizeof(buffer), &needed, nullptr);
    EXPECT_EQ(answer.message, "token is " + std::to_string(id) + "; expected 0 to 259");
  }
  for (int32_t id : {-2, 260}) {
    Answer answer = answer_of(proofinfer_tokenizer_decode, tokenizer.get(), id, 5, 0u, buffer, sizeof(buffer), &needed);
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(answer.message, "previous is " + std::to_string(id) + "; expected -1 to 259");
  }
  Answer answer = answer_of(proofinfer_tokenizer_decode, tokenizer.get(), -1, 5, 2u, buffer, sizeof(buffer), &needed);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
}

TEST(Tokenizer, a_piece_longer_than_the_buffer_says_what_it_needs) {
  Tokenizer tokenizer = open_pieces(small_vocabulary({"abcdef"}));
  char buffer[8] = "-------";
  size_t needed = 0;
  Answer answer = answer_of(proofinfer_tokenizer_decode, tokenizer.get(), -1, 260, 0u, buffer, size_t(5), &needed);
  EXPECT_EQ(answer.status, PROOFINFER_E_BUFFER) << answer;
  EXPECT_EQ(needed, 6u);
  EXPECT_STREQ(buffer, "-------");
  answer = answer_of(proofinfer_tokenizer_piece, tokenizer.get(), 260, nullptr, size_t(0), &needed, nullptr);
  EXPECT_EQ(answer.status, PROOFINFER_E_BUFFER) << answer;
  EXPECT_EQ(needed, 6u);
  answer = answer_of(proofinfer_tokenizer_decode, tokenizer.get(), -1, 260, 0u, buffer, size_t(6), &needed);
  EXPECT_TRUE(answer.ok()) << answer;
  EXPECT_STREQ(buffer, "abcdef-");
}

TEST(IdTable, refuses_more_entries_than_can_be_addressed) {
  proofinfer::Account account({}, 0);
  proofinfer::IdTable table;
  proofinfer::Failure failure;
  for (size_t count : {SIZE_MAX / 4, SIZE_MAX / 2, SIZE_MAX}) {
    EXPECT_EQ(table.reserve(&account, count, 1, "a table", &failure), proofinfer::kMemory) << count;
    EXPECT_EQ(account.used_bytes(), 0u);
  }
}

}  // namespace proofinfer_test
