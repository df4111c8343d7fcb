// Pre-tokenizers: the same words as regular expressions give, for drawn texts, and in linear time.
#include "model/tokenizer_words.h"

#include <gtest/gtest.h>

#include <chrono>
#include <regex>

#include "support/random.h"

namespace proofinfer_test {

namespace {

using proofinfer::CharClass;
using proofinfer::PreTokenizer;
using proofinfer::Words;

std::vector<std::string> words(PreTokenizer pre, const std::string &text) {
  std::vector<std::string> all;
  Words cutter(pre, reinterpret_cast<const unsigned char *>(text.data()), text.size());
  size_t begin = 0;
  for (size_t end; cutter.next(&end); begin = end) {
    EXPECT_GT(end, begin);
    all.push_back(text.substr(begin, end - begin));
  }
  EXPECT_EQ(begin, text.size());
  return all;
}

// One ASCII character for each of the text's, of the same class: \x01 is a number that is no digit, ! punctuation, ` another symbol.
struct Collapsed {
  std::string text;
  std::vector<size_t> at;  // of each character, and the end

  explicit Collapsed(const std::string &original) {
    for (size_t i = 0; i < original.size();) {
      const proofinfer::Char c = proofinfer::first_char(reinterpret_cast<const unsigned char *>(original.data()) + i, original.size() - i);
      at.push_back(i);
      i += c.bytes;
      if (c.code < 0x80)
        text += char(c.code);
      else
        text += c.kind == CharClass::kLetter        ? 'z'
                : c.kind == CharClass::kNumber      ? '\x01'
                : c.kind == CharClass::kSpace       ? '\t'
                : c.kind == CharClass::kPunctuation ? '!'
                                                    : '`';
    }
    at.push_back(original.size());
  }
};

// Cuts every part at the matches of a pattern; what lies between them is a part as well.
std::vector<std::pair<size_t, size_t>> cut(const std::string &text, const std::vector<std::pair<size_t, size_t>> &parts,
                                           const std::regex &regex) {
  std::vector<std::pair<size_t, size_t>> result;
  for (const auto &[begin, end] : parts) {
    size_t done = begin;
    const char *from = text.data() + begin, *to = text.data() + end;
    for (std::cregex_iterator i(from, to, regex), last; i != last; ++i) {
      const size_t at = begin + size_t(i->position()), length = size_t(i->length());
      if (at > done) result.push_back({done, at});
      result.push_back({at, at + length});
      done = at + length;
    }
    if (done < end) result.push_back({done, end});
  }
  return result;
}

// In the order in which they cut.
std::vector<const std::regex *> patterns_of(PreTokenizer pre) {
  static const std::string number = "[0-9\x01]", word = "A-Za-z0-9\x01";
  static const std::regex one_number(number), numbers(number + "+"), threes("[0-9][0-9][0-9]"), punctuation("[!-/:-@\\[-_{-~]+");
  static const std::regex gpt2("'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?" + number + "+| ?[^\\s" + word + "]+|\\s+(?!\\S)|\\s+");
  static const std::regex llama3("'[sStTmMdD]|'[rR][eE]|'[vV][eE]|'[lL][lL]|[^\\r\\n" + word + "]?[A-Za-z]+|" + number + "{1,3}| ?[^\\s" +
                                 word + "]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
  switch (pre) {
    case PreTokenizer::kDefault: return {&punctuation, &gpt2, &numbers, &threes};
    case PreTokenizer::kSmollm: return {&one_number, &gpt2};
    case PreTokenizer::kLlama3: return {&llama3};
    default: return {&gpt2};
  }
}

std::vector<std::string> expected_words(PreTokenizer pre, const std::string &text) {
  const Collapsed collapsed(text);
  std::vector<std::pair<size_t, size_t>> parts = {{0, collapsed.text.size()}};
  if (text.empty()) parts.clear();
  for (const std::regex *pattern : patterns_of(pre)) parts = cut(collapsed.text, parts, *pattern);
  std::vector<std::string> all;
  for (const auto &[begin, end] : parts) all.push_back(text.substr(collapsed.at[begin], collapsed.at[end] - collapsed.at[begin]));
  return all;
}

constexpr PreTokenizer kAll[] = {PreTokenizer::kDefault, PreTokenizer::kGpt2, PreTokenizer::kSmollm, PreTokenizer::kLlama3};

}  // namespace

TEST(TokenizerWords, drawn_texts_give_the_words_of_the_regular_expressions) {
  const std::vector<std::string> alphabet = {"a",
                                             "Z",
                                             "don",
                                             "'",
                                             "'s",
                                             "'S",
                                             "'t",
                                             "'re",
                                             "'vE",
                                             "'ll",
                                             "'d",
                                             "'r",
                                             "'v",
                                             "'l",
                                             "12/",
                                             "1/",
                                             "'x",
                                             " ",
                                             " ",
                                             "  ",
                                             "\n",
                                             "\r",
                                             "\r\n",
                                             "\t",
                                             "\v",
                                             "\xC2\x85",
                                             "\xC2\xA0",
                                             "\xE3\x80\x80",
                                             "1",
                                             "23",
                                             "456",
                                             "7890",
                                             "\xD9\xA3",
                                             "\xC2\xB2",
                                             "\xE2\x85\xA7",
                                             "!",
                                             "...",
                                             "$",
                                             "`",
                                             "^",
                                             "~",
                                             "_",
                                             "-",
                                             "\xE2\x80\x9C",
                                             "\xF0\x9F\xA6\x99",
                                             "\xCC\x81",
                                             "\xE6\x97\xA5",
                                             "\xC3\xA9",
                                             "\xFF",
                                             "\x80",
                                             "\xE2\x82",
                                             std::string(1, '\0')};
  Random random(20260301);
  for (int i = 0; i < 20000; i++) {
    std::string text;
    for (size_t n = random.below(14); n > 0; n--) text += alphabet[size_t(random.below(alphabet.size()))];
    for (PreTokenizer pre : kAll)
      ASSERT_EQ(words(pre, text), expected_words(pre, text)) << int(pre) << ": " << testing::PrintToString(text);
  }
}

TEST(TokenizerWords, contractions_are_words) {
  for (const std::string end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    for (PreTokenizer pre : {PreTokenizer::kGpt2, PreTokenizer::kSmollm, PreTokenizer::kLlama3})
      EXPECT_EQ(words(pre, "x" + end + "y"), (std::vector<std::string>{"x", end, "y"})) << int(pre);
  EXPECT_EQ(words(PreTokenizer::kLlama3, "I'M"), (std::vector<std::string>{"I", "'M"}));
  EXPECT_EQ(words(PreTokenizer::kGpt2, "I'M"), (std::vector<std::string>{"I", "'", "M"}));
}

TEST(TokenizerWords, runs_of_anything_take_linear_time) {
  for (const std::string unit : {"a", " ", "\n", "1", "!", "'", "'s", " 1", "1\xD9\xA3", "\r\n ", "\xFF", " !", "a1", "\xC2\x85"}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    for (PreTokenizer pre : kAll) {
      const auto start = std::chrono::steady_clock::now();
      Words cutter(pre, reinterpret_cast<const unsigned char *>(text.data()), text.size());
      for (size_t end; cutter.next(&end);) continue;
      EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5.0) << int(pre) << " " << unit;
    }
  }
}

TEST(TokenizerWords, classes_are_those_of_unicode) {
  EXPECT_EQ(proofinfer::class_of('a'), CharClass::kLetter);
  EXPECT_EQ(proofinfer::class_of(0x2EBF0), CharClass::kLetter);  // since 15.1
  EXPECT_EQ(proofinfer::class_of(0x0897), CharClass::kOther);    // a mark, since 16
  EXPECT_EQ(proofinfer::class_of(0x00B2), CharClass::kNumber);
  EXPECT_EQ(proofinfer::class_of(0x0085), CharClass::kSpace);
  EXPECT_EQ(proofinfer::class_of(0x200B), CharClass::kOther);
  EXPECT_EQ(proofinfer::class_of(0x201C), CharClass::kPunctuation);
  EXPECT_EQ(proofinfer::class_of(0x1F999), CharClass::kOther);
  EXPECT_EQ(proofinfer::class_of(0x10FFFF), CharClass::kOther);
  size_t letters = 0, numbers = 0, spaces = 0, punctuation = 0;
  uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a of all classes, one after another
  for (uint32_t code = 0; code < 0x110000; code++) {
    const CharClass kind = proofinfer::class_of(code);
    letters += kind == CharClass::kLetter, numbers += kind == CharClass::kNumber;
    spaces += kind == CharClass::kSpace, punctuation += kind == CharClass::kPunctuation;
    digest = (digest ^ static_cast<uint64_t>(kind)) * 0x100000001b3u;
  }
  EXPECT_EQ(letters, 136726u);
  EXPECT_EQ(numbers, 1831u);
  EXPECT_EQ(spaces, 25u);
  EXPECT_EQ(punctuation, 842u);
  EXPECT_EQ(digest, 0xe69a8e985f38aeeu);  // of what reference/make_unicode_table.py --digest finds in unicodedata2 15.1.0
}

TEST(TokenizerWords, a_byte_that_begins_no_character_stands_alone) {
  const std::vector<std::pair<std::string, size_t>> cases = {{"\x80", 1},
                                                             {"\xC1\xBF", 1},
                                                             {"\xC2", 1},
                                                             {"\xC2\x80", 2},
                                                             {"\xC2z", 1},
                                                             {"\xE0\x9F\xBF", 1},
                                                             {"\xE0\xA0\x80", 3},
                                                             {"\xE0\xA0z", 1},
                                                             {"\xED\xA0\x80", 1},
                                                             {"\xF0\x8F\xBF\xBF", 1},
                                                             {"\xF0\x90\x80\x80", 4},
                                                             {"\xF4\x90\x80\x80", 1},
                                                             {"\xF4\x8F\xBF\xBF", 4},
                                                             {"\xF5\x80\x80\x80", 1},
                                                             {"\xF0\x90\x80", 1}};
  for (const auto &[bytes, length] : cases) {
    const proofinfer::Char c = proofinfer::first_char(reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size());
    EXPECT_EQ(c.bytes, length) << testing::PrintToString(bytes);
    EXPECT_EQ(c.code == 0xFFFDu, length == 1);
  }
}

}  // namespace proofinfer_test
