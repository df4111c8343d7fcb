#include "base/checksum.h"
#include "format/packed.h"
#include "mutate.h"

using namespace proofinfer_fuzz;

namespace {

int32_t load(const uint8_t *p) { return int32_t(proofinfer::load_u32(p)); }

// A small number from any.
int32_t within(int32_t value, int32_t most) { return 1 + int32_t((uint32_t(value) - 1) % uint32_t(most)); }

}  // namespace

// Mutates the fields and the weights, then makes header and size agree with the shape; now and then leaves one mistake.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  using namespace proofinfer;
  proofinfer_fuzz::Random random(seed);
  if (random.one_in(16) || size < kPackedHeaderBytes) return LLVMFuzzerMutate(data, size, max_size);
  LLVMFuzzerMutate(data + 24, 40, 40);
  if (size > kPackedHeaderBytes)
    size = kPackedHeaderBytes + LLVMFuzzerMutate(data + kPackedHeaderBytes, size - kPackedHeaderBytes, max_size - kPackedHeaderBytes);
  pi_checkpoint_header h;
  h.n_kv_heads = within(load(data + 40), 3);
  h.n_heads = h.n_kv_heads * within(load(data + 36), 3);
  h.dim = h.n_heads * 2 * within(load(data + 24), 3);
  h.hidden_dim = within(load(data + 28), 40);
  h.n_layers = within(load(data + 32), 3);
  h.vocab_size = within(load(data + 44), 60);
  h.seq_len = within(load(data + 48), 300);
  h.shared_classifier = data[52] % 2;
  h.group_size = random.one_in(2) ? 0 : within(load(data + 56), h.dim);
  while (h.group_size && (h.dim % h.group_size || h.hidden_dim % h.group_size)) h.group_size--;
  h.format = h.group_size ? PI_FORMAT_V2 : PI_FORMAT_V1;
  pi_checkpoint_layout layout;
  PackedPlan plan;
  int kind = 0;
  HOLDS(pi_checkpoint_plan(&h, &layout, &kind) == PI_LAYOUT_OK && plan.plan(layout));
  if (plan.file_bytes > max_size) return size;
  for (; size < plan.file_bytes; size++) data[size] = uint8_t(random.next());
  size = size_t(plan.file_bytes);
  write_packed_header(layout, plan, load_u64(data + 64), data);
  if (random.one_in(5)) data[random.one_in(3) ? random.below(4096) : random.below(72)] ^= uint8_t(1 + random.below(255));
  if (!random.one_in(8)) store_u64(data + kPackedHeaderBytes - 8, checksum_of(data, kPackedHeaderBytes - 8));
  if (random.one_in(16)) size -= random.below(uint32_t(size));
  return size;
}
