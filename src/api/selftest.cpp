#include <string.h>

#include "api/boundary.h"
#include "base/fp_environment.h"
#include "model/session.h"

namespace proofinfer {

namespace {

// A model small enough for milliseconds that still has what goes wrong elsewhere: grouped query heads, head size 2, rows that fill no panel,
// a context over two key blocks. Weights from the splitmix64 stream of the golden checkpoints (case "head_size_2", whose logits the reference
// program gave).
constexpr int32_t kShape[7] = {16, 33, 2, 8, 4, 64, 32};  // dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
constexpr uint64_t kSeed = 106;
constexpr size_t kTokenCount = 32;
constexpr int32_t kTokens[kTokenCount] = {1,  60, 43, 26, 9,  56, 39, 22, 5,  52, 35, 18, 1,  48, 31, 14,
                                          61, 44, 27, 10, 57, 40, 23, 6,  53, 36, 19, 2,  49, 32, 15, 62};
constexpr uint64_t kLogitsDigest = 0x48d0a1b976df394eu;  // FNV-1a of all logits of all positions, little-endian

struct Writer {
  unsigned char *at;
  uint64_t state = kSeed;

  void put_u32(uint32_t value) {
    for (int i = 0; i < 4; i++) *at++ = static_cast<unsigned char>(value >> (8 * i));
  }
  float draw() {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return static_cast<float>(static_cast<int32_t>(z >> 40) - (1 << 23)) * 0x1p-23f;
  }
  void put_weights(size_t count, float scale, float offset) {
    for (size_t i = 0; i < count; i++) {
      float weight = offset + draw() * scale;
      uint32_t bits;
      memcpy(&bits, &weight, sizeof(bits));
      put_u32(bits);
    }
  }
};

constexpr size_t kFileBytes = 28 + 4 * (64 * 16 + 2 * (16 + 16 * 16 + 8 * 16 + 8 * 16 + 16 * 16 + 16 + 33 * 16 * 3) + 16 + 32 * 2);

void write_checkpoint(unsigned char *file) {
  constexpr size_t dim = 16, kv_dim = 8, hidden = 33, layers = 2, vocab = 64;
  constexpr float kDimScale = 0.25f, kHiddenScale = 0.25f;  // 2^-floor(floor(log2 n) / 2) for 16 and for 33 inputs
  Writer w{file};
  for (int32_t value : kShape) w.put_u32(static_cast<uint32_t>(value));
  w.put_weights(vocab * dim, 0.25f, 0.0f);
  w.put_weights(layers * dim, 0.25f, 1.0f);
  w.put_weights(layers * dim * (dim + kv_dim + kv_dim + dim), kDimScale, 0.0f);
  w.put_weights(layers * dim, 0.25f, 1.0f);
  w.put_weights(layers * dim * hidden, kDimScale, 0.0f);
  w.put_weights(layers * dim * hidden, kHiddenScale, 0.0f);
  w.put_weights(layers * dim * hidden, kDimScale, 0.0f);
  w.put_weights(dim, 0.25f, 1.0f);
  memset(w.at, 0, 32 * 2 * sizeof(float));
}

uint64_t digest_logits(const Session &session, size_t vocab_size) {
  uint64_t digest = 0xcbf29ce484222325u;
  for (size_t position = 0; position < kTokenCount; position++) {
    const float *logits = session.logits(position);
    for (size_t i = 0; i < vocab_size; i++) {
      uint32_t bits;
      memcpy(&bits, logits + i, sizeof(bits));
      for (int b = 0; b < 4; b++) digest = (digest ^ (bits >> (8 * b) & 0xff)) * 0x100000001b3u;
    }
  }
  return digest;
}

// The model's answer on one kernel set.
Status check_kernels(const Model *model, const Kernels *kernels, Failure *failure) {
  Settings settings;
  settings.kernels = kernels;
  Session *made = nullptr;
  Status status = Session::create(model, settings, &made, failure);
  if (status != kOk) return status;
  Ref<Session> session(made);
  status = session->append(kTokens, kTokenCount, LogitsMode::kAll, nullptr, failure);
  if (status != kOk) return status;
  uint64_t digest = digest_logits(*session, model->vocab_size());
  if (digest == kLogitsDigest) return kOk;
  return fail(failure, kInternal, "self-test: %s kernels gave logits with digest %016llx; expected %016llx", kernels->name,
              (unsigned long long)digest, (unsigned long long)kLogitsDigest);
}

Status selftest(Failure *failure) {
  FpScope contract;  // the weights too are computed
  Account account{MemoryHooks(), 0};
  Buffer<unsigned char> file;
  if (file.allocate(&account, kFileBytes, "self-test model", failure) != kOk) return failure->status;
  write_checkpoint(file.data());
  Source source;
  source.open_memory(file.data(), kFileBytes);
  Model *loaded = nullptr;
  Status status = Model::load(&source, Settings(), nullptr, &loaded, failure);
  if (status != kOk) return status;
  Ref<Model> model(loaded);
  for (size_t i = 0; status == kOk && i < kernels_count(); i++)
    if (kernels_available(i)) status = check_kernels(model.get(), kernels_at(i), failure);
  return status;
}

}  // namespace

}  // namespace proofinfer

extern "C" int32_t proofinfer_selftest(proofinfer_error **error) {
  proofinfer::Call call(error);
  return call.end(proofinfer::selftest(call.failure()));
}
