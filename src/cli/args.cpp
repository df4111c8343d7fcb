#include "args.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <limits>

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

// As "%g" prints it.
std::string plain_text(double value) {
  char text[32];
  snprintf(text, sizeof(text), "%g", value);
  return text;
}

// The next word of a list, taken off its front; empty at its end.
std::string_view take_word(std::string_view *list) {
  constexpr std::string_view kBetween = ", \t\r\n";
  list->remove_prefix(std::min(list->find_first_not_of(kBetween), list->size()));
  const std::string_view word = list->substr(0, list->find_first_of(kBetween));
  list->remove_prefix(word.size());
  return word;
}

// A token id, and nothing else.
std::optional<int32_t> token_id(std::string_view word) {
  int32_t token = 0;
  const std::from_chars_result result = std::from_chars(word.data(), word.data() + word.size(), token);
  if (result.ec != std::errc() || result.ptr != word.data() + word.size() || token < 0) return std::nullopt;
  return token;
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
  std::string value;
  if (flag->value) {
    if (is_long && equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (!is_long && word.size() > 2) {
      value = word.substr(2);
    } else {
      if (++at >= words.size()) throw UsageProblem("flag '" + spelling + "' needs a value: " + spelling + " " + flag->value);
      value = words[at];
    }
  } else if (is_long ? equals != std::string::npos : word.size() > 2) {
    throw UsageProblem("flag '" + spelling + "' takes no value, and '" + word + "' gives it one");
  }
  Given &given = values_[flag->name];
  given.spelling = spelling;
  given.values.push_back(value);
  return at + 1;
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found == values_.end()) return std::nullopt;
  return found->second.values.back();
}

std::vector<std::string> Arguments::texts(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? std::vector<std::string>() : found->second.values;
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
  const bool unbounded = highest >= std::numeric_limits<double>::max();
  throw UsageProblem(spelling(name) + " needs a number from " + plain_text(lowest) + (unbounded ? " up" : " to " + plain_text(highest)) +
                     ", not '" + *given + "'");
}

void Arguments::expect_at_most(size_t most) const {
  if (positionals_.size() > most) throw UsageProblem("unexpected argument '" + positionals_[most] + "'");
}

std::vector<int32_t> parse_tokens(std::string_view what, std::string_view text) {
  std::vector<int32_t> tokens;
  if (text == "none") return tokens;
  for (std::string_view word = take_word(&text); !word.empty(); word = take_word(&text)) {
    const std::optional<int32_t> token = token_id(word);
    if (!token) throw UsageProblem(std::string(what) + ": '" + std::string(word) + "' is no token id");
    tokens.push_back(*token);
  }
  return tokens;
}

std::vector<Bias> parse_biases(std::string_view what, std::string_view text) {
  std::vector<Bias> biases;
  for (std::string_view word = take_word(&text); !word.empty(); word = take_word(&text)) {
    const size_t colon = std::min(word.find(':'), word.size());
    const std::optional<int32_t> token = token_id(word.substr(0, colon));
    const std::string number(word.substr(std::min(colon + 1, word.size())));
    char *end = nullptr;
    const float bias = strtof(number.c_str(), &end);
    if (!token || number.empty() || *end || !isfinite(bias))
      throw UsageProblem(std::string(what) + ": '" + std::string(word) + "' is no ID:NUMBER");
    biases.push_back({*token, bias});
  }
  return biases;
}

}  // namespace proofinfer::cli
