#include "model/tokenizer_words.h"

namespace proofinfer {

namespace {

bool is_line_end(uint32_t code) { return code == '\r' || code == '\n'; }

// What is neither white space nor letter nor number: the patterns' [^\s\p{L}\p{N}].
bool is_symbol(CharClass kind) { return kind == CharClass::kOther || kind == CharClass::kPunctuation; }

// What kDefault takes for punctuation: \p{P} and [$+<=>^~|], which are symbols of ASCII.
bool is_default_punctuation(const Char &c) {
  if (c.kind == CharClass::kPunctuation) return true;
  return c.code == '$' || c.code == '+' || (c.code >= '<' && c.code <= '>') || c.code == '^' || c.code == '~' || c.code == '|';
}

bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

}  // namespace

size_t Words::run_end(size_t position, CharClass kind) const {
  for (Char c = at(position); c.kind == kind; c = at(position)) position += c.bytes;
  return position;
}

size_t Words::symbols_end(size_t position) const {
  for (Char c = at(position); is_symbol(c.kind); c = at(position)) position += c.bytes;
  return position;
}

// The end of 's, 't, 're, 've, 'm, 'll or 'd at `position`; `position` if there is none.
size_t Words::contraction_end(size_t position, bool any_case) const {
  if (!is_byte(position, '\'', '\'')) return position;
  auto is = [&](size_t i, char lower) {
    unsigned char l = static_cast<unsigned char>(lower);
    return is_byte(position + i, l, any_case ? static_cast<unsigned char>(l - 32) : l);
  };
  if (is(1, 's') || is(1, 't') || is(1, 'm') || is(1, 'd')) return position + 2;
  if (((is(1, 'r') || is(1, 'v')) && is(2, 'e')) || (is(1, 'l') && is(2, 'l'))) return position + 3;
  return position;
}

// \s+(?!\S)|\s+: white space, but for its last character where something follows that is none.
size_t Words::spaces_end(size_t position) const {
  size_t last = position;
  for (Char c = at(position); c.kind == CharClass::kSpace; c = at(position)) last = position, position += c.bytes;
  return position == part_end_ ? position : last;
}

size_t Words::gpt2_end(size_t position) const {
  size_t contraction = contraction_end(position, false);
  if (contraction > position) return contraction;
  Char first = at(position);
  size_t body = first.code == ' ' ? position + 1 : position;
  Char c = at(body);
  if (c.kind == CharClass::kLetter || c.kind == CharClass::kNumber) return run_end(body, c.kind);
  if (is_symbol(c.kind)) return symbols_end(body);
  size_t spaces = spaces_end(position);
  return spaces > position ? spaces : position + first.bytes;
}

size_t Words::llama3_end(size_t position) const {
  size_t contraction = contraction_end(position, true);
  if (contraction > position) return contraction;
  Char first = at(position);
  if (first.kind == CharClass::kLetter) return run_end(position, CharClass::kLetter);
  Char second = at(position + first.bytes);
  if (first.kind == CharClass::kNumber) {
    size_t end = position + first.bytes;
    if (second.kind != CharClass::kNumber) return end;
    end += second.bytes;
    Char third = at(end);
    return third.kind == CharClass::kNumber ? end + third.bytes : end;
  }
  if (!is_line_end(first.code) && second.kind == CharClass::kLetter) return run_end(position + first.bytes, CharClass::kLetter);
  size_t body = first.code == ' ' ? position + 1 : position;
  if (is_symbol(at(body).kind)) {
    size_t end = symbols_end(body);
    while (is_byte(end, '\r', '\n')) end++;
    return end;
  }
  size_t after_line_end = position, end = position;
  for (Char c = first; c.kind == CharClass::kSpace; c = at(end)) {
    end += c.bytes;
    if (is_line_end(c.code)) after_line_end = end;
  }
  if (after_line_end > position) return after_line_end;
  size_t spaces = spaces_end(position);
  return spaces > position ? spaces : position + first.bytes;
}

// kGpt2's word, cut again: numbers lose the space before them, and every leftmost three ASCII digits in a row stand by themselves. The end of
// a number is remembered: it is looked for once, not for each of its threes.
size_t Words::default_end(size_t position) {
  size_t end = position < number_end_ ? number_end_ : gpt2_end(position);
  Char first = at(position);
  bool spaced = first.code == ' ' && at(position + 1).kind == CharClass::kNumber;
  if (!spaced && first.kind != CharClass::kNumber) return end;
  number_end_ = end;
  if (spaced) return position + 1;
  for (size_t i = position; i + 3 <= end; i++)
    if (is_digit(text_[i]) && is_digit(text_[i + 1]) && is_digit(text_[i + 2])) return i > position ? i : i + 3;
  return end;
}

size_t Words::smollm_part_end() const {
  Char c = first_char(text_ + begin_, end_ - begin_);
  if (c.kind == CharClass::kNumber) return begin_ + c.bytes;
  size_t end = begin_;
  for (; c.kind != CharClass::kNumber && c.kind != CharClass::kEnd; c = first_char(text_ + end, end_ - end)) end += c.bytes;
  return end;
}

size_t Words::default_part_end() const {
  Char c = first_char(text_ + begin_, end_ - begin_);
  const bool punctuation = is_default_punctuation(c);
  size_t end = begin_;
  for (; c.kind != CharClass::kEnd && is_default_punctuation(c) == punctuation; c = first_char(text_ + end, end_ - end)) end += c.bytes;
  return end;
}

void Words::find_part() {
  if (begin_ < part_end_) return;
  if (pre_ == PreTokenizer::kSmollm)
    part_end_ = smollm_part_end();
  else if (pre_ == PreTokenizer::kDefault)
    part_end_ = default_part_end();
  else
    part_end_ = end_;
}

bool Words::next(size_t *word_end) {
  if (begin_ == end_) return false;
  find_part();
  if (pre_ == PreTokenizer::kLlama3)
    begin_ = llama3_end(begin_);
  else if (pre_ == PreTokenizer::kDefault)
    begin_ = default_end(begin_);
  else
    begin_ = gpt2_end(begin_);
  *word_end = begin_;
  return true;
}

}  // namespace proofinfer
