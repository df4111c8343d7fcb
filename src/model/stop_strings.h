// Stop strings in a stream of bytes: what may be shown while one of them may still complete. One thread at a time.
#ifndef PROOFINFER_MODEL_STOP_STRINGS_H
#define PROOFINFER_MODEL_STOP_STRINGS_H

#include "base/memory.h"
#include "model/tokenizer.h"

namespace proofinfer {

// Knuth, Morris and Pratt's automaton for each string: a byte costs two steps a string, averaged over all, whatever the strings are.
class StopStrings {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  Status create(Account *account, const StringList &strings, Failure *failure);

  // What comes to light with some bytes: the first `held_count` of those held back before, then the first `new_count` of the bytes themselves.
  struct Shown {
    Bytes held;  // those that were held back before; valid as long as the object
    size_t held_count;
    size_t new_count;
    size_t matched;  // the string that is complete; of several the longest; kNone: none
  };
  // Takes bytes up to the first at which a string is complete. What stands before that string is shown, and nothing may be pushed any more.
  // Without one the longest end that begins a string is held back.
  Shown push(Bytes bytes);

 private:
  Bytes string(size_t i) const;
  Bytes held() const { return longest_ == kNone ? Bytes{nullptr, 0} : Bytes{string(longest_).data, states_[longest_]}; }
  void step(size_t i, uint8_t byte);

  Buffer<uint8_t> bytes_;     // [ends_[n - 1]] the strings
  Buffer<size_t> ends_;       // [n]
  Buffer<uint32_t> borders_;  // for each byte: the longest proper border of its string up to there
  Buffer<uint32_t> states_;   // [n] how many bytes of the string the end of the stream is
  size_t longest_ = kNone;    // the string with the largest state; kNone: all are 0
};

}  // namespace proofinfer

#endif
