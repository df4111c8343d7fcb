// Keys and values of the positions of one session, in pages of 64 positions (proved/kv_index.h). One thread at a time, but for reads.
#ifndef PROOFINFER_MODEL_KV_CACHE_H
#define PROOFINFER_MODEL_KV_CACHE_H

#include "base/memory.h"
#include "proved/kv_index.h"

namespace proofinfer {

class KvCache {
 public:
  KvCache() = default;
  KvCache(const KvCache &) = delete;
  KvCache &operator=(const KvCache &) = delete;
  ~KvCache() { reset(); }

  // Reserves pages for context_length positions.
  Status create(Account *account, const pi_kv_shape &shape, size_t context_length, Failure *failure);
  size_t context_length() const { return context_length_; }

  // Stores key and value of a position for one layer. key, value: [n_kv_heads][head_size]. Positions of a block of 16 come in ascending
  // order: the first one clears the lanes of the others.
  void store(size_t layer, size_t position, const float *key, const float *value);

  // Keys of a page for (layer, kv head): [4][head_size][16]; lanes of positions behind the last one stored hold zeros or older keys.
  const float *keys(size_t page, size_t layer, size_t kv_head) const { return pages_[page] + pi_kv_keys(&shape_, layer, kv_head); }
  // Values of a page: [64][head_size].
  const float *values(size_t page, size_t layer, size_t kv_head) const { return pages_[page] + pi_kv_values(&shape_, layer, kv_head); }
  const pi_kv_shape &shape() const { return shape_; }

 private:
  void reset();

  Account *account_ = nullptr;
  pi_kv_shape shape_ = {0, 0, 0, 0};
  size_t context_length_ = 0;
  size_t page_bytes_ = 0;
  Buffer<float *> pages_;  // [ceil(context_length / 64)], each of page_bytes_
};

}  // namespace proofinfer

#endif
