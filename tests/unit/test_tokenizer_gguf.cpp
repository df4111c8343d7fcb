// Vocabularies of GGUF files: ids as the direct forms of the two algorithms give them, in near-linear time; every lie in a file refused by name.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "format/piece_table.h"
#include "model/tokenizer_words.h"
#include "support/files.h"
#include "support/handles.h"
#include "support/random.h"
#include "support/vocabulary_lies.h"

namespace proofinfer_test {

namespace {

using Ids = std::vector<int32_t>;

Answer open_answer(const GgufFile &file, int32_t vocab_size = 0, Tokenizer *tokenizer = nullptr,
                   const proofinfer_options *options = nullptr) {
  Bytes exact = file.bytes();  // an allocation of exactly this size: a sanitizer sees one byte too far
  exact.shrink_to_fit();
  Answer answer;
  Tokenizer opened = open_tokenizer(exact, vocab_size, options, &answer);
  if (tokenizer) *tokenizer = std::move(opened);
  return answer;
}

Tokenizer open(const GgufFile &file, int32_t vocab_size = 0) {
  Tokenizer tokenizer;
  Answer answer = open_answer(file, vocab_size, &tokenizer);
  EXPECT_TRUE(answer.ok()) << answer;
  return tokenizer;
}

std::string decode(const Tokenizer &tokenizer, const Ids &ids, int32_t previous = -1, uint32_t flags = 0) {
  std::string text;
  for (int32_t id : ids) {
    char buffer[512];
    size_t count = 0;
    Answer answer = answer_of(proofinfer_tokenizer_decode, tokenizer.get(), previous, id, flags, buffer, sizeof(buffer), &count);
    EXPECT_TRUE(answer.ok()) << answer;
    text.append(buffer, count);
    previous = id;
  }
  return text;
}

int64_t number(const Tokenizer &tokenizer, int32_t property) {
  int64_t value = -77;
  Answer answer = answer_of(proofinfer_tokenizer_get_i64, tokenizer.get(), property, &value);
  EXPECT_TRUE(answer.ok()) << answer;
  return value;
}

// ---- The algorithms in their direct form ----

// Of one word: again and again the strongest rule that fits anywhere, its leftmost place first.
std::vector<std::string> merged(std::vector<std::string> units, const std::vector<std::pair<std::string, std::string>> &rules) {
  for (;;) {
    size_t best = rules.size(), at = 0;
    for (size_t i = 0; i + 1 < units.size(); i++)
      for (size_t r = 0; r < best; r++)
        if (rules[r].first == units[i] && rules[r].second == units[i + 1]) best = r, at = i;
    if (best == rules.size()) return units;
    units[at] += units[at + 1];
    units.erase(units.begin() + std::ptrdiff_t(at) + 1);
  }
}

// The text cut at pieces of the given types: at each place the longest that begins there, the lowest id of equal ones.
struct Part {
  std::string text;
  int32_t id;  // -1: text
};
std::vector<Part> parts_of(const std::string &text, const std::vector<GgufPiece> &pieces, const std::set<int32_t> &types) {
  std::vector<Part> parts;
  std::string between;
  for (size_t at = 0; at < text.size();) {
    int32_t best = -1;
    size_t length = 0;
    for (size_t i = 0; i < pieces.size(); i++)
      if (types.count(pieces[i].type) && pieces[i].text.size() > length && text.compare(at, pieces[i].text.size(), pieces[i].text) == 0)
        best = int32_t(i), length = pieces[i].text.size();
    if (best < 0) {
      between += text[at++];
      continue;
    }
    if (!between.empty()) parts.push_back({between, -1});
    between.clear();
    parts.push_back({"", best});
    at += length;
  }
  if (!between.empty()) parts.push_back({between, -1});
  return parts;
}

const std::set<int32_t> kSpecial = {kUnknown, kControl, kUserDefined}, kAlways = {kUserDefined};

Ids expected_by_rules(const RuleVocabulary &vocabulary, proofinfer::PreTokenizer pre, const std::string &text, bool special) {
  const std::vector<GgufPiece> pieces = vocabulary.pieces();
  std::map<std::string, int32_t> id_of;
  for (size_t i = 0; i < 256 + vocabulary.rules.size(); i++) id_of.emplace(pieces[i].text, int32_t(i));
  Ids ids;
  for (const Part &part : parts_of(text, pieces, special ? kSpecial : kAlways)) {
    if (part.id >= 0) ids.push_back(part.id);
    proofinfer::Words words(pre, reinterpret_cast<const unsigned char *>(part.text.data()), part.text.size());
    size_t begin = 0;
    for (size_t end; words.next(&end); begin = end) {
      std::vector<std::string> units;
      for (size_t i = begin; i < end; i++) units.push_back(std::string(1, part.text[i]));
      for (const std::string &unit : merged(units, vocabulary.rules)) ids.push_back(id_of.at(letters_of(unit)));
    }
  }
  return ids;
}

// Again and again the pair that makes the piece of the highest score, the leftmost of equal ones.
Ids expected_by_scores(const std::vector<GgufPiece> &pieces, const std::string &text, bool special, bool space_prefix) {
  std::map<std::string, int32_t> id_of;
  for (size_t i = 0; i < pieces.size(); i++)
    if (pieces[i].type == kNormal || pieces[i].type == kUserDefined || pieces[i].type == kUnused) id_of.emplace(pieces[i].text, int32_t(i));
  Ids ids;
  bool first = true;
  for (const Part &part : parts_of(text, pieces, special ? kSpecial : kAlways)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      first = true;
      continue;
    }
    const std::string spaced = (first && space_prefix ? " " : "") + part.text;
    first = false;
    std::vector<std::string> units;
    for (size_t i = 0; i < spaced.size(); i += units.back() == "\xE2\x96\x81" && spaced[i] == ' ' ? 1 : units.back().size()) {
      const proofinfer::Char c = proofinfer::first_char(reinterpret_cast<const unsigned char *>(spaced.data()) + i, spaced.size() - i);
      units.push_back(spaced[i] == ' ' ? "\xE2\x96\x81" : spaced.substr(i, c.bytes));
    }
    for (;;) {
      int32_t best = -1;
      size_t at = 0;
      for (size_t i = 0; i + 1 < units.size(); i++) {
        auto found = id_of.find(units[i] + units[i + 1]);
        if (found == id_of.end() || !id_of.count(units[i]) || !id_of.count(units[i + 1])) continue;
        if (best < 0 || pieces[size_t(found->second)].score > pieces[size_t(best)].score) best = found->second, at = i;
      }
      if (best < 0) break;
      units[at] += units[at + 1];
      units.erase(units.begin() + std::ptrdiff_t(at) + 1);
    }
    for (const std::string &unit : units) {
      if (id_of.count(unit))
        ids.push_back(id_of[unit]);
      else
        for (unsigned char byte : unit) ids.push_back(3 + byte);
    }
  }
  return ids;
}

std::string drawn(Random *random, const std::vector<std::string> &alphabet, size_t most) {
  std::string text;
  for (size_t n = random->below(most + 1); n > 0; n--) text += alphabet[random->below(alphabet.size())];
  return text;
}

// Rules over what earlier ones made, some of them never reached, in any order; special pieces that overlap and repeat.
RuleVocabulary drawn_rules(Random *random, const std::vector<std::string> &alphabet) {
  RuleVocabulary vocabulary;
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<std::string> units = alphabet;
  for (size_t n = random->below(30); n > 0; n--) {
    std::pair<std::string, std::string> rule = {units[random->below(units.size())], units[random->below(units.size())]};
    if (rule.first.size() + rule.second.size() > 12 || !seen.insert(rule).second) continue;
    vocabulary.rules.insert(vocabulary.rules.begin() + std::ptrdiff_t(random->below(vocabulary.rules.size() + 1)), rule);
    units.push_back(rule.first + rule.second);
  }
  for (size_t n = random->below(5); n > 0; n--)
    vocabulary.others.push_back(
        {"<" + drawn(random, alphabet, 3) + ">", 0, random->pick<int32_t>({kControl, kUserDefined, kUnknown, kUnused})});
  if (random->chance(30)) vocabulary.others.push_back({drawn(random, alphabet, 3) + "a", 0, kUserDefined});
  return vocabulary;
}

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

// Many times the promise (5 MB/s), for builds with sanitizers on busy machines.
void expect_fast(const Tokenizer &tokenizer, const std::string &name, const std::string &text, uint32_t flags = 0) {
  Ids ids(2 * text.size() + 3);
  on_small_stack([&] {
    const auto start = std::chrono::steady_clock::now();
    size_t count = 0;
    const int32_t status =
        proofinfer_tokenizer_encode(tokenizer.get(), text.data(), text.size(), flags, ids.data(), ids.size(), &count, nullptr);
    EXPECT_EQ(status, PROOFINFER_OK) << name;
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5.0) << name;
  });
}

