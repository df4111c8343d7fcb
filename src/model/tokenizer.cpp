#include "model/tokenizer.h"

#include <string.h>

namespace proofinfer {

namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kEmptyPiece = UINT32_MAX;
constexpr size_t kMaxUnitBytes = 4;
constexpr float kLowestScore = -1e10f;  // a piece must score higher to come from a merge

uint64_t pair_key(int32_t left, int32_t right) { return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right); }

// bytes: [count], 1 to 4 of them.
uint64_t unit_key(const unsigned char *bytes, size_t count) {
  uint64_t key = static_cast<uint64_t>(count) << 32;
  for (size_t i = 0; i < count; i++) key |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return key;
}

// A number that is smaller the higher the score, equal for equal scores (the two zeros are equal), by bits alone.
uint32_t order_of(float score) {
  uint32_t bits;
  memcpy(&bits, &score, sizeof(bits));
  if (bits == 0x80000000u) bits = 0;
  return bits & 0x80000000u ? bits : ~bits & 0x7FFFFFFFu;
}

uint64_t digest(const Vocabulary &v) {
  uint64_t h = v.count;
  for (size_t i = 0; i < v.count; i++) {
    h = (h ^ v.length(i)) * 0x9E3779B97F4A7C15u;
    for (size_t k = 0; k < v.length(i); k++) h = (h ^ v.piece(i)[k]) * 0x100000001B3u;
    h ^= h >> 29;
  }
  return h;
}

// ---- Which pieces begin and end which pieces ----

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

// Every way to write a piece as two pieces side by side.
class Splits {
 public:
  Status create(const Vocabulary *vocabulary, Account *account, int32_t *canonical, Failure *failure) {
    vocabulary_ = vocabulary;
    const char *what = "the tokenizer's piece links";
    if (Status status = prefix_.allocate(account, vocabulary->count, what, failure)) return status;
    if (Status status = suffix_.allocate(account, vocabulary->count, what, failure)) return status;
    if (Status status = by_length_.allocate(account, vocabulary->longest_bytes + 1, what, failure)) return status;
    for (size_t i = 0; i < by_length_.count(); i++) by_length_[i] = kNone;
    if (Status status = link_pieces({vocabulary, true}, account, suffix_.data(), canonical, failure)) return status;
    return link_pieces({vocabulary, false}, account, prefix_.data(), canonical, failure);
  }

  // use(left, right) for all of them. A piece counts as its own beginning and end: its other half is then the empty piece, if there is one.
  // The chains of links are no longer than the piece, so that all pieces together cost no more than the file has bytes.
  template <typename Use>
  void for_each(uint32_t piece, Use use) {
    size_t length = vocabulary_->length(piece);
    for (uint32_t right = piece; right != kNone; right = suffix_[right]) by_length_[vocabulary_->length(right)] = right;
    for (uint32_t left = piece; left != kNone; left = prefix_[left]) {
      uint32_t right = by_length_[length - vocabulary_->length(left)];
      if (right != kNone) use(static_cast<int32_t>(left), static_cast<int32_t>(right));
    }
    for (uint32_t right = piece; right != kNone; right = suffix_[right]) by_length_[vocabulary_->length(right)] = kNone;
  }

 private:
  const Vocabulary *vocabulary_ = nullptr;
  Buffer<uint32_t> prefix_, suffix_;  // [count] the longest other piece that begins, ends it
  Buffer<uint32_t> by_length_;        // [longest_bytes + 1] kNone between calls
};

}  // namespace

// ---- IdTable ----

Status IdTable::reserve(Account *account, size_t count, uint64_t seed, const char *what, Failure *failure) {
  size_t slots = 2;
  while (slots - slots / 3 <= count) {
    if (slots > SIZE_MAX / 4) return fail(failure, kMemory, "%s: %zu entries are more than this machine can address", what, count);
    slots *= 2;
  }
  if (Status status = slots_.allocate(account, slots, what, failure)) return status;
  for (size_t i = 0; i < slots; i++) slots_[i] = {0, -1, 0};
  mask_ = slots - 1;
  seed_ = seed;
  return kOk;
}

void IdTable::insert(uint64_t key, int32_t id, uint32_t order) {
  size_t i = start(key);
  while (slots_[i].id >= 0) {
    if (slots_[i].key == key) return;
    i = (i + 1) & mask_;
  }
  slots_[i] = {key, id, order};
}

