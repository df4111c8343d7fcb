// Saving a session's state and restoring it: the layout is in state.h.
#include "model/state.h"

#include "base/checksum.h"
#include "base/source.h"
#include "proved/checked.h"

namespace proofinfer {

namespace {

constexpr char kMagic[8] = {'P', 'I', 'S', 'T', 'A', 'T', 'E', '1'};
constexpr size_t kTotalAt = 8, kPositionAt = 16, kShapeAt = 24, kLogitsAt = 60, kFingerprintAt = 64;
constexpr size_t kShapeFields = 9;
constexpr const char *kShapeNames[kShapeFields] = {"dim",        "hidden_dim", "n_layers",   "n_heads",          "n_kv_heads",
                                                   "vocab_size", "seq_len",    "group_size", "shared_classifier"};
static_assert(kShapeAt + 4 * kShapeFields == kLogitsAt, "the numbers of the model fill their place");

struct ShapeFields {
  uint64_t values[kShapeFields];  // as kShapeNames
  explicit ShapeFields(const Model &m)
      : values{m.dim(),     m.hidden_dim(), m.n_layers(),
               m.n_heads(), m.n_kv_heads(), m.vocab_size(),
               m.seq_len(), m.group_size(), m.file().shape().shared_classifier} {}
};

Status check_model(const Model &model, const unsigned char *header, Failure *failure) {
  ShapeFields shape(model);
  for (size_t i = 0; i < kShapeFields; i++) {
    uint32_t found = load_u32(header + kShapeAt + 4 * i);
    if (found != shape.values[i])
      return fail(failure, kArgument, "this is the state of another model: its %s is %u, the session's model has %llu", kShapeNames[i],
                  found, (unsigned long long)shape.values[i]);
  }
  uint64_t fingerprint = load_u64(header + kFingerprintAt);
  if (fingerprint == model.fingerprint()) return kOk;
  return fail(
      failure, kArgument,
      "this is the state of another model: it has the same shape and other weights, fingerprint %016llx; the session's model has %016llx",
      (unsigned long long)fingerprint, (unsigned long long)model.fingerprint());
}

// A state holds one NaN, so that equal states are equal bytes. `what` names the floats.
Status check_nans(const unsigned char *floats, uint64_t count, const char *what, Failure *failure) {
  for (uint64_t i = 0; i < count; i++) {
    uint32_t bits = load_u32(floats + 4 * i);
    if ((bits & 0x7fffffffu) > 0x7f800000u && bits != 0x7fc00000u)
      return fail(failure, kFormat, "session state: value %llu of the %s is the NaN %08x; expected 7fc00000", (unsigned long long)i, what,
                  bits);
  }
  return kOk;
}

// The bytes are a whole state that nothing has changed.
Status check_whole(const unsigned char *data, size_t data_bytes, Failure *failure) {
  constexpr size_t kLeast = StateLayout::kHeaderBytes + StateLayout::kChecksumBytes;
  size_t begun = data_bytes < sizeof(kMagic) ? data_bytes : sizeof(kMagic) - 1;
  if (begun > 0 && memcmp(data, kMagic, begun) != 0)
    return fail(failure, kUnrecognized, "the bytes are no session state: they do not begin with \"PISTATE\"");
  if (data_bytes < sizeof(kMagic))
    return fail(failure, kTruncated, "session state: the header needs %zu bytes; found %zu", kLeast, data_bytes);
  if (data[sizeof(kMagic) - 1] != kMagic[sizeof(kMagic) - 1])
    return fail(failure, kUnsupported, "session state: the version at offset 7 is byte 0x%02x; expected 0x%02x", data[sizeof(kMagic) - 1],
                kMagic[sizeof(kMagic) - 1]);
  if (data_bytes < kLeast) return fail(failure, kTruncated, "session state: the header needs %zu bytes; found %zu", kLeast, data_bytes);
  uint64_t total = load_u64(data + kTotalAt);
  if (data_bytes < total)
    return fail(failure, kTruncated, "session state: expected %llu bytes by its header, found %zu", (unsigned long long)total, data_bytes);
  if (data_bytes > total)
    return fail(failure, kFormat, "session state: expected %llu bytes by its header, found %zu", (unsigned long long)total, data_bytes);
  uint64_t expected = load_u64(data + data_bytes - StateLayout::kChecksumBytes);
  uint64_t found = checksum_of(data, data_bytes - StateLayout::kChecksumBytes);
  if (found == expected) return kOk;
  return fail(failure, kFormat, "session state: its bytes were changed: their checksum is %016llx; expected %016llx",
              (unsigned long long)found, (unsigned long long)expected);
}

}  // namespace

bool StateLayout::plan(uint64_t position, uint64_t logits_count, uint64_t position_floats) {
  uint64_t tokens_bytes, logits_bytes, kv_bytes;
  tokens = kHeaderBytes;
  return pi_mul_checked(position, sizeof(int32_t), &tokens_bytes) && pi_mul_checked(logits_count, sizeof(float), &logits_bytes) &&
         pi_mul_checked(position_floats, sizeof(float), &kv_bytes) && pi_mul_checked(kv_bytes, position, &kv_bytes) &&
         pi_add_checked(tokens, tokens_bytes, &logits) && pi_add_checked(logits, logits_bytes, &kv) &&
         pi_add_checked(kv, kv_bytes, &checksum) && pi_add_checked(checksum, kChecksumBytes, &total) && total <= SIZE_MAX;
}

const float *Session::last_logits() const { return position() > 0 ? logits(position() - 1) : nullptr; }

size_t Session::state_bytes() const {
  StateLayout layout;
  bool fits = layout.plan(position(), last_logits() ? model_->vocab_size() : 0, kv_.position_floats());
  return fits ? static_cast<size_t>(layout.total) : SIZE_MAX;  // held in pages, it also fits in one piece
}

void Session::save(unsigned char *to) const {
  size_t count = position();
  const float *last = last_logits();
  StateLayout layout;
  layout.plan(count, last ? model_->vocab_size() : 0, kv_.position_floats());
  memcpy(to, kMagic, sizeof(kMagic));
  store_u64(to + kTotalAt, layout.total);
  store_u64(to + kPositionAt, count);
  ShapeFields shape(*model_);
  for (size_t i = 0; i < kShapeFields; i++) store_u32(to + kShapeAt + 4 * i, static_cast<uint32_t>(shape.values[i]));
  store_u32(to + kLogitsAt, last != nullptr);
  store_u64(to + kFingerprintAt, model_->fingerprint());
  for (size_t i = 0; i < count; i++) store_u32(to + layout.tokens + 4 * i, static_cast<uint32_t>(tokens_[i]));
  for (size_t i = 0; last && i < model_->vocab_size(); i++) store_f32(to + layout.logits + 4 * i, last[i]);
  kv_.save(count, to + layout.kv);
  store_u64(to + layout.checksum, checksum_of(to, static_cast<size_t>(layout.checksum)));
}

Status Session::check_state(const unsigned char *data, size_t data_bytes, Failure *failure) const {
  Status status = check_whole(data, data_bytes, failure);
  if (status == kOk) status = check_model(*model_, data, failure);
  if (status != kOk) return status;
  uint64_t position = load_u64(data + kPositionAt);
  uint32_t has_logits = load_u32(data + kLogitsAt);
  if (has_logits > (position > 0))
    return fail(failure, kFormat, "session state: the logits flag at offset %zu is %u; expected %s", kLogitsAt, has_logits,
                position > 0 ? "0 or 1" : "0, as no position is held");
  StateLayout layout;
  if (!layout.plan(position, has_logits ? model_->vocab_size() : 0, kv_.position_floats()) || layout.total != data_bytes)
    return fail(failure, kFormat, "session state: position at offset %zu is %llu, which does not give the size of %zu bytes", kPositionAt,
                (unsigned long long)position, data_bytes);
  for (uint64_t i = 0; i < position; i++) {
    int32_t token = load_i32(data + layout.tokens + 4 * i);
    if (token < 0 || static_cast<size_t>(token) >= model_->vocab_size())
      return fail(failure, kFormat, "session state: token %llu is %d; expected 0 to %zu", (unsigned long long)i, token,
                  model_->vocab_size() - 1);
  }
  status = check_nans(data + layout.logits, has_logits ? model_->vocab_size() : 0, "logits", failure);
  if (status == kOk) status = check_nans(data + layout.kv, (layout.checksum - layout.kv) / 4, "keys and values", failure);
  if (status == kOk && position > context_length())
    return fail(failure, kContext, "session state: it holds %llu positions; the session has room for %zu", (unsigned long long)position,
                context_length());
  return status;
}

Status Session::restore(const unsigned char *data, size_t data_bytes, Failure *failure) {
  Status status = check_state(data, data_bytes, failure);
  if (status != kOk) return status;
  size_t count = static_cast<size_t>(load_u64(data + kPositionAt));
  bool has_logits = load_u32(data + kLogitsAt) != 0;
  StateLayout layout;
  layout.plan(count, has_logits ? model_->vocab_size() : 0, kv_.position_floats());
  // What is held stays until all memory is there; nothing behind this can fail.
  status = kv_.make_private(0, count, position(), failure);
  if (status != kOk) return status;
  renew_logits();  // there is always room for those of one position
  kv_.load(count, data + layout.kv);
  for (size_t i = 0; i < count; i++) tokens_[i] = load_i32(data + layout.tokens + 4 * i);
  float *last = has_logits ? add_logits(count - 1) : nullptr;
  for (size_t i = 0; last && i < model_->vocab_size(); i++) last[i] = load_f32(data + layout.logits + 4 * i);
  position_.store(count, std::memory_order_release);
  return kOk;
}

}  // namespace proofinfer
