#include "base/checksum.h"
#include "mutate.h"

using namespace proofinfer_fuzz;

namespace {

constexpr size_t kHeader = 72, kChecksum = 8, kPosition = kHeader + 4 + 32;  // of the fixed checkpoints a position is a token and 8 floats
constexpr size_t kLogits = 4 * size_t(kFixedVocabSize);

// The header of an empty session of the fixed checkpoint: what a state of it begins with.
std::vector<uint8_t> empty_state(int format) {
  const std::vector<uint8_t> &file = fixed_checkpoint(format);
  Out<proofinfer_model> model;
  Out<proofinfer_session> session;
  model.of(call(proofinfer_model_open_memory, file.data(), file.size(), nullptr, nullptr, &model.handle));
  session.of(call(proofinfer_session_create, model.handle, nullptr, &session.handle));
  std::vector<uint8_t> state(kHeader + kChecksum);
  size_t needed = 0;
  HOLDS(call(proofinfer_session_save, session.handle, state.data(), state.size(), &needed) == PROOFINFER_OK);
  proofinfer_session_free(session.handle);
  proofinfer_model_free(model.handle);
  return state;
}

void store(uint8_t *p, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) p[i] = uint8_t(value >> 8 * i);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  static const std::vector<uint8_t> headers[3] = {empty_state(0), empty_state(1), empty_state(2)};
  Random random(seed);
  size = LLVMFuzzerMutate(data, size, max_size);
  if (random.one_in(16) || max_size < 4000) return size;
  for (; size < 1 + kHeader + kChecksum; size++) data[size] = uint8_t(random.next());
  uint8_t *state = data + 1;
  const std::vector<uint8_t> &header = headers[data[0] % 3];
  const bool has_logits = state[60] % 2 != 0 && size > 1 + kHeader + kChecksum + kLogits;
  size_t count = (size - 1 - kHeader - kChecksum - (has_logits ? kLogits : 0)) / kPosition;
  if (count > 80) count = 80;
  const bool logits = has_logits && count > 0;
  const size_t total = kHeader + kChecksum + (logits ? kLogits : 0) + count * kPosition;
  for (; size < 1 + total; size++) data[size] = 0;
  std::memcpy(state, header.data(), kHeader);
  store(state + 8, total, 8);
  store(state + 16, count, 8);
  store(state + 60, logits, 4);
  for (size_t i = 0; i < count; i++)
    if (state[kHeader + 4 * i + 1] | state[kHeader + 4 * i + 2] | state[kHeader + 4 * i + 3])
      store(state + kHeader + 4 * i, random.below(kFixedVocabSize), 4);
  for (size_t at = kHeader + 4 * count; at < total - kChecksum; at += 4)  // one NaN is allowed
    if ((state[at + 3] & 0x7f) == 0x7f && (state[at + 2] & 0x80)) store(state + at, 0x7fc00000u, 4);
  if (random.one_in(6)) state[8 + random.below(uint32_t(total - 16))] ^= uint8_t(1 + random.below(255));
  if (!random.one_in(12)) store(state + total - kChecksum, proofinfer::checksum_of(state, total - kChecksum), 8);
  return 1 + total - (random.one_in(16) ? random.below(uint32_t(total)) : 0);
}
