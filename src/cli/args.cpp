#include "args.h"

#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>

#include "problem.h"

namespace proofinfer::cli {
namespace {

// A letter flag is written "-n 5" or "-n5", a long one "--steps 5" or "--steps=5". "-" alone and "-5" are no flags.
bool looks_like_flag(const std::string &word) { return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9'); }

const Flag *find_flag(const std::vector<Flag> &flags, const std::string &spelling) {
  for (const Flag &flag : flags) {
    if (spelling.size() == 2 && flag.letter && spelling[1] == flag.letter) return &flag;
    if (spelling.compare(0, 2, "--") == 0 && spelling.compare(2, std::string::npos, flag.name) == 0) return &flag;
  }
  return nullptr;
}

std::string range_text(int64_t lowest, int64_t highest) {
  if (highest == INT64_MAX) return std::to_string(lowest) + " up";
  return std::to_string(lowest) + " to " + std::to_string(highest);
}

}  // namespace

Arguments::Arguments(const std::vector<Flag> &flags, const std::vector<std::string> &words) {
  bool flags_ended = false;
  for (size_t at = 0; at < words.size();) {
    if (!flags_ended && words[at] == "--") {
      flags_ended = true;
      at++;
    } else if (!flags_ended && looks_like_flag(words[at])) {
      at = read_flag(flags, words, at);
    } else {
      positionals_.push_back(words[at++]);
    }
  }
}

size_t Arguments::read_flag(const std::vector<Flag> &flags, const std::vector<std::string> &words, size_t at) {
  const std::string &word = words[at];
  const bool is_long = word[1] == '-';
  const size_t equals = is_long ? word.find('=') : std::string::npos;
  const std::string spelling = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const Flag *flag = find_flag(flags, spelling);
  if (!flag) throw UsageProblem("unknown flag '" + spelling + "'");
  Given given{spelling, ""};
  if (flag->value) {
    if (is_long && equals != std::string::npos) {
      given.value = word.substr(equals + 1);
    } else if (!is_long && word.size() > 2) {
      given.value = word.substr(2);
    } else {
      if (++at >= words.size()) throw UsageProblem("flag '" + spelling + "' needs a value: " + spelling + " " + flag->value);
      given.value = words[at];
    }
  } else if (is_long ? equals != std::string::npos : word.size() > 2) {
    throw UsageProblem("flag '" + spelling + "' takes no value, and '" + word + "' gives it one");
  }
  values_[flag->name] = given;
  return at + 1;
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found == values_.end()) return std::nullopt;
  return found->second.value;
}

std::string Arguments::spelling(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? "--" + std::string(name) : found->second.spelling;
}

int64_t Arguments::integer(std::string_view name, int64_t otherwise, int64_t lowest, int64_t highest) const {
  const std::optional<std::string> given = text(name);
  if (!given) return otherwise;
  int64_t value = 0;
  const char *end = given->data() + given->size();
  const std::from_chars_result result = std::from_chars(given->data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || value < lowest || value > highest)
    throw UsageProblem(spelling(name) + " needs a whole number from " + range_text(lowest, highest) + ", not '" + *given + "'");
  return value;
}

uint64_t Arguments::unsigned_integer(std::string_view name, uint64_t otherwise) const {
  const std::optional<std::string> given = text(name);
  if (!given) return otherwise;
  uint64_t value = 0;
  const char *end = given->data() + given->size();
  const std::from_chars_result result = std::from_chars(given->data(), end, value);
  if (result.ec != std::errc() || result.ptr != end)
    throw UsageProblem(spelling(name) + " needs a whole number from 0 to 18446744073709551615, not '" + *given + "'");
  return value;
}

double Arguments::real(std::string_view name, double otherwise, double lowest, double highest) const {
  const std::optional<std::string> given = text(name);
  if (!given) return otherwise;
  char *end = nullptr;
  const double value = strtod(given->c_str(), &end);
  const bool whole = !given->empty() && end == given->c_str() + given->size();
  if (whole && value >= lowest && value <= highest && isfinite(value)) return value;
  std::string range = "from 0 up";
  if (highest == 1) range = "from 0 to 1";
  throw UsageProblem(spelling(name) + " needs a number " + range + ", not '" + *given + "'");
}

void Arguments::expect_at_most(size_t most) const {
  if (positionals_.size() > most) throw UsageProblem("unexpected argument '" + positionals_[most] + "'");
}

std::vector<int32_t> parse_tokens(std::string_view what, std::string_view text) {
  std::vector<int32_t> tokens;
  if (text == "none") return tokens;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(", \t\r\n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    int32_t token = 0;
    const std::from_chars_result result = std::from_chars(word.data(), word.data() + word.size(), token);
    if (result.ec != std::errc() || result.ptr != word.data() + word.size() || token < 0)
      throw UsageProblem(std::string(what) + ": '" + std::string(word) + "' is no token id");
    tokens.push_back(token);
  }
  return tokens;
}

}  // namespace proofinfer::cli