// ---- Making one ----

Status Tokenizer::create(Source *source, int32_t vocab_size, const Settings &settings, Tokenizer **tokenizer, Failure *failure) {
  Ref<Tokenizer> made(Object::make<Tokenizer>(settings.hooks, settings.memory_limit_bytes, "the tokenizer", failure));
  if (!made) return failure->status;
  size_t wanted = static_cast<size_t>(vocab_size);
  if (Status status = read_tokenizer_bin(source, wanted, made->account(), &made->vocabulary_, failure)) return status;
  if (Status status = made->build(failure)) return status;
  *tokenizer = made.take();
  return kOk;
}

Status Tokenizer::build(Failure *failure) {
  size_t count = vocabulary_.count;
  if (Status status = canonical_.allocate(account(), count, "the tokenizer's canonical ids", failure)) return status;
  if (Status status = ends_.allocate(account(), count, "the tokenizer's piece ends", failure)) return status;
  for (size_t i = 0; i < count; i++) {
    const unsigned char *piece = vocabulary_.piece(i);
    size_t n = vocabulary_.length(i);
    ends_[i] = n == 0 ? kEmptyPiece : piece[0] | static_cast<uint32_t>(piece[n - 1]) << 8;
  }
  uint64_t seed = digest(vocabulary_);
  if (Status status = build_pairs(seed, failure)) return status;
  return build_units(seed, failure);
}

Status Tokenizer::build_units(uint64_t seed, Failure *failure) {
  size_t short_count = 0;
  for (size_t i = 0; i < vocabulary_.count; i++) short_count += vocabulary_.length(i) - 1 < kMaxUnitBytes;  // 0 - 1 is large
  if (Status status = units_.reserve(account(), short_count, seed, "the tokenizer's table of units", failure)) return status;
  for (size_t i = 0; i < vocabulary_.count; i++)
    if (vocabulary_.length(i) - 1 < kMaxUnitBytes)
      units_.insert(unit_key(vocabulary_.piece(i), vocabulary_.length(i)), static_cast<int32_t>(i), 0);
  for (int32_t b = 0; b < 256; b++) {
    unsigned char byte = static_cast<unsigned char>(b);
    const IdTable::Slot *slot = units_.find(unit_key(&byte, 1));
    single_[b] = slot ? slot->id : has(kFirstByte + b) ? kFirstByte + b : -1;
  }
  return kOk;
}

Status Tokenizer::build_pairs(uint64_t seed, Failure *failure) {
  Splits splits;
  if (Status status = splits.create(&vocabulary_, account(), canonical_.data(), failure)) return status;
  auto mergeable = [this](uint32_t id) { return canonical_[id] == static_cast<int32_t>(id) && vocabulary_.scores[id] > kLowestScore; };
  size_t pair_count = 0;
  for (uint32_t id = 0; id < vocabulary_.count; id++)
    if (mergeable(id)) splits.for_each(id, [&pair_count](int32_t, int32_t) { pair_count++; });
  if (Status status = pairs_.reserve(account(), pair_count, seed, "the tokenizer's table of pairs", failure)) return status;
  memset(joins_, 0, sizeof(joins_));
  for (uint32_t id = 0; id < vocabulary_.count; id++) {
    if (!mergeable(id)) continue;
    splits.for_each(id, [this, id](int32_t left, int32_t right) {
      pairs_.insert(pair_key(left, right), static_cast<int32_t>(id), order_of(vocabulary_.scores[id]));
      uint32_t l = ends_[static_cast<size_t>(left)], r = ends_[static_cast<size_t>(right)];
      if (l != kEmptyPiece && r != kEmptyPiece) joins_[l >> 8][(r & 255) / 64] |= uint64_t(1) << (r % 64);
    });
  }
  return kOk;
}

// ---- Text to ids ----

