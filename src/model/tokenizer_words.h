// The words that byte-level byte pair encoding merges in: pre-tokenizers written out by hand, without regular expressions, in one pass and
// without recursion. Any thread.
#ifndef PROOFINFER_MODEL_TOKENIZER_WORDS_H
#define PROOFINFER_MODEL_TOKENIZER_WORDS_H

#include "format/vocabulary.h"
#include "model/unicode.h"

namespace proofinfer {

// Cuts text[0, bytes) into words one after another, none empty. What the patterns are, in the notation of regular expressions:
//   kGpt2      's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   kSmollm    each \p{N} by itself; kGpt2 between them
//   kDefault   runs of punctuation and [$+<=>^~|] by themselves; kGpt2 in each part; then numbers without their space, [0-9] in threes
//   kLlama3    (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
class Words {
 public:
  Words(PreTokenizer pre, const unsigned char *text, size_t bytes) : pre_(pre), text_(text), end_(bytes) {}

  // The end of the word that begins where the last one ended; false after the last one.
  bool next(size_t *word_end);

 private:
  // The character at `at` of the part that ends at part_end_.
  Char at(size_t at) const { return first_char(text_ + at, part_end_ - at); }
  bool is_byte(size_t at, unsigned char lower, unsigned char upper) const {
    return at < part_end_ && (text_[at] == lower || text_[at] == upper);
  }
  // The first position from `at` on where the class is not `kind`.
  size_t run_end(size_t at, CharClass kind) const;
  size_t symbols_end(size_t at) const;
  size_t contraction_end(size_t at, bool any_case) const;
  size_t spaces_end(size_t at) const;
  void find_part();
  size_t smollm_part_end() const;
  size_t default_part_end() const;
  size_t gpt2_end(size_t at) const;
  size_t default_end(size_t at);
  size_t llama3_end(size_t at) const;

  PreTokenizer pre_;
  const unsigned char *text_;  // [end_]
  size_t end_;
  size_t begin_ = 0;       // of the next word
  size_t part_end_ = 0;    // patterns do not look beyond it
  size_t number_end_ = 0;  // kDefault: of the number that the last word was in
};

}  // namespace proofinfer

#endif
