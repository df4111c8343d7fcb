#include "model/stop_strings.h"

namespace proofinfer {

Status StopStrings::create(Account *account, const StringList &strings, Failure *failure) {
  size_t total = strings.count > 0 ? strings.ends[strings.count - 1] : 0;
  Status status = bytes_.allocate(account, total, "the stop strings", failure);
  if (status == kOk) status = ends_.allocate(account, strings.count, "the stop strings", failure);
  if (status == kOk) status = borders_.allocate(account, total, "the stop strings", failure);
  if (status == kOk) status = states_.allocate(account, strings.count, "the stop strings", failure);
  if (status != kOk || strings.count == 0) return status;
  memcpy(bytes_.data(), strings.bytes, total);
  memcpy(ends_.data(), strings.ends, strings.count * sizeof(size_t));
  // The borders of a string are what its automaton does with the string itself, one byte behind.
  for (size_t i = 0; i < strings.count; i++) {
    Bytes s = string(i);
    uint32_t *borders = borders_.data() + (s.data - bytes_.data());
    borders[0] = states_[i] = 0;
    for (size_t k = 1; k < s.count; k++) {
      step(i, s.data[k]);
      borders[k] = states_[i];
    }
    states_[i] = 0;
  }
  return kOk;
}

Bytes StopStrings::string(size_t i) const {
  size_t begin = i > 0 ? ends_[i - 1] : 0;
  return {bytes_.data() + begin, ends_[i] - begin};
}

// The state is below the string's length: a complete string ends the stream.
void StopStrings::step(size_t i, uint8_t byte) {
  Bytes s = string(i);
  const uint32_t *borders = borders_.data() + (s.data - bytes_.data());
  uint32_t state = states_[i];
  while (state > 0 && s.data[state] != byte) state = borders[state - 1];
  states_[i] = state + (s.data[state] == byte);
}

StopStrings::Shown StopStrings::push(Bytes bytes) {
  Shown shown = {held(), 0, 0, kNone};
  size_t taken = 0, hidden = shown.held.count;
  while (taken < bytes.count && shown.matched == kNone) {
    uint8_t byte = bytes.data[taken++];
    longest_ = kNone;
    hidden = 0;
    for (size_t i = 0; i < states_.count(); i++) {
      step(i, byte);
      bool complete = states_[i] == string(i).count, found = shown.matched != kNone;
      bool is_better = complete == found ? states_[i] > hidden : complete;
      if (!is_better) continue;
      hidden = states_[i];
      longest_ = i;
      if (complete) shown.matched = i;
    }
  }
  size_t visible = shown.held.count + taken - hidden;
  shown.held_count = visible < shown.held.count ? visible : shown.held.count;
  shown.new_count = visible - shown.held_count;
  return shown;
}

}  // namespace proofinfer
