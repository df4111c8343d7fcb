// Messages: what does not fit is cut between characters, and what would move a terminal's cursor is not passed on.
#include "base/failure.h"

#include <gtest/gtest.h>

#include <string>

namespace proofinfer {

namespace {

std::string said(const std::string &text) {
  Failure failure;
  EXPECT_EQ(fail(&failure, kArgument, "%s", text.c_str()), kArgument);
  EXPECT_EQ(failure.status, kArgument);
  return failure.message;
}

}  // namespace

TEST(Failure, a_message_is_cut_between_characters) {
  const size_t room = Failure::kCapacity - 1;
  for (std::string character : {"\x7E", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    for (size_t before = room - 5; before <= room; before++) {
      const std::string head(before, 'x'), whole = before + character.size() <= room ? head + character : head;
      EXPECT_EQ(said(head + character), whole) << before << " bytes, then one of " << character.size();
      // Longer than the room in any case.
      const std::string six = head + character + character + character + character + character + character;
      const size_t fitting = (room - before) / character.size();
      std::string expected = head;
      for (size_t i = 0; i < fitting; i++) expected += character;
      EXPECT_EQ(said(six), expected) << before << " bytes, then some of " << character.size();
    }
}

TEST(Failure, a_message_that_is_cut_keeps_what_is_no_utf8) {
  const size_t room = Failure::kCapacity - 1;
  // Continuations without a beginning: no incomplete character can be told from them.
  const std::string stray(room + 10, '\x80');
  EXPECT_EQ(said(stray), stray.substr(0, room));
  const std::string after_ascii = std::string(room - 2, 'x') + "\x80\x80\x80\x80";
  EXPECT_EQ(said(after_ascii), after_ascii.substr(0, room));
}

TEST(Failure, a_message_that_fits_is_not_cut) {
  const size_t room = Failure::kCapacity - 1;
  const std::string incomplete = std::string(room - 1, 'x') + "\xE2";
  EXPECT_EQ(said(incomplete), incomplete);
}

TEST(Failure, control_characters_are_shown_as_question_marks) {
  std::string controls, marks;
  for (char c = 1; c < 0x20; c++) controls += c, marks += '?';
  EXPECT_EQ(said(controls + "\x7F \x21\x7E\xC3\xBC"), marks + "? \x21\x7E\xC3\xBC");
}

}  // namespace proofinfer