std::string megabyte_of(const std::string &unit) {
  std::string text;
  while (text.size() < 1000000) text += unit;
  return text;
}

const std::map<std::string, proofinfer::PreTokenizer> kPre = {{"default", proofinfer::PreTokenizer::kDefault},
                                                              {"gpt-2", proofinfer::PreTokenizer::kGpt2},
                                                              {"smollm", proofinfer::PreTokenizer::kSmollm},
                                                              {"smaug-bpe", proofinfer::PreTokenizer::kLlama3}};

}  // namespace

// ---- Byte-level byte pair encoding ----

TEST(TokenizerGguf, drawn_rules_and_texts_give_the_ids_of_the_direct_algorithm) {
  const std::vector<std::string> alphabet = {
      "a", "b", "A", " ", "1", "2", "!", "\n", "<", ">", "'", "s", "\xC3", "\xA9", std::string(1, '\0')};
  Random random(91);
  for (int i = 0; i < 300; i++) {
    RuleVocabulary vocabulary = drawn_rules(&random, alphabet);
    const auto &[name, pre] = *std::next(kPre.begin(), std::ptrdiff_t(random.below(kPre.size())));
    vocabulary.pre = name;
    Tokenizer tokenizer = open(rule_file(vocabulary));
    for (int k = 0; k < 30; k++) {
      std::string text = drawn(&random, alphabet, 24);
      for (const GgufPiece &piece : vocabulary.others)
        if (random.chance(30)) text.insert(random.below(text.size() + 1), piece.text);
      const bool special = random.chance(50);
      const Ids ids = encode(tokenizer, text, special ? PROOFINFER_ENCODE_SPECIAL : 0);
      ASSERT_EQ(ids, expected_by_rules(vocabulary, pre, text, special)) << i << " " << name << " " << testing::PrintToString(text);
      ASSERT_TRUE(special || decode(tokenizer, ids) == text) << testing::PrintToString(text);
      ASSERT_EQ(decode(tokenizer, ids, -1, PROOFINFER_DECODE_SPELLED), text);
    }
  }
}

