#include "model/ranking.h"

#include <string.h>

namespace proofinfer {

namespace {

// Three digits hold a key.
constexpr uint32_t kDigitBits = 11, kDigits = 1u << kDigitBits, kKeyShift = 32, kLeadingShift = kKeyShift + 2 * kDigitBits;
// So few are sorted faster by insertion than the tables of digits are cleared.
constexpr size_t kFew = 48;

uint32_t digit_of(uint64_t entry, uint32_t shift) { return static_cast<uint32_t>(entry >> shift) & (kDigits - 1); }
uint32_t leading_digit(float value) { return descending_key(value) >> (kLeadingShift - kKeyShift); }

}  // namespace

uint32_t ascending_key(float value) {
  float canonical = value + 0.0f;  // -0 becomes 0
  uint32_t bits;
  memcpy(&bits, &canonical, sizeof(bits));
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

float descending_value(uint32_t key) {
  uint32_t bits = key & 0x80000000u ? key : ~key & 0x7FFFFFFFu;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

Status Ranking::reserve(Account *account, size_t capacity, Failure *failure) {
  if (entries_.count() >= capacity) return kOk;
  Status status = scratch_.allocate(account, capacity, "the sampler's candidates", failure);
  if (status == kOk) status = places_.allocate(account, kDigits, "the sampler's digits", failure);
  return status == kOk ? entries_.allocate(account, capacity, "the sampler's candidates", failure) : status;
}

void Ranking::sort() {
  if (count_ <= kFew) return sort_few();
  for (uint32_t shift = kKeyShift; shift <= kLeadingShift; shift += kDigitBits) sort_by_digit(shift);
}

void Ranking::sort_few() {
  for (size_t i = 1; i < count_; i++) {
    uint64_t moved = entries_[i];
    size_t to = i;
    for (; to > 0 && entries_[to - 1] > moved; to--) entries_[to] = entries_[to - 1];
    entries_[to] = moved;
  }
}

void Ranking::sort_by_digit(uint32_t shift) {
  uint32_t *places = places_.data();
  const uint64_t *from = entries_.data();
  uint64_t *to = scratch_.data();
  memset(places, 0, kDigits * sizeof(uint32_t));
  for (size_t i = 0; i < count_; i++) places[digit_of(from[i], shift)]++;
  uint32_t place = 0;
  for (size_t d = 0; d < kDigits; d++) {
    uint32_t here = places[d];
    places[d] = place;
    place += here;
  }
  for (size_t i = 0; i < count_; i++) to[places[digit_of(from[i], shift)]++] = from[i];
  entries_.swap(scratch_);
}

uint32_t Ranking::last_leading_digit(const float *values, size_t n, size_t kept) {
  uint32_t *counts = places_.data();
  memset(counts, 0, kDigits * sizeof(uint32_t));
  for (size_t i = 0; i < n; i++) counts[leading_digit(values[i])]++;
  uint32_t digit = 0;
  for (size_t seen = counts[0]; seen < kept; seen += counts[digit]) digit++;
  return digit;
}

void Ranking::take_largest(const float *values, size_t n, size_t kept) {
  uint32_t last = last_leading_digit(values, n, kept);
  clear();
  for (size_t i = 0; i < n; i++) add_if(leading_digit(values[i]) <= last, descending_key(values[i]), i);
  sort();
  count_ = kept;
}

}  // namespace proofinfer
