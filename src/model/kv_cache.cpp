#include "model/kv_cache.h"

#include "proved/checked.h"

namespace proofinfer {

static constexpr size_t kPageAlignment = 64;

Status KvCache::create(Account *account, const pi_kv_shape &shape, size_t context_length, Failure *failure) {
  uint64_t count, bytes;
  if (!pi_mul_checked(shape.n_layers * 2 * PI_PAGE_POSITIONS, shape.n_kv_heads, &count) ||
      !pi_mul_checked(count, shape.head_size, &count) || !pi_mul_checked(count, sizeof(float), &bytes) || bytes > SIZE_MAX)
    return fail(failure, kMemory, "KV cache: a page of %d positions has more bytes than this machine can address", PI_PAGE_POSITIONS);
  size_t page_count = context_length / PI_PAGE_POSITIONS + (context_length % PI_PAGE_POSITIONS != 0);
  Status status = pages_.allocate(account, page_count, "KV page table", failure);
  if (status != kOk) return status;
  for (size_t i = 0; i < page_count; i++) pages_[i] = nullptr;
  account_ = account;
  shape_ = shape;
  page_bytes_ = pi_kv_page_count(&shape_) * sizeof(float);
  for (size_t i = 0; i < page_count; i++) {
    pages_[i] = static_cast<float *>(account->allocate(page_bytes_, kPageAlignment, "KV cache", failure));
    if (!pages_[i]) return failure->status;
  }
  context_length_ = context_length;
  return kOk;
}

void KvCache::reset() {
  for (size_t i = 0; i < pages_.count(); i++)
    if (pages_[i]) account_->release(pages_[i], page_bytes_, kPageAlignment);
  pages_.reset();
}

void KvCache::store(size_t layer, size_t position, const float *key, const float *value) {
  size_t in_page = position % PI_PAGE_POSITIONS;
  float *page = pages_[position / PI_PAGE_POSITIONS];
  size_t n = shape_.head_size;
  for (size_t h = 0; h < shape_.n_kv_heads; h++) {
    float *keys = page + pi_kv_keys(&shape_, layer, h);
    float *values = page + pi_kv_values(&shape_, layer, h);
    if (in_page % PI_KEY_BLOCK == 0) memset(keys + pi_kv_key_element(&shape_, in_page, 0), 0, n * PI_KEY_BLOCK * sizeof(float));
    for (size_t e = 0; e < n; e++) keys[pi_kv_key_element(&shape_, in_page, e)] = key[h * n + e];
    for (size_t e = 0; e < n; e++) values[pi_kv_value_element(&shape_, in_page, e)] = value[h * n + e];
  }
}

}  // namespace proofinfer
