// Stop strings: against a search of the whole text after every byte, over drawn strings, texts and cuts; linear; nothing leaks.
#include "model/stop_strings.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/random_sampling.h"

namespace proofinfer_test {

namespace {

using proofinfer::Bytes;
using proofinfer::StopStrings;
using Strings = std::vector<std::string>;

struct Rig {
  proofinfer::Account account{proofinfer::MemoryHooks(), 0};
  StopStrings strings;

  explicit Rig(const Strings &list) {
    std::string bytes;
    std::vector<size_t> ends;
    for (const std::string &s : list) ends.push_back((bytes += s).size());
    proofinfer::Failure failure;
    EXPECT_EQ(strings.create(&account, {reinterpret_cast<const uint8_t *>(bytes.data()), ends.data(), ends.size()}, &failure),
              proofinfer::kOk);
  }
  static std::string text(Bytes bytes, size_t count) { return std::string(reinterpret_cast<const char *>(bytes.data), count); }
  // What a push shows; matched: the string, or -1.
  std::string push(const std::string &bytes, int *matched) {
    StopStrings::Shown shown = strings.push({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
    *matched = shown.matched == StopStrings::kNone ? -1 : int(shown.matched);
    EXPECT_LE(shown.held_count, shown.held.count);
    EXPECT_LE(shown.new_count, bytes.size());
    return text(shown.held, shown.held_count) + bytes.substr(0, shown.new_count);
  }
  std::string held() {
    StopStrings::Shown shown = strings.push({nullptr, 0});
    EXPECT_EQ(shown.held_count, 0u);
    return text(shown.held, shown.held.count);
  }
};

bool ends_with(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The definition: after each byte, is a string complete, and if not, how much of the end may still become one.
struct Plain {
  int matched = -1;
  std::string shown;  // all that may have been shown after these bytes
};
Plain plain(const Strings &strings, const std::string &text) {
  for (size_t n = 1; n <= text.size(); n++) {
    std::string seen = text.substr(0, n);
    int found = -1;
    for (size_t i = 0; i < strings.size(); i++)
      if (ends_with(seen, strings[i]) && (found < 0 || strings[i].size() > strings[size_t(found)].size())) found = int(i);
    if (found >= 0) return {found, seen.substr(0, n - strings[size_t(found)].size())};
  }
  size_t hidden = 0;
  for (const std::string &s : strings)
    for (size_t k = 1; k < s.size(); k++)
      if (ends_with(text, s.substr(0, k))) hidden = std::max(hidden, k);
  return {-1, text.substr(0, text.size() - hidden)};
}

std::string random_text(Random *random, size_t n, const char *letters, uint32_t letter_count) {
  std::string text;
  for (size_t i = 0; i < n; i++) text += letters[random->below(letter_count)];
  return text;
}

}  // namespace

TEST(StopStrings, equal_a_search_of_the_whole_text_for_any_cut) {
  Random random{41};
  const char letters[] = "ab\x00\xC3\xA9";
  size_t matches = 0;
  for (int round = 0; round < 20000; round++) {
    uint32_t letter_count = 1 + random.below(5);
    Strings strings;
    for (uint32_t i = random.below(5); i > 0; i--) strings.push_back(random_text(&random, 1 + random.below(6), letters, letter_count));
    std::string text = random_text(&random, random.below(40), letters, letter_count), shown;
    Rig rig(strings);
    int matched = -1;
    size_t at = 0;
    while (at < text.size() && matched < 0) {
      size_t count = std::min<size_t>(random.below(5), text.size() - at);
      shown += rig.push(text.substr(at, count), &matched);
      at += count;
      Plain expected = plain(strings, text.substr(0, at));
      ASSERT_EQ(matched, expected.matched) << testing::PrintToString(strings) << " in " << testing::PrintToString(text);
      ASSERT_EQ(shown, expected.shown) << testing::PrintToString(strings) << " in " << testing::PrintToString(text);
    }
    matches += matched >= 0;
    if (matched < 0) {
      ASSERT_EQ(shown + rig.held(), text);
    }
  }
  EXPECT_GT(matches, 2000u);
  EXPECT_LT(matches, 18000u);
}

TEST(StopStrings, the_first_that_is_complete_wins_and_of_those_the_longest) {
  int matched;
  EXPECT_EQ(Rig({"bc", "abc"}).push("xabc", &matched), "x");
  EXPECT_EQ(matched, 1);
  EXPECT_EQ(Rig({"abcd", "bc"}).push("xabcd", &matched), "xa") << "complete one byte earlier";
  EXPECT_EQ(matched, 1);
  EXPECT_EQ(Rig({"a", "a"}).push("xa", &matched), "x");
  EXPECT_EQ(matched, 0);
}

TEST(StopStrings, what_is_held_goes_on_in_another_string) {
  Rig rig({"aab", "ba"});
  int matched;
  EXPECT_EQ(rig.push("xaa", &matched), "x");
  EXPECT_EQ(rig.push("a", &matched), "a") << "aa of aaa may still begin aab";
  EXPECT_EQ(rig.push("c", &matched), "aac");
  EXPECT_EQ(rig.push("b", &matched), "");
  EXPECT_EQ(rig.push("a", &matched), "");
  EXPECT_EQ(matched, 1);
}

TEST(StopStrings, the_worst_strings_take_linear_time) {
  // Each byte may fall back through all borders, but only as often as others went forward.
  std::string almost(1023, 'a');
  Rig rig(Strings(64, almost + "b"));
  std::string text;
  for (int i = 0; i < 100; i++) text += almost + "c";
  auto start = std::chrono::steady_clock::now();
  int matched;
  EXPECT_EQ(rig.push(text, &matched).size(), text.size());
  EXPECT_EQ(matched, -1);
  // 102,400 bytes and 64 strings: some 50 ms; a quadratic search takes 1,000 times as long.
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5.0);
}

}  // namespace proofinfer_test
