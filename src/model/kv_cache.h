// Keys and values of the positions of one session, in pages of 64 positions (proved/kv_index.h). One thread at a time, but for reads. Pages are
// counted and may belong to several caches, on any threads; a cache writes only to pages that it holds alone.
#ifndef PROOFINFER_MODEL_KV_CACHE_H
#define PROOFINFER_MODEL_KV_CACHE_H

#include "base/memory.h"
#include "base/object.h"
#include "proved/kv_index.h"

namespace proofinfer {

class KvCache {
 public:
  KvCache() = default;
  KvCache(const KvCache &) = delete;
  KvCache &operator=(const KvCache &) = delete;
  ~KvCache() { reset(); }

  // Reserves pages for context_length positions. ledger: must outlive the cache; its pages keep it alive. The first `count` positions are those
  // of `prefix` (nullptr with count 0): its full pages are shared, the one that is not full is copied.
  Status create(Ledger *ledger, const pi_kv_shape &shape, size_t context_length, const KvCache *prefix, size_t count, Failure *failure);
  // Memory that create takes without a prefix, for a shape that it accepts.
  static uint64_t needed_bytes(const pi_kv_shape &shape, size_t context_length);
  size_t context_length() const { return context_length_; }

  // Makes the pages of positions [begin, end) this cache's alone, so that they can be stored to. Positions below `filled` keep their keys and
  // values, those behind may lose them. Needs memory only where a page is shared. On failure every position is as before.
  Status make_private(size_t begin, size_t end, size_t filled, Failure *failure);

  // Stores key and value of a position for one layer, in a page made private. key, value: [n_kv_heads][head_size]. Positions of a block of 16
  // come in ascending order: the first one clears the lanes of the others.
  void store(size_t layer, size_t position, const float *key, const float *value);

  // Floats that one position takes, over all layers.
  size_t position_floats() const { return 2 * shape_.n_layers * shape_.n_kv_heads * shape_.head_size; }
  // Keys and values of positions [0, count) as little-endian float32, [layer][key, value][kv head][position][head_size], every NaN 0x7fc00000.
  void save(size_t count, unsigned char *to) const;
  // The reverse, into pages made private.
  void load(size_t count, const unsigned char *from);

  // Keys of a page for (layer, kv head): [4][head_size][16]; lanes of positions behind the last one stored hold zeros or older keys.
  const float *keys(size_t page, size_t layer, size_t kv_head) const { return pages_[page] + pi_kv_keys(&shape_, layer, kv_head); }
  // Values of a page: [64][head_size].
  const float *values(size_t page, size_t layer, size_t kv_head) const { return pages_[page] + pi_kv_values(&shape_, layer, kv_head); }
  const pi_kv_shape &shape() const { return shape_; }

 private:
  // In front of a page's floats.
  struct PageHeader {
    std::atomic<uint32_t> references;
    Ledger *ledger;  // whose memory it is; one reference
    size_t bytes;    // header included
  };
  static constexpr size_t kPageAlignment = 64;
  static constexpr size_t kHeaderBytes = kPageAlignment;
  static_assert(sizeof(PageHeader) <= kHeaderBytes, "the floats begin at a cache line");

  static PageHeader *header_of(float *page) {
    return reinterpret_cast<PageHeader *>(reinterpret_cast<unsigned char *>(page) - kHeaderBytes);
  }
  float *make_page(Failure *failure) const;
  static void drop_page(float *page);
  // The first `count` positions of a page, to a page of this cache's.
  void copy_page(const float *from, size_t count, float *to) const;
  void reset();

  Ledger *ledger_ = nullptr;
  pi_kv_shape shape_ = {0, 0, 0, 0};
  size_t context_length_ = 0;
  size_t page_bytes_ = 0;  // without the header
  Buffer<float *> pages_;  // [ceil(context_length / 64)], each of page_bytes_
};

}  // namespace proofinfer

#endif
