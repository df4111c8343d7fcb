#include "model/logits.h"

#include <math.h>
#include <string.h>

#include "kernels/logarithm.h"
#include "proved/elementary.h"
#include "proved/sampling.h"

namespace proofinfer {

namespace {

constexpr size_t kBlock = 1024;

// A heap of ids whose root is the last in rank of those in it.
class LowestFirst {
 public:
  LowestFirst(const float *logits, int32_t *ids) : logits_(logits), ids_(ids) {}
  bool ranks_before(int32_t a, int32_t b) const {
    float x = logits_[static_cast<size_t>(a)], y = logits_[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  }
  // Puts `id` at `place` or below it, what stands there having been taken out.
  void sink(size_t place, size_t count, int32_t id) {
    for (;;) {
      size_t child = 2 * place + 1;
      if (child >= count) break;
      if (child + 1 < count && ranks_before(ids_[child], ids_[child + 1])) child++;
      if (ranks_before(ids_[child], id)) break;
      ids_[place] = ids_[child];
      place = child;
    }
    ids_[place] = id;
  }

 private:
  const float *logits_;
  int32_t *ids_;
};

}  // namespace

bool is_finite(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x7F800000u) != 0x7F800000u;
}

Status check_finite(const float *logits, size_t n, Failure *failure) {
  for (size_t begin = 0; begin < n; begin += kBlock) {
    size_t end = n - begin < kBlock ? n : begin + kBlock;
    uint32_t bad = 0;
    for (size_t i = begin; i < end; i++) bad |= !is_finite(logits[i]);  // no early exit: the compiler makes it vectors
    if (!bad) continue;
    size_t i = begin;
    while (is_finite(logits[i])) i++;
    return fail(failure, kNotFinite, "the logit of id %zu is %s; expected finite values", i,
                isnan(logits[i]) ? "NaN"
                : logits[i] > 0  ? "infinity"
                                 : "-infinity");
  }
  return kOk;
}

LogSoftmax log_softmax(const float *x, size_t n) {
  float largest = x[pi_argmax_f32(x, n)], sum = 0.0f;
  for (size_t i = 0; i < n; i++) sum += pi_expf(x[i] - largest);
  return {largest, pi_logf(sum)};  // the sum is at least 1
}

void largest_logits(const float *logits, size_t n, int32_t *ids, size_t count) {
  if (count == 0) return;
  LowestFirst heap(logits, ids);
  for (size_t i = 0; i < count; i++) ids[i] = static_cast<int32_t>(i);
  for (size_t i = count / 2; i-- > 0;) heap.sink(i, count, ids[i]);
  for (size_t i = count; i < n; i++)
    if (logits[i] > logits[static_cast<size_t>(ids[0])]) heap.sink(0, count, static_cast<int32_t>(i));
  for (size_t left = count; left-- > 1;) {
    int32_t last = ids[0];
    heap.sink(0, left, ids[left]);
    ids[left] = last;
  }
}

}  // namespace proofinfer
