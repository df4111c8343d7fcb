// Where pieces that are no product of merging stand in a text. Immutable once built: any thread.
#ifndef PROOFINFER_MODEL_TOKENIZER_SPECIALS_H
#define PROOFINFER_MODEL_TOKENIZER_SPECIALS_H

#include "format/vocabulary.h"
#include "model/tokenizer_table.h"

namespace proofinfer {

// Finds control, user-defined and unknown pieces, or the user-defined ones alone: at each place the longest that begins there, from the left.
//
// An automaton (Aho-Corasick) over the pieces read backwards runs from the end of the text to its beginning: at every position the longest
// piece read so far that ends there is the longest that begins there. So the work is linear in the text, whatever the pieces are.
class Specials {
 public:
  struct Hit {
    uint32_t at;
    int32_t id;
  };

  Status create(const Vocabulary &vocabulary, Account *account, uint64_t seed, Failure *failure);
  // Whether there is anything that `all` pieces, or the user-defined ones, could find.
  bool any(bool all) const { return all ? has_any_ : has_user_defined_; }

  // The pieces in a text that do not overlap, first one first. vocabulary: the one of create.
  Status find(const Vocabulary &vocabulary, Bytes text, bool all, Account *account, Buffer<Hit> *hits, size_t *count,
              Failure *failure) const;

 private:
  static bool is_special(PieceKind kind) {
    return kind == PieceKind::kControl || kind == PieceKind::kUserDefined || kind == PieceKind::kUnknown;
  }
  static uint64_t edge(uint32_t state, unsigned char byte) { return static_cast<uint64_t>(state) << 8 | byte; }

  Status reserve(const Vocabulary &vocabulary, Account *account, uint64_t seed, Failure *failure);
  void add(Bytes piece, int32_t id, bool user_defined, uint32_t *parents, unsigned char *bytes);
  Status link(Account *account, const uint32_t *parents, const unsigned char *bytes, Failure *failure);
  uint32_t step(uint32_t state, unsigned char byte) const;
  // What begins at each position, from the last to the first: use(position, id).
  template <typename Use>
  void scan(Bytes text, bool all, Use use) const;

  bool has_any_ = false, has_user_defined_ = false;
  uint32_t state_count_ = 0;
  IdTable edges_;                 // state << 8 | byte -> state
  uint32_t first_[256];           // the edges of state 0; 0: none
  Buffer<uint32_t> fallbacks_;    // [states] the longest other state that its text ends with
  Buffer<int32_t> longest_;       // [states] the longest piece that its text ends with; -1: none
  Buffer<int32_t> user_defined_;  // [states] the longest user-defined one
};

}  // namespace proofinfer

#endif
