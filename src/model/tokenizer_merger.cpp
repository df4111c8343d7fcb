#include "model/tokenizer_merger.h"

namespace proofinfer {

namespace {
constexpr uint32_t kNone = UINT32_MAX;
}

Status Merger::reserve(Account *account, size_t count, Failure *failure) {
  if (Status status = nodes_.allocate(account, count, "the text's tokens while they are merged", failure)) return status;
  const char *pairs = "the text's pairs while they are merged";
  if (Status status = sorted_.allocate(account, 2 * count, pairs, failure)) return status;
  return heap_.allocate(account, 2 * count, pairs, failure);
}

bool Merger::look_up(uint32_t at, uint64_t *entry) {
  Node &node = nodes_[at];
  node.merged = -1;
  if (node.next == kNone) return false;
  const IdTable::Slot *slot = pairs_->find(pair_key(counts_as(node.id), counts_as(nodes_[node.next].id)));
  if (!slot) return false;
  node.merged = slot->id;
  node.order = slot->order;
  *entry = static_cast<uint64_t>(slot->order) << 32 | at;
  return true;
}

void Merger::push(uint64_t entry) {
  size_t at = heap_count_++;
  while (at > 0) {
    size_t parent = (at - 1) / kArity;
    if (heap_[parent] <= entry) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = entry;
}

void Merger::sift_down(size_t at, uint64_t entry) {
  for (;;) {
    size_t child = at * kArity + 1;
    if (child >= heap_count_) break;
    size_t end = heap_count_ - child < kArity ? heap_count_ : child + kArity;
    size_t least = child;
    for (size_t i = child + 1; i < end; i++)
      if (heap_[i] < heap_[least]) least = i;
    if (heap_[least] >= entry) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = entry;
}

uint64_t Merger::pop_heap() {
  uint64_t top = heap_[0];
  heap_count_--;
  if (heap_count_ > 0) sift_down(0, heap_[heap_count_]);
  return top;
}

void Merger::merge_at(uint32_t at) {
  Node &node = nodes_[at];
  Node &gone = nodes_[node.next];
  node.id = node.merged;
  node.next = gone.next;
  gone.merged = -1;
  if (node.next != kNone) nodes_[node.next].previous = at;
  uint64_t entry;
  if (look_up(at, &entry)) push(entry);
  if (node.previous != kNone && look_up(node.previous, &entry)) push(entry);
}

bool Merger::pop(uint64_t *entry) {
  if (sorted_at_ == sorted_end_) {
    if (heap_count_ == 0) return false;
    sort_heap();
  }
  *entry = heap_count_ > 0 && heap_[0] < sorted_[sorted_at_] ? pop_heap() : sorted_[sorted_at_++];
  return true;
}

// Few are inserted one by one, many sorted by their bytes, the lowest first, but for those in which they do not differ.
void Merger::sort_heap() {
  constexpr size_t kFew = 32;
  size_t count = heap_count_;
  sorted_.swap(heap_);
  sorted_at_ = heap_count_ = 0;
  sorted_end_ = count;
  if (count <= kFew) {
    for (size_t i = 1; i < count; i++) {
      uint64_t entry = sorted_[i];
      size_t at = i;
      for (; at > 0 && sorted_[at - 1] > entry; at--) sorted_[at] = sorted_[at - 1];
      sorted_[at] = entry;
    }
    return;
  }
  uint64_t differ = 0;
  for (size_t i = 1; i < count; i++) differ |= sorted_[i] ^ sorted_[0];
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if ((differ >> shift & 255) == 0) continue;
    size_t start[257] = {0};
    for (size_t i = 0; i < count; i++) start[(sorted_[i] >> shift & 255) + 1]++;
    for (size_t b = 1; b < 256; b++) start[b] += start[b - 1];
    for (size_t i = 0; i < count; i++) heap_[start[sorted_[i] >> shift & 255]++] = sorted_[i];
    sorted_.swap(heap_);
  }
}

size_t Merger::run(const int32_t *ids, size_t count, int32_t *out) {
  uint32_t n = static_cast<uint32_t>(count);
  for (uint32_t i = 0; i < n; i++) nodes_[i] = {ids[i], i - 1, i + 1, -1, 0};  // 0 - 1 is kNone
  nodes_[n - 1].next = kNone;
  heap_count_ = 0;
  for (uint32_t i = 0; i < n; i++)
    if (look_up(i, &heap_[heap_count_])) heap_count_++;
  sort_heap();
  uint64_t entry;
  while (pop(&entry))
    if (!is_stale(entry)) merge_at(static_cast<uint32_t>(entry));
  size_t out_count = 0;
  for (uint32_t i = 0; i != kNone; i = nodes_[i].next) out[out_count++] = nodes_[i].id;
  return out_count;
}

}  // namespace proofinfer