TEST(TokenizerGguf, a_word_that_is_a_piece_is_not_merged_where_the_pre_tokenizer_says_so) {
  RuleVocabulary vocabulary;
  vocabulary.rules = {{"b", "c"}, {"a", "bc"}, {"a", "b"}};
  vocabulary.others = {{letters_of(" xyz")}, {letters_of("abcd")}, {"axb", 0, kUserDefined}};
  vocabulary.pre = "llama-bpe";
  Tokenizer whole = open(rule_file(vocabulary));
  EXPECT_EQ(encode(whole, " xyz"), Ids({259}));
  EXPECT_EQ(encode(whole, "abcd"), Ids({260}));
  EXPECT_EQ(encode(whole, "abcde"), Ids({257, 'd', 'e'}));
  EXPECT_EQ(encode(whole, "axbabc"), Ids({261, 257}));
  vocabulary.pre = "gpt-2";
  Tokenizer plain = open(rule_file(vocabulary));
  EXPECT_EQ(encode(plain, " xyz"), Ids({' ', 'x', 'y', 'z'}));
  EXPECT_EQ(encode(plain, "abcd"), Ids({257, 'd'}));
}

// The pairs that the first rule makes wait, many at once, before a weaker one that was there from the beginning.
TEST(TokenizerGguf, pairs_that_arise_are_merged_before_weaker_ones) {
  RuleVocabulary vocabulary;
  vocabulary.rules = {{"a", "b"}, {"ab", "ab"}, {"c", "c"}};
  std::string text;
  for (int i = 0; i < 40; i++) text += "ab";
  Ids expected(20, 257);
  expected.push_back(258);
  EXPECT_EQ(encode(open(rule_file(vocabulary)), text + "cc"), expected);
}

TEST(TokenizerGguf, text_becomes_a_control_piece_only_when_asked_and_never_by_merging) {
  RuleVocabulary vocabulary;
  vocabulary.rules = {{"<", "!"}, {"<!", ">"}};
  GgufFile file = rule_file(vocabulary);
  std::vector<GgufPiece> pieces = vocabulary.pieces();
  pieces[257].type = kControl;  // what the second rule makes
  file.remove_key("tokenizer.ggml.token_type");
  std::vector<int32_t> types;
  for (const GgufPiece &piece : pieces) types.push_back(piece.type);
  file.add_array("tokenizer.ggml.token_type", kI32, types);
  Tokenizer tokenizer = open(file);
  EXPECT_EQ(encode(tokenizer, "x<!>"), Ids({'x', 256, '>'}));
  EXPECT_EQ(encode(tokenizer, "x<!>y", PROOFINFER_ENCODE_SPECIAL), Ids({'x', 257, 'y'}));
  EXPECT_EQ(decode(tokenizer, {'x', 257, 'y'}), "xy");
  EXPECT_EQ(decode(tokenizer, {'x', 257, 'y'}, -1, PROOFINFER_DECODE_SPELLED), "x<!>y");
}

TEST(TokenizerGguf, every_byte_string_comes_back_from_byte_level_pieces) {
  RuleVocabulary vocabulary;
  vocabulary.rules = {{"a", "b"}, {"\xE2", "\x96"}, {" ", "a"}, {"\xFF", "\xFF"}};
  for (const auto &[name, pre] : kPre) {
    vocabulary.pre = name;
    Tokenizer tokenizer = open(rule_file(vocabulary));
    Random random(3);
    for (int i = 0; i < 500; i++) {
      std::string text;
      for (size_t n = random.below(40); n > 0; n--)
        text += char(random.chance(30) ? 0xE2 - int(random.below(4)) * 0x20 : int(random.below(256)));
      EXPECT_EQ(decode(tokenizer, encode(tokenizer, text)), text);
    }
  }
}

TEST(TokenizerGguf, a_byte_without_a_piece_is_an_error_with_its_place) {
  RuleVocabulary vocabulary;
  std::vector<GgufPiece> pieces = vocabulary.pieces();
  pieces['q'].text = "qq";
  GgufFile file = rule_file(vocabulary);
  file.remove_key("tokenizer.ggml.tokens"), file.remove_key("tokenizer.ggml.scores"), file.remove_key("tokenizer.ggml.token_type");
  add_pieces(&file, pieces);
  Tokenizer tokenizer = open(file);
  Ids ids;
  Answer answer = encode_answer(tokenizer, "some quick text", 0, &ids);
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT);
  EXPECT_EQ(answer.message, "the byte 0x71 at offset 5 of the text needs a piece for it; none of the vocabulary's 256 is it");
}

