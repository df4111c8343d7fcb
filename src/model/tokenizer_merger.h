// Byte pair encoding: merges the tokens of one segment of text. One thread at a time.
#ifndef PROOFINFER_MODEL_TOKENIZER_MERGER_H
#define PROOFINFER_MODEL_TOKENIZER_MERGER_H

#include "model/tokenizer_table.h"

namespace proofinfer {

// Again and again the pair of the lowest order (the highest score, the strongest rule), the leftmost of equal ones.
//
// The tokens are a doubly linked list over their first positions. A queue holds (order, position of the left token) of every mergeable pair,
// smallest first, which is that choice. A pair that has changed since leaves its entry behind: it is recognised because the token at its
// position has no pair now, or one of another order. (An entry left behind that fits the present pair of its position orders as that pair
// does, so it may stand for it.)
//
// The queue is a sorted array and a heap for what is added while the array is used up; then the heap is sorted and becomes the array. Rules
// learnt from texts come in generations, so that in a long segment nearly all entries are sorted, not sifted.
class Merger {
 public:
  // pairs: pair_key of two ids -> what they merge to. canonical: [ids] what an id counts as in `pairs`, or nullptr: itself.
  Merger(const IdTable *pairs, const int32_t *canonical) : pairs_(pairs), canonical_(canonical) {}

  // Room for segments of `count` tokens, in at most 52 bytes each.
  Status reserve(Account *account, size_t count, Failure *failure);
  size_t room() const { return nodes_.count(); }

  // ids: [count], 1 <= count <= room(), to out: [the result], which may be ids or before it.
  size_t run(const int32_t *ids, size_t count, int32_t *out);

 private:
  static constexpr size_t kArity = 4;

  struct Node {
    int32_t id;
    uint32_t previous, next;  // kNone at the ends
    int32_t merged;           // what this and the next token merge to; -1: nothing, or this token was merged into another
    uint32_t order;           // of that merge
  };

  int32_t counts_as(int32_t id) const { return canonical_ ? canonical_[static_cast<size_t>(id)] : id; }
  // Looks the pair at `at` up again. Its heap entry, if it is one.
  bool look_up(uint32_t at, uint64_t *entry);
  bool is_stale(uint64_t entry) const {
    const Node &node = nodes_[static_cast<uint32_t>(entry)];
    return node.merged < 0 || node.order != entry >> 32;
  }
  void merge_at(uint32_t at);
  void push(uint64_t entry);
  // The smallest entry, taken out; false: there is none.
  bool pop(uint64_t *entry);
  uint64_t pop_heap();
  void sift_down(size_t at, uint64_t entry);
  // The heap's entries, in order, become the array's.
  void sort_heap();

  const IdTable *pairs_;
  const int32_t *canonical_;
  Buffer<Node> nodes_;
  // One entry a pair at first, and each merge takes one out and puts at most two in: twice as many as tokens are enough.
  Buffer<uint64_t> sorted_, heap_;
  size_t sorted_at_ = 0, sorted_end_ = 0;  // what is left of sorted_
  size_t heap_count_ = 0;
};

}  // namespace proofinfer

#endif
