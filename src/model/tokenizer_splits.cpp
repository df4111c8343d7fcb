#include "model/tokenizer_splits.h"

#include <string.h>

namespace proofinfer {

namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Reads the pieces forwards or backwards, so that what holds for prefixes holds for suffixes.
struct Direction {
  const Vocabulary *vocabulary;
  bool backwards;

  unsigned char byte(uint32_t id, size_t k) const {
    size_t n = vocabulary->length(id);
    return vocabulary->piece(id)[backwards ? n - 1 - k : k];
  }
  // The first 8 bytes as a number that sorts like them.
  uint64_t head(uint32_t id) const {
    uint64_t value = 0;
    for (size_t k = 0; k < 8; k++) value = value << 8 | (k < vocabulary->length(id) ? byte(id, k) : 0);
    return value;
  }
  // Whether `a` begins `b`.
  bool begins(uint32_t a, uint32_t b) const {
    size_t n = vocabulary->length(a);
    if (n > vocabulary->length(b)) return false;
    size_t skip = backwards ? vocabulary->length(b) - n : 0;
    return n == 0 || memcmp(vocabulary->piece(a), vocabulary->piece(b) + skip, n) == 0;
  }
};

struct SortItem {
  uint64_t head;
  uint32_t id;
};

// By bytes, then by id.
bool before(const Direction &d, const SortItem &a, const SortItem &b) {
  if (a.head != b.head) return a.head < b.head;
  size_t na = d.vocabulary->length(a.id), nb = d.vocabulary->length(b.id);
  size_t n = na < nb ? na : nb;
  for (size_t k = 0; k < n; k++) {
    unsigned char x = d.byte(a.id, k), y = d.byte(b.id, k);
    if (x != y) return x < y;
  }
  return na != nb ? na < nb : a.id < b.id;
}

// from[begin, middle) and from[middle, end), each sorted, into to[begin, end).
void merge_runs(const Direction &d, const SortItem *from, size_t begin, size_t middle, size_t end, SortItem *to) {
  size_t left = begin, right = middle;
  for (size_t i = begin; i < end; i++)
    to[i] = right == end || (left < middle && before(d, from[left], from[right])) ? from[left++] : from[right++];
}

// A merge sort: its work is bounded by the file's bytes times the logarithm of the count, whatever the pieces are.
void sort(const Direction &d, Buffer<SortItem> *items, Buffer<SortItem> *scratch) {
  size_t count = items->count();
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      size_t middle = count - begin < width ? count : begin + width;
      size_t end = count - middle < width ? count : middle + width;
      merge_runs(d, items->data(), begin, middle, end, scratch->data());
    }
    items->swap(*scratch);
  }
}

// Fills link[p], for the lowest id p of every distinct piece, with the longest other piece that begins it, or kNone, and canonical[id] with
// that lowest id. In sorted order the pieces that begin a piece are the previous one or on its chain of links. links, canonical: [count].
Status link_pieces(const Direction &d, Account *account, uint32_t *link, int32_t *canonical, Failure *failure) {
  size_t count = d.vocabulary->count;
  Buffer<SortItem> items, scratch;
  if (Status status = items.allocate(account, count, "sorting the tokenizer's pieces", failure)) return status;
  if (Status status = scratch.allocate(account, count, "sorting the tokenizer's pieces", failure)) return status;
  for (uint32_t i = 0; i < count; i++) items[i] = {d.head(i), i};
  sort(d, &items, &scratch);
  uint32_t previous = kNone;
  for (size_t i = 0; i < count; i++) {
    uint32_t id = items[i].id, at = previous;
    while (at != kNone && !d.begins(at, id)) at = link[at];
    bool repeats = at != kNone && d.vocabulary->length(at) == d.vocabulary->length(id);
    canonical[id] = static_cast<int32_t>(repeats ? at : id);
    link[id] = at;
    if (!repeats) previous = id;
  }
  return kOk;
}

}  // namespace

Status Splits::create(const Vocabulary *vocabulary, Account *account, int32_t *canonical, Failure *failure) {
  vocabulary_ = vocabulary;
  const char *what = "the tokenizer's piece links";
  if (Status status = prefix_.allocate(account, vocabulary->count, what, failure)) return status;
  if (Status status = suffix_.allocate(account, vocabulary->count, what, failure)) return status;
  if (Status status = by_length_.allocate(account, vocabulary->longest_bytes + 1, what, failure)) return status;
  for (size_t i = 0; i < by_length_.count(); i++) by_length_[i] = kNoLink;
  if (Status status = link_pieces({vocabulary, true}, account, suffix_.data(), canonical, failure)) return status;
  return link_pieces({vocabulary, false}, account, prefix_.data(), canonical, failure);
}

}  // namespace proofinfer