TEST(TokenizerGguf, pieces_are_the_bytes_that_their_letters_stand_for_unless_they_are_no_letters) {
  RuleVocabulary vocabulary;
  vocabulary.rules = {{"\n", " "}};
  vocabulary.others = {{"\xE6\x97\xA5"}, {"\xC4"}, {"\xC4z"}, {"\xC5\x84"}, {letters_of("\n"), 0, kUserDefined}, {" "}, {"", 0, kNormal}};
  vocabulary.others.push_back({"\xC1\x8A"});
  vocabulary.others.push_back({letters_of("\n"), 0, kUnknown});
  Tokenizer tokenizer = open(rule_file(vocabulary));
  EXPECT_EQ(decode(tokenizer, {256}), "\n ");
  EXPECT_EQ(decode(tokenizer, {257, 258, 259, 260, 261, 262, 263, 264}), "\xE6\x97\xA5\xC4\xC4z\xC5\x84" + letters_of("\n") + " \xC1\x8A");
  EXPECT_EQ(decode(tokenizer, {265}, -1, PROOFINFER_DECODE_SPELLED), letters_of("\n"));
}

// ---- SentencePiece-like ----

TEST(TokenizerGguf, drawn_scores_and_texts_give_the_ids_of_the_direct_algorithm) {
  const std::string space = "\xE2\x96\x81";
  const std::vector<std::string> alphabet = {
      "a", "b", "c", " ", "\n", "<", "s", ">", "\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\xA6\x99", "\xE2", "\x96", "\xFF"};
  Random random(17);
  for (int i = 0; i < 300; i++) {
    std::vector<GgufPiece> others = {{space, -100}};
    for (const char *character : {"a", "b", "c", "\n", "<", "s", ">", "\xC3\xA9"})
      if (random.chance(80)) others.push_back({character, -float(random.below(5))});
    std::set<std::string> seen;
    for (size_t n = random.below(40); n > 0; n--) {
      std::string text = drawn(&random, {"a", "b", "c", space, "<", "s", ">", "\xC3\xA9"}, 5);
      if (text.empty() || !seen.insert(text).second) continue;
      others.push_back(
          {text, random.chance(5) ? -1e20f : -float(random.below(8)), random.chance(10) ? int32_t(kUnused) : int32_t(kNormal)});
    }
    if (random.chance(40)) others.push_back({"<" + drawn(&random, alphabet, 2) + ">", 0, random.pick<int32_t>({kControl, kUserDefined})});
    std::vector<GgufPiece> pieces = scored_pieces(others);
    GgufFile file = scored_file(pieces);
    const bool prefix = random.chance(70);
    if (!prefix) file.add("tokenizer.ggml.add_space_prefix", false);
    Tokenizer tokenizer = open(file);
    for (int k = 0; k < 30; k++) {
      const std::string text = drawn(&random, alphabet, 20);
      const bool special = random.chance(50);
      ASSERT_EQ(encode(tokenizer, text, special ? PROOFINFER_ENCODE_SPECIAL : 0), expected_by_scores(pieces, text, special, prefix))
          << i << " " << testing::PrintToString(text);
    }
  }
}

TEST(TokenizerGguf, spaces_are_marks_in_the_file_and_spaces_in_texts) {
  const std::string space = "\xE2\x96\x81";
  Tokenizer tokenizer = open(scored_file(scored_pieces({{space, -1}, {"a", -2}, {space + "a", -1}, {space, -3, kUserDefined}})));
  EXPECT_EQ(encode(tokenizer, "a"), Ids({261}));
  EXPECT_EQ(encode(tokenizer, " a"), Ids({259, 261}));
  EXPECT_EQ(encode(tokenizer, "a", PROOFINFER_ENCODE_DEFAULT), Ids({1, 261}));
  EXPECT_EQ(encode(tokenizer, ""), Ids());
  EXPECT_EQ(encode(tokenizer, "", PROOFINFER_ENCODE_DEFAULT | PROOFINFER_ENCODE_EOS), Ids({1, 2}));
  EXPECT_EQ(decode(tokenizer, {261, 260}), " aa");
  EXPECT_EQ(decode(tokenizer, {261, 260}, 1), "aa");
  EXPECT_EQ(decode(tokenizer, {262}), space);             // a user-defined piece is as it is spelled
  EXPECT_EQ(decode(tokenizer, {3 + 10, 1, 0, 2}), "\n");  // a byte; control and unknown pieces are no text
  EXPECT_EQ(decode(tokenizer, {3 + 10, 1}, -1, PROOFINFER_DECODE_SPELLED), "<0x0A><s>");
  EXPECT_EQ(encode(tokenizer, "a" + space + "a"), Ids({261, 262, 261}));
}