// Merges the tokens of one segment: again and again the pair with the highest score, the leftmost of equal ones.
//
// The tokens are a doubly linked list over their first positions. The heap holds (order of the score, position of the left token) of every
// mergeable pair, smallest first, which is that choice. A pair that has changed since leaves its entry behind: it is recognised because the
// token at its position has no pair now, or one of another score. (An entry left behind that fits the present pair of its position orders as
// that pair does, so it may stand for it.)
class Merger {
 public:
  struct Node {
    int32_t id;
    uint32_t previous, next;  // kNone at the ends
    int32_t merged;           // what this and the next token merge to; -1: nothing, or this token was merged into another
  };
  // nodes: [n], heap: [2 n] for segments of at most n tokens: one entry a pair at first, and each merge takes one out and puts at most two in.
  Merger(const Tokenizer &tokenizer, Node *nodes, uint64_t *heap) : tokenizer_(tokenizer), nodes_(nodes), heap_(heap) {}

  // ids: [count], count >= 1, to out: [the result], which may be ids or before it.
  size_t run(const int32_t *ids, size_t count, int32_t *out);

 private:
  static constexpr size_t kArity = 4;

  // Looks the pair at `at` up again. Its heap entry, if it is one.
  bool look_up(uint32_t at, uint64_t *entry);
  bool is_stale(uint64_t entry) const {
    int32_t merged = nodes_[static_cast<uint32_t>(entry)].merged;
    return merged < 0 || order_of(tokenizer_.score(merged)) != entry >> 32;
  }
  void merge_at(uint32_t at);
  void push(uint64_t entry);
  uint64_t pop();
  void sift_down(size_t at, uint64_t entry);

  const Tokenizer &tokenizer_;
  Node *nodes_;
  uint64_t *heap_;
  size_t heap_count_ = 0;
};

