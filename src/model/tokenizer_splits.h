// Which pieces are two other pieces side by side. One thread at a time.
#ifndef PROOFINFER_MODEL_TOKENIZER_SPLITS_H
#define PROOFINFER_MODEL_TOKENIZER_SPLITS_H

#include "format/vocabulary.h"

namespace proofinfer {

// Every way to write a piece as two pieces side by side.
class Splits {
 public:
  // canonical: [vocabulary->count], filled with the lowest id that has the same bytes.
  Status create(const Vocabulary *vocabulary, Account *account, int32_t *canonical, Failure *failure);

  // use(left, right) for all of them. A piece counts as its own beginning and end: its other half is then the empty piece, if there is one.
  // The chains of links are no longer than the piece, so that all pieces together cost no more than the file has bytes.
  template <typename Use>
  void for_each(uint32_t piece, Use use) {
    size_t length = vocabulary_->length(piece);
    for (uint32_t right = piece; right != kNoLink; right = suffix_[right]) by_length_[vocabulary_->length(right)] = right;
    for (uint32_t left = piece; left != kNoLink; left = prefix_[left]) {
      uint32_t right = by_length_[length - vocabulary_->length(left)];
      if (right != kNoLink) use(static_cast<int32_t>(left), static_cast<int32_t>(right));
    }
    for (uint32_t right = piece; right != kNoLink; right = suffix_[right]) by_length_[vocabulary_->length(right)] = kNoLink;
  }

 private:
  static constexpr uint32_t kNoLink = UINT32_MAX;

  const Vocabulary *vocabulary_ = nullptr;
  Buffer<uint32_t> prefix_, suffix_;  // [count] the longest other piece that begins, ends it
  Buffer<uint32_t> by_length_;        // [longest_bytes + 1] kNoLink between calls
};

}  // namespace proofinfer

#endif