TEST(TokenizerGguf, text_without_a_piece_becomes_bytes_or_unknown_or_an_error) {
  const std::string space = "\xE2\x96\x81";
  std::vector<GgufPiece> bare = {{"<unk>", 0, kUnknown}, {"<s>", 0, kControl}, {"</s>", 0, kControl}, {space, -1}, {"a", -1}};
  GgufFile file = scored_file(bare);
  EXPECT_EQ(encode(open(file), "ab\xE6\x97\xA5"), Ids({3, 4, 0, 0}));
  bare[0].type = kControl;
  file = scored_file(bare);
  file.add("tokenizer.ggml.unknown_token_id", 4u);
  EXPECT_EQ(encode(open(file), "b"), Ids({3, 4}));
  bare = {{"a"}};
  Ids ids;
  Answer answer = encode_answer(open(scored_file(bare)), "a", 0, &ids);
  EXPECT_EQ(answer.message, "the vocabulary of 1 pieces has no piece \"\xE2\x96\x81\" (one space), with which every text begins");
  file = scored_file(bare);
  file.add("tokenizer.ggml.add_space_prefix", false);
  Tokenizer without = open(file);
  EXPECT_EQ(encode(without, "aa"), Ids({0, 0}));
  answer = encode_answer(without, "a b", 0, &ids);
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
  // The only piece is what the file calls unknown, by default.
  EXPECT_EQ(encode(without, "ab"), Ids({0, 0}));
}

TEST(TokenizerGguf, a_later_byte_of_a_character_without_a_piece_is_an_error) {
  std::vector<GgufPiece> pieces = scored_pieces({{"\xE2\x96\x81", -1}});
  pieces[3 + 0xA9].text = "<none>";
  Ids ids;
  Answer answer = encode_answer(open(scored_file(pieces)), "a\xC3\xA9", 0, &ids);
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT);
  EXPECT_TRUE(answer.says("the byte 0xA9 at offset 2 of the text needs a piece for it")) << answer;
}

TEST(TokenizerGguf, a_piece_that_is_a_byte_stands_for_one_without_a_piece_of_bytes) {
  std::vector<GgufPiece> pieces = {{"<unk>", 0, kUnknown}, {"\xE2\x96\x81", -1}, {"\xC3", -1}, {"\xA9", -1}, {"<0xA8>", 0, kByte}};
  EXPECT_EQ(encode(open(scored_file(pieces)), "\xC3\xA9\xC3\xA8"), Ids({1, 2, 3, 2, 4}));
  pieces[2].type = kControl;
  EXPECT_EQ(encode(open(scored_file(pieces)), "\xC3\xA9"), Ids({1, 0}));
}

// A message's text is cut where it spells a mark of the template: only what begins a part of the template, or follows a special piece, has the dummy
// space.
TEST(TokenizerGguf, text_of_a_chat_that_spells_a_mark_is_cut_and_has_no_space_there) {
  Tokenizer tokenizer = open(scored_file(scored_pieces({{"\xE2\x96\x81", -1}, {"[INST]", 0, kUserDefined}, {"<x>", 0, kUserDefined}})));
  for (const auto &[text, back] : std::map<std::string, std::string>{{"a[INST]b", "a[INST]b"}, {"a[INST]b<x>c", "a[INST]b<x> c"}}) {
    const int32_t role = PROOFINFER_ROLE_USER;
    const size_t bytes = text.size();
    Ids ids(100);
    size_t count = 0;
    Answer answer = answer_of(proofinfer_chat_encode, tokenizer.get(), "llama2", size_t(6), &role, text.data(), &bytes, size_t(1),
                              uint32_t(PROOFINFER_CHAT_ANSWER), ids.data(), ids.size(), &count);
    ASSERT_TRUE(answer.ok()) << answer;
    ids.resize(count);
    EXPECT_EQ(decode(tokenizer, ids), "[INST]  " + back + " [/INST]");
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 260), 1);
  }
}

// ---- Both ----

TEST(TokenizerGguf, pieces_with_equal_hashes_are_told_apart) {
  // Pairs whose 32 bits are equal with the seed 0: of one length, and of two.
  const std::vector<std::string> texts = {"", "ufdzemh", "eqitlba", "immdgr", "utddsyz"};
  proofinfer::Account account{proofinfer::MemoryHooks(), 0};
  proofinfer::Failure failure;
  proofinfer::Pieces pieces;
  ASSERT_EQ(pieces.offsets.allocate(&account, texts.size() + 1, "offsets", &failure), proofinfer::kOk);
  ASSERT_EQ(pieces.bytes.allocate(&account, 100, "bytes", &failure), proofinfer::kOk);
  size_t used = 0;
  for (size_t i = 0; i < texts.size(); i++) {
    pieces.offsets[i] = used;
    std::copy(texts[i].begin(), texts[i].end(), pieces.bytes.data() + used);
    used += texts[i].size();
  }
  pieces.offsets[texts.size()] = used;
  proofinfer::PieceTable table;
  ASSERT_EQ(table.reserve(&account, &pieces, texts.size(), 0, &failure), proofinfer::kOk);
  for (size_t i = 0; i < texts.size(); i++) table.insert(int32_t(i));
  for (size_t i = 0; i < texts.size(); i++) EXPECT_EQ(table.find(pieces.at(i)), int32_t(i)) << texts[i];
}