bool Merger::look_up(uint32_t at, uint64_t *entry) {
  Node &node = nodes_[at];
  node.merged = -1;
  if (node.next == kNone) return false;
  int32_t left = tokenizer_.canonical_[static_cast<size_t>(node.id)];
  int32_t right = tokenizer_.canonical_[static_cast<size_t>(nodes_[node.next].id)];
  const IdTable::Slot *slot = tokenizer_.pairs_.find(pair_key(left, right));
  if (!slot) return false;
  node.merged = slot->id;
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

uint64_t Merger::pop() {
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

size_t Merger::run(const int32_t *ids, size_t count, int32_t *out) {
  uint32_t n = static_cast<uint32_t>(count);
  for (uint32_t i = 0; i < n; i++) nodes_[i] = {ids[i], i - 1, i + 1, -1};  // 0 - 1 is kNone
  nodes_[n - 1].next = kNone;
  heap_count_ = 0;
  for (uint32_t i = 0; i < n; i++)
    if (look_up(i, &heap_[heap_count_])) heap_count_++;
  for (size_t i = heap_count_ / kArity + 1; i-- > 0;)
    if (i < heap_count_) sift_down(i, heap_[i]);
  while (heap_count_ > 0) {
    uint64_t entry = pop();
    if (!is_stale(entry)) merge_at(static_cast<uint32_t>(entry));
  }
  size_t out_count = 0;
  for (uint32_t i = 0; i != kNone; i = nodes_[i].next) out[out_count++] = nodes_[i].id;
  return out_count;
}

Status Tokenizer::fail_byte(unsigned byte, size_t offset, Failure *failure) const {
  return fail(failure, kFormat, "the byte 0x%02X at offset %zu of the text needs the byte piece %d; the vocabulary has %d pieces", byte,
              offset, kFirstByte + static_cast<int32_t>(byte), vocab_size());
}

// One unit is a byte and the continuation bytes after it, four at most together, valid UTF-8 or not. At most one id a byte.
Status Tokenizer::append_units(const unsigned char *text, size_t text_bytes, int32_t *ids, size_t *count, Failure *failure) const {
  size_t n = *count;
  for (size_t at = 0, length; at < text_bytes; at += length) {
    length = 1;
    while (length < kMaxUnitBytes && at + length < text_bytes && (text[at + length] & 0xC0) == 0x80) length++;
    const IdTable::Slot *slot = nullptr;
    if (length == 1) {
      if (single_[text[at]] < 0) return fail_byte(text[at], at, failure);
      ids[n++] = single_[text[at]];
    } else if ((slot = units_.find(unit_key(text + at, length))) != nullptr) {
      ids[n++] = slot->id;
    } else {
      for (size_t i = at; i < at + length; i++) {
        if (!has(kFirstByte + text[i])) return fail_byte(text[i], i, failure);
        ids[n++] = kFirstByte + text[i];
      }
    }
  }
  *count = n;
  return kOk;
}

bool Tokenizer::may_join(int32_t left, int32_t right) const {
  uint32_t l = ends_[static_cast<size_t>(left)], r = ends_[static_cast<size_t>(right)];
  if (l == kEmptyPiece || r == kEmptyPiece) return true;
  return joins_[l >> 8][(r & 255) / 64] >> (r % 64) & 1;
}

// Tokens that no merge can ever join across are independent of each other: a merge keeps the outer bytes of what it merges, so the bytes on
// both sides of a border stay as they are until the border goes. Prose falls into its words.
size_t Tokenizer::segment_end(const int32_t *ids, size_t begin, size_t count) const {
  size_t end = begin + 1;
  while (end < count && may_join(ids[end - 1], ids[end])) end++;
  return end;
}

Status Tokenizer::merge(int32_t *ids, size_t *count, Failure *failure) const {
  size_t longest = 0;
  for (size_t begin = 0, end; begin < *count; begin = end) {
    end = segment_end(ids, begin, *count);
    if (end - begin > longest) longest = end - begin;
  }
  if (longest < 2) return kOk;
  Buffer<Merger::Node> nodes;
  Buffer<uint64_t> heap;
  if (Status status = nodes.allocate(account(), longest, "the text's tokens while they are merged", failure)) return status;
  if (Status status = heap.allocate(account(), 2 * longest, "the text's pairs while they are merged", failure)) return status;
  Merger merger(*this, nodes.data(), heap.data());
  size_t out = 0;
  for (size_t begin = 0, end; begin < *count; begin = end) {
    end = segment_end(ids, begin, *count);
    out += merger.run(ids + begin, end - begin, ids + out);
  }
  *count = out;
  return kOk;
}

Status Tokenizer::encode(const char *text, size_t text_bytes, bool with_bos, bool with_eos, Buffer<int32_t> *ids, size_t *count,
                         Failure *failure) const {
  if (text_bytes > kMaxTextBytes)
    return fail(failure, kArgument, "the text has %zu bytes; at most %zu are possible", text_bytes, kMaxTextBytes);
  if ((with_bos && bos() < 0) || (with_eos && eos() < 0))
    return fail(failure, kFormat, "the id %d is asked for and the vocabulary has %d pieces", with_bos && bos() < 0 ? kBos : kEos,
                vocab_size());
  if (Status status = ids->allocate(account(), text_bytes + 3, "the text's tokens", failure)) return status;
  size_t n = 0;
  if (with_bos) (*ids)[n++] = kBos;
  if (text_bytes > 0) {
    unsigned char space = ' ';
    const IdTable::Slot *slot = units_.find(unit_key(&space, 1));
    if (!slot)
      return fail(failure, kFormat, "the vocabulary of %d pieces has no piece \" \" (one space), with which every text begins",
                  vocab_size());
    (*ids)[n++] = slot->id;
    if (Status status = append_units(reinterpret_cast<const unsigned char *>(text), text_bytes, ids->data(), &n, failure)) return status;
  }
  if (Status status = merge(ids->data(), &n, failure)) return status;
  if (with_eos) (*ids)[n++] = kEos;
  *count = n;
  return kOk;
}

// ---- Ids to text ----

namespace {

struct AllBytes {
  unsigned char byte[256];
  constexpr AllBytes() : byte() {
    for (int i = 0; i < 256; i++) byte[i] = static_cast<unsigned char>(i);
  }
};
constexpr AllBytes kAllBytes;

int hex_digit(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Bytes Tokenizer::decode(int32_t previous, int32_t token, bool spelled) const {
  Bytes bytes = piece(token);
  if (previous == kBos && bytes.count > 0 && bytes.data[0] == ' ') bytes = {bytes.data + 1, bytes.count - 1};
  if (spelled || bytes.count != 6 || memcmp(bytes.data, "<0x", 3) != 0 || bytes.data[5] != '>') return bytes;
  int high = hex_digit(bytes.data[3]), low = hex_digit(bytes.data[4]);
  return high < 0 || low < 0 ? bytes : Bytes{&kAllBytes.byte[16 * high + low], 1};
}

}  // namespace proofinfer
