#include "model/tokenizer_specials.h"

namespace proofinfer {

Status Specials::reserve(const Vocabulary &vocabulary, Account *account, uint64_t seed, Failure *failure) {
  size_t states = 1;
  for (size_t i = 0; i < vocabulary.count; i++)
    if (is_special(vocabulary.kind(i))) states += vocabulary.length(i);
  if (states > INT32_MAX)
    return fail(failure, kUnsupported, "the special pieces have %zu bytes; at most %ld are supported", states - 1, long{INT32_MAX - 1});
  const char *what = "the tokenizer's table of special pieces";
  if (Status status = edges_.reserve(account, states, seed, what, failure)) return status;
  if (Status status = fallbacks_.allocate(account, states, what, failure)) return status;
  if (Status status = longest_.allocate(account, states, what, failure)) return status;
  if (Status status = user_defined_.allocate(account, states, what, failure)) return status;
  for (uint32_t &state : first_) state = 0;
  fallbacks_[0] = 0;
  longest_[0] = user_defined_[0] = -1;
  state_count_ = 1;
  return kOk;
}

// parents, bytes: [states] how each state is reached.
void Specials::add(Bytes piece, int32_t id, bool user_defined, uint32_t *parents, unsigned char *bytes) {
  uint32_t state = 0;
  for (size_t k = piece.count; k-- > 0;) {
    unsigned char byte = piece.data[k];
    const IdTable::Slot *slot = edges_.find(edge(state, byte));
    if (slot) {
      state = static_cast<uint32_t>(slot->id);
      continue;
    }
    uint32_t made = state_count_++;
    edges_.insert(edge(state, byte), static_cast<int32_t>(made), 0);
    if (state == 0) first_[byte] = made;
    parents[made] = state;
    bytes[made] = byte;
    longest_[made] = user_defined_[made] = -1;
    state = made;
  }
  if (longest_[state] < 0) longest_[state] = id;
  if (user_defined && user_defined_[state] < 0) user_defined_[state] = id;
}

uint32_t Specials::step(uint32_t state, unsigned char byte) const {
  while (state != 0) {
    if (const IdTable::Slot *slot = edges_.find(edge(state, byte))) return static_cast<uint32_t>(slot->id);
    state = fallbacks_[state];
  }
  return first_[byte];
}

// A state's fallback is shorter than it, so the states are taken by length; a parent has a lower number than its children.
Status Specials::link(Account *account, const uint32_t *parents, const unsigned char *bytes, Failure *failure) {
  const char *what = "sorting the tokenizer's special pieces";
  Buffer<uint32_t> depth, order, start;
  if (Status status = depth.allocate(account, state_count_, what, failure)) return status;
  if (Status status = order.allocate(account, state_count_, what, failure)) return status;
  uint32_t deepest = 0;
  depth[0] = 0;
  for (uint32_t s = 1; s < state_count_; s++) {
    depth[s] = depth[parents[s]] + 1;
    if (depth[s] > deepest) deepest = depth[s];
  }
  if (Status status = start.allocate(account, size_t(deepest) + 2, what, failure)) return status;
  for (size_t d = 0; d < start.count(); d++) start[d] = 0;
  for (uint32_t s = 0; s < state_count_; s++) start[depth[s] + 1]++;
  for (size_t d = 1; d < start.count(); d++) start[d] += start[d - 1];
  for (uint32_t s = 0; s < state_count_; s++) order[start[depth[s]]++] = s;
  for (uint32_t i = 1; i < state_count_; i++) {
    uint32_t s = order[i], parent = parents[s];
    fallbacks_[s] = parent == 0 ? 0 : step(fallbacks_[parent], bytes[s]);
    if (longest_[s] < 0) longest_[s] = longest_[fallbacks_[s]];
    if (user_defined_[s] < 0) user_defined_[s] = user_defined_[fallbacks_[s]];
  }
  return kOk;
}

Status Specials::create(const Vocabulary &vocabulary, Account *account, uint64_t seed, Failure *failure) {
  if (Status status = reserve(vocabulary, account, seed, failure)) return status;
  Buffer<uint32_t> parents;
  Buffer<unsigned char> bytes;
  const char *what = "sorting the tokenizer's special pieces";
  if (Status status = parents.allocate(account, fallbacks_.count(), what, failure)) return status;
  if (Status status = bytes.allocate(account, fallbacks_.count(), what, failure)) return status;
  for (size_t i = 0; i < vocabulary.count; i++) {
    PieceKind kind = vocabulary.kind(i);
    if (!is_special(kind) || vocabulary.length(i) == 0) continue;
    has_any_ = true;
    has_user_defined_ = has_user_defined_ || kind == PieceKind::kUserDefined;
    add(vocabulary.pieces.at(i), static_cast<int32_t>(i), kind == PieceKind::kUserDefined, parents.data(), bytes.data());
  }
  return link(account, parents.data(), bytes.data(), failure);
}

template <typename Use>
void Specials::scan(Bytes text, bool all, Use use) const {
  const Buffer<int32_t> &found = all ? longest_ : user_defined_;
  uint32_t state = 0;
  for (size_t i = text.count; i-- > 0;) {
    state = step(state, text.data[i]);
    if (found[state] >= 0) use(i, found[state]);
  }
}

Status Specials::find(const Vocabulary &vocabulary, Bytes text, bool all, Account *account, Buffer<Hit> *hits, size_t *count,
                      Failure *failure) const {
  *count = 0;
  size_t total = 0;
  scan(text, all, [&total](size_t, int32_t) { total++; });
  if (total == 0) return kOk;
  if (Status status = hits->allocate(account, total, "the special pieces in the text", failure)) return status;
  size_t at = total;
  scan(text, all, [&](size_t i, int32_t id) { (*hits)[--at] = {static_cast<uint32_t>(i), id}; });
  size_t end = 0;
  for (size_t i = 0; i < total; i++) {
    Hit hit = (*hits)[i];
    if (hit.at < end) continue;
    end = hit.at + vocabulary.length(static_cast<size_t>(hit.id));
    (*hits)[(*count)++] = hit;
  }
  return kOk;
}

}  // namespace proofinfer