TEST(TokenizerGguf, what_the_file_says_is_told) {
  RuleVocabulary vocabulary;
  vocabulary.others = {{"<|a|>", 1.5f, kControl}, {"<|im_end|>", 0, kControl}, {"<|b|>", 0, kUserDefined}, {"</s>", 0, kNormal}};
  GgufFile file = rule_file(vocabulary);
  Tokenizer bare = open(file);
  EXPECT_STREQ(proofinfer_tokenizer_get_text(bare.get(), PROOFINFER_TOKENIZER_MODEL), "gpt2");
  EXPECT_STREQ(proofinfer_tokenizer_get_text(bare.get(), PROOFINFER_TOKENIZER_PRE), "gpt-2");
  EXPECT_EQ(proofinfer_tokenizer_get_text(bare.get(), 3), nullptr);
  EXPECT_EQ(proofinfer_tokenizer_get_text(nullptr, 1), nullptr);
  for (int32_t property = PROOFINFER_TOKENIZER_BOS; property <= PROOFINFER_TOKENIZER_PADDING; property++)
    EXPECT_EQ(number(bare, property), -1);
  for (int32_t property = PROOFINFER_TOKENIZER_ADD_BOS; property <= PROOFINFER_TOKENIZER_ADD_SPACE_PREFIX; property++)
    EXPECT_EQ(number(bare, property), 0);
  const char *names[] = {"bos", "eos", "eot", "eom", "unknown", "padding"};
  for (uint32_t i = 0; i < 6; i++) file.add("tokenizer.ggml." + std::string(names[i]) + "_token_id", 100 + i);
  file.add("tokenizer.ggml.add_bos_token", true), file.add("tokenizer.ggml.add_eos_token", true);
  Tokenizer told = open(file);
  for (int32_t i = 0; i < 6; i++) EXPECT_EQ(number(told, PROOFINFER_TOKENIZER_BOS + i), 100 + i);
  EXPECT_EQ(number(told, PROOFINFER_TOKENIZER_ADD_BOS), 1);
  EXPECT_EQ(number(told, PROOFINFER_TOKENIZER_ADD_EOS), 1);
  EXPECT_EQ(proofinfer_tokenizer_bos(told.get()), 100);
  EXPECT_EQ(proofinfer_tokenizer_eos(told.get()), 101);
  EXPECT_EQ(encode(told, "x", PROOFINFER_ENCODE_DEFAULT), Ids({100, 'x', 101}));
  int32_t kind = 0;
  for (const auto &[id, expected] :
       std::map<int32_t, int32_t>{{'x', PROOFINFER_PIECE_NORMAL}, {256, PROOFINFER_PIECE_CONTROL}, {258, PROOFINFER_PIECE_USER_DEFINED}}) {
    EXPECT_TRUE(answer_of(proofinfer_tokenizer_piece_kind, told.get(), id, &kind).ok());
    EXPECT_EQ(kind, expected);
  }
  EXPECT_EQ(answer_of(proofinfer_tokenizer_piece_kind, told.get(), 260, &kind).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(kind, 0);
  int64_t value = 5;
  EXPECT_EQ(answer_of(proofinfer_tokenizer_get_i64, told.get(), 10, &value).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(value, 0);
  float score = 0;
  char buffer[8];
  size_t needed = 0;
  EXPECT_TRUE(answer_of(proofinfer_tokenizer_piece, told.get(), 256, buffer, sizeof(buffer), &needed, &score).ok());
  EXPECT_EQ(score, 1.5f);
}

TEST(TokenizerGguf, a_padded_vocabulary_ends_in_empty_control_pieces) {
  RuleVocabulary vocabulary;
  GgufFile file = rule_file(vocabulary);
  for (bool typed : {true, false}) {
    if (!typed) file.remove_key("tokenizer.ggml.token_type");
    Tokenizer tokenizer = open(file, 300);
    EXPECT_EQ(proofinfer_tokenizer_vocab_size(tokenizer.get()), 300);
    int32_t kind = 0;
    EXPECT_TRUE(answer_of(proofinfer_tokenizer_piece_kind, tokenizer.get(), 299, &kind).ok());
    EXPECT_EQ(kind, PROOFINFER_PIECE_CONTROL);
    EXPECT_EQ(decode(tokenizer, {'a', 299, 'b'}), "ab");
    EXPECT_EQ(encode(tokenizer, "ab", PROOFINFER_ENCODE_SPECIAL), Ids({'a', 'b'}));
  }
  Answer fewer = open_answer(file, 255);
  EXPECT_EQ(fewer.status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(fewer.message, "vocab_size is 255 and the file has 256 pieces; expected 0 or at least as many");
}

TEST(TokenizerGguf, every_kind_of_piece_decodes_as_it_is_documented) {
  Tokenizer tokenizer = open(scored_file(
      scored_pieces({{"\xE2\x96\x81", -1}, {"n"}, {"c", 0, kControl}, {"u", 0, kUserDefined}, {"x", 0, kUnused}, {"?", 0, kUnknown}})));
  EXPECT_EQ(decode(tokenizer, {260, 261, 262, 263, 264, 3 + 'b'}), "nub");
  EXPECT_EQ(decode(tokenizer, {260, 261, 262, 263, 264, 3 + 'b'}, -1, PROOFINFER_DECODE_SPELLED), "ncux?<0x62>");
  EXPECT_EQ(encode(tokenizer, "xn"), Ids({259, 263, 260}));
  EXPECT_EQ(encode(tokenizer, "?"), Ids({259, 3 + '?'}));
}

TEST(TokenizerGguf, a_byte_without_a_piece_is_found_in_every_part_of_a_text) {
  const std::string space = "\xE2\x96\x81";
  std::vector<GgufPiece> pieces = {{"a"}, {space}, {"<u>", 0, kUserDefined}};
  GgufFile file = scored_file(pieces);
  file.add("tokenizer.ggml.unknown_token_id", 0u);
  pieces[0].type = kUnknown;
  for (const std::string text : {"b", "b<u>a", "<u>b"}) {
    Ids ids;
    EXPECT_TRUE(encode_answer(open(file), text, 0, &ids).ok());
  }
  RuleVocabulary vocabulary;
  std::vector<GgufPiece> bytes = vocabulary.pieces();
  bytes['q'].type = kControl;  // text must not become it
  bytes.push_back({"<u>", 0, kUserDefined});
  GgufFile lacking = rule_file(vocabulary);
  for (const char *key : {"tokens", "scores", "token_type"}) lacking.remove_key(std::string("tokenizer.ggml.") + key);
  add_pieces(&lacking, bytes);
  for (const std::string text : {"q", "q<u>a", "a<u>q"}) {
    Ids ids;
    Answer answer = encode_answer(open(lacking), text, 0, &ids);
    EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT);
    EXPECT_TRUE(answer.says("the byte 0x71 at offset " + std::to_string(text.find('q')))) << answer;
  }
}

TEST(TokenizerGguf, of_equal_pieces_the_lowest_id_is_what_text_becomes) {
  RuleVocabulary vocabulary;
  vocabulary.rules = {{"a", "b"}, {"b", "c"}, {"a", "b"}};  // the third repeats the first
  vocabulary.others = {{"<x>", 0, kControl}, {"<x>", 0, kUserDefined}, {"<x>", 0, kUserDefined}};
  Tokenizer tokenizer = open(rule_file(vocabulary));
  EXPECT_EQ(encode(tokenizer, "abc"), Ids({256, 'c'}));
  EXPECT_EQ(encode(tokenizer, "<x>"), Ids({260}));
  EXPECT_EQ(encode(tokenizer, "<x>", PROOFINFER_ENCODE_SPECIAL), Ids({259}));
}

TEST(TokenizerGguf, a_megabyte_of_anything_is_fast_on_a_small_stack) {
  std::vector<std::string> texts = {megabyte_of("a"),     megabyte_of("\n"),  megabyte_of("the quick brown fox, 12 times. "),
                                    megabyte_of("1"),     megabyte_of("ab"),  megabyte_of(" "),
                                    megabyte_of("<|x|>"), megabyte_of("\xFF")};
  RuleVocabulary vocabulary;
  for (const std::string unit : {"a", "\n", " ", "ab"}) {
    std::string part = unit;
    if (unit.size() == 2) vocabulary.rules.push_back({"a", "b"});
    for (int i = 0; i < 6; i++) vocabulary.rules.push_back({part, part}), part += part;
  }
  for (int i = 1; i < 40; i++)
    vocabulary.rules.push_back({std::string(size_t(i), 'a'), "b"}), vocabulary.rules.push_back({"b", std::string(size_t(i), 'a')});
  for (int i = 2; i < 40; i++)
    vocabulary.others.push_back({letters_of(std::string(size_t(i), 'a'))}),
        vocabulary.others.push_back({letters_of("b" + std::string(size_t(i), 'a'))});
  for (int i = 2; i < 40; i++) vocabulary.others.push_back({letters_of(std::string(size_t(i), 'a') + "b")});
  // Special pieces that are each other's beginnings and ends, and one as long as the texts.
  vocabulary.others.push_back({"<|x|>", 0, kUserDefined});
  vocabulary.others.push_back({"|><|x|><|x", 0, kUserDefined});
  for (int i = 1; i < 60; i++) vocabulary.others.push_back({std::string(size_t(i), '\x01') + "!", 0, kUserDefined});
  vocabulary.others.push_back({megabyte_of("the quick brown fox, 12 times. ") + "!", 0, kUserDefined});
  texts.push_back(megabyte_of("\x01"));
  for (const auto &[name, pre] : kPre) {
    vocabulary.pre = name;
    Tokenizer tokenizer = open(rule_file(vocabulary));
    for (const std::string &text : texts) expect_fast(tokenizer, name + " " + testing::PrintToString(text.substr(0, 8)), text);
  }
  const std::string space = "\xE2\x96\x81";
  std::vector<GgufPiece> scored = {{space, -1}, {"\n", -1}, {"a", -2}, {"b", -2}};
  for (int i = 2; i < 40; i++) {
    scored.push_back({std::string(size_t(i), 'a'), float(i % 7)});
    scored.push_back({std::string(size_t(i), 'a') + "b", float(i % 5)});
    scored.push_back({std::string(size_t(i), '\n'), float(i % 3)});
  }
  scored.push_back({"<|x|>", 0, kUserDefined});
  Tokenizer tokenizer = open(scored_file(scored_pieces(scored)));
  for (const std::string &text : texts) expect_fast(tokenizer, "llama " + testing::PrintToString(text.substr(0, 8)), text);
}

TEST(TokenizerGguf, any_allocation_may_fail_and_nothing_leaks) {
  RuleVocabulary vocabulary;
  vocabulary.pre = "llama-bpe";
  vocabulary.rules = {{"a", "b"}};
  vocabulary.others = {{"<x>", 0, kUserDefined}};
  GgufFile by_rules = rule_file(vocabulary);
  by_rules.add("tokenizer.chat_template", "{{ x }}");
  for (const GgufFile &file : {by_rules, scored_file(scored_pieces({{"\xE2\x96\x81"}, {"a"}, {"aa"}, {"<x>", 0, kUserDefined}}))}) {
    CountingAllocator counter;
    Options options = make_options();
    counter.install(options);
    Tokenizer tokenizer;
    ASSERT_TRUE(open_answer(file, 0, &tokenizer, options.get()).ok());
    const uint64_t calls = counter.calls(), held = counter.held_blocks();
    const std::string text = "aa ab <x> <x>";
    encode(tokenizer, text);
    const uint64_t encode_calls = counter.calls() - calls;
    for (uint64_t i = 0; i < encode_calls; i++) {
      counter.fail_call(i);
      Ids ids;
      EXPECT_EQ(encode_answer(tokenizer, text, 0, &ids).status, PROOFINFER_E_MEMORY) << i;
      EXPECT_EQ(counter.held_blocks(), held);
    }
    tokenizer.reset();
    for (uint64_t i = 0; i < calls; i++) {
      counter.fail_call(i);
      EXPECT_EQ(open_answer(file, 0, nullptr, options.get()).status, PROOFINFER_E_MEMORY) << i;
      EXPECT_EQ(counter.held_blocks(), 0u);
    }
  }
}

// ---- Files that lie ----

TEST(TokenizerGguf, every_lie_of_a_vocabulary_is_refused_by_name) {
  for (const VocabularyLie &lie : vocabulary_lies()) {
    GgufFile file = honest_file();
    lie.tell(&file);
    Answer answer = open_answer(file);
    EXPECT_EQ(answer.status, lie.how == Refused::kFormat ? PROOFINFER_E_FORMAT : PROOFINFER_E_UNSUPPORTED) << lie.name << ": " << answer;
    EXPECT_TRUE(answer.says(lie.message)) << lie.name << ": " << answer << "\nexpected: " << lie.message;
  }
  EXPECT_TRUE(open_answer(honest_file()).ok());
}

TEST(TokenizerGguf, files_that_leave_out_what_may_be_absent_open) {
  GgufFile file = scored_file(scored_pieces({{"\xE2\x96\x81"}, {"a"}}));
  file.remove_key("tokenizer.ggml.scores");
  file.remove_key("tokenizer.ggml.token_type");
  Tokenizer tokenizer = open(file);
  EXPECT_EQ(encode(tokenizer, "a", PROOFINFER_ENCODE_DEFAULT), Ids({1, 259, 260}));
  GgufFile tiny;
  tiny.add("tokenizer.ggml.model", "llama");
  tiny.add("tokenizer.ggml.tokens", std::vector<std::string>{"a"});
  Tokenizer one = open(tiny);
  EXPECT_EQ(number(one, PROOFINFER_TOKENIZER_BOS), -1);
  EXPECT_EQ(number(one, PROOFINFER_TOKENIZER_ADD_BOS), 0);
  char piece[1];
  float score = 1.0f;
  EXPECT_TRUE(answer_of(proofinfer_tokenizer_piece, one.get(), 0, piece, sizeof(piece), nullptr, &score).ok());
  EXPECT_EQ(score, 0.0f);
  RuleVocabulary vocabulary;
  GgufFile rules = rule_file(vocabulary);
  rules.remove_key("tokenizer.ggml.pre");
  EXPECT_STREQ(proofinfer_tokenizer_get_text(open(rules).get(), PROOFINFER_TOKENIZER_PRE), "default");
}

TEST(TokenizerGguf, every_truncation_is_refused) {
  RuleVocabulary vocabulary;
  vocabulary.rules = {{"a", "b"}};
  const Bytes bytes = rule_file(vocabulary).bytes();
  for (size_t size = 0; size < bytes.size(); size++) {
    Bytes cut(bytes.begin(), bytes.begin() + std::ptrdiff_t(size));
    cut.shrink_to_fit();
    Answer answer;
    open_tokenizer(cut, 0, nullptr, &answer);
    ASSERT_FALSE(answer.ok()) << size;
  }
}

// ---- A real file ----

TEST(TokenizerGguf, smollm2_gives_the_ids_that_llama_cpp_gave) {
  PROOFINFER_SMOLLM2_OR_SKIP(path);
  Tokenizer tokenizer = open_tokenizer(path, 0);
  EXPECT_EQ(proofinfer_tokenizer_vocab_size(tokenizer.get()), 49152);
  EXPECT_EQ(encode(tokenizer, "Hello world, 12345  foo\n\n\n bar <|im_end|>"),
            Ids({19556, 905, 28, 216, 33, 34, 35, 36, 37, 216, 29856, 16506, 2753, 2067, 108, 306, 79, 486, 108, 46}));
}

}  // namespace proofinfer_test
