#include "model/kv_cache.h"

#include "base/source.h"
#include "proved/checked.h"

namespace proofinfer {

// Of positions [0, count), how many lie in a page.
static size_t filled_of_page(size_t page, size_t count) {
  size_t begin = page * PI_PAGE_POSITIONS;
  if (count <= begin) return 0;
  return count - begin < PI_PAGE_POSITIONS ? count - begin : PI_PAGE_POSITIONS;
}

Status KvCache::create(Ledger *ledger, const pi_kv_shape &shape, size_t context_length, const KvCache *prefix, size_t count,
                       Failure *failure) {
  uint64_t floats, bytes;
  if (!pi_mul_checked(shape.n_layers * 2 * PI_PAGE_POSITIONS, shape.n_kv_heads, &floats) ||
      !pi_mul_checked(floats, shape.head_size, &floats) || !pi_mul_checked(floats, sizeof(float), &bytes) ||
      bytes > SIZE_MAX - kHeaderBytes)
    return fail(failure, kMemory, "KV cache: a page of %d positions has more bytes than this machine can address", PI_PAGE_POSITIONS);
  size_t page_count = context_length / PI_PAGE_POSITIONS + (context_length % PI_PAGE_POSITIONS != 0);
  Status status = pages_.allocate(ledger->account(), page_count, "KV page table", failure);
  if (status != kOk) return status;
  for (size_t i = 0; i < page_count; i++) pages_[i] = nullptr;
  ledger_ = ledger;
  shape_ = shape;
  page_bytes_ = pi_kv_page_count(&shape_) * sizeof(float);
  for (size_t i = 0; i < page_count; i++) {
    size_t filled = filled_of_page(i, count);
    if (filled == PI_PAGE_POSITIONS) {
      header_of(prefix->pages_[i])->references.fetch_add(1, std::memory_order_relaxed);
      pages_[i] = prefix->pages_[i];
      continue;
    }
    pages_[i] = make_page(failure);
    if (!pages_[i]) return failure->status;
    if (filled) copy_page(prefix->pages_[i], filled, pages_[i]);
  }
  context_length_ = context_length;
  return kOk;
}

uint64_t KvCache::needed_bytes(const pi_kv_shape &shape, size_t context_length) {
  uint64_t page_count = (context_length + PI_PAGE_POSITIONS - 1) / PI_PAGE_POSITIONS;
  return page_count * (sizeof(float *) + kHeaderBytes + pi_kv_page_count(&shape) * sizeof(float));
}

float *KvCache::make_page(Failure *failure) const {
  size_t bytes = kHeaderBytes + page_bytes_;
  void *memory = ledger_->account()->allocate(bytes, kPageAlignment, "KV cache", failure);
  if (!memory) return nullptr;
  PageHeader *header = new (memory) PageHeader;
  header->references.store(1, std::memory_order_relaxed);
  header->bytes = bytes;
  header->ledger = ledger_;
  ledger_->retain();
  return reinterpret_cast<float *>(static_cast<unsigned char *>(memory) + kHeaderBytes);
}

void KvCache::drop_page(float *page) {
  PageHeader *header = header_of(page);
  if (header->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Ledger *ledger = header->ledger;
  ledger->account()->release(header, header->bytes, kPageAlignment);
  Object::release(ledger);
}

void KvCache::copy_page(const float *from, size_t count, float *to) const {
  size_t n = shape_.head_size, blocks = (count + PI_KEY_BLOCK - 1) / PI_KEY_BLOCK;
  for (size_t layer = 0; layer < shape_.n_layers; layer++)
    for (size_t h = 0; h < shape_.n_kv_heads; h++) {
      size_t keys = pi_kv_keys(&shape_, layer, h), values = pi_kv_values(&shape_, layer, h);
      memcpy(to + keys, from + keys, blocks * PI_KEY_BLOCK * n * sizeof(float));
      memcpy(to + values, from + values, count * n * sizeof(float));
    }
}

void KvCache::reset() {
  for (size_t i = 0; i < pages_.count(); i++)
    if (pages_[i]) drop_page(pages_[i]);
  pages_.reset();
}

Status KvCache::make_private(size_t begin, size_t end, size_t filled, Failure *failure) {
  for (size_t i = begin / PI_PAGE_POSITIONS; i * PI_PAGE_POSITIONS < end; i++) {
    // Alone means alone until this cache is cloned; acquire: what another cache read of the page, it has read.
    if (header_of(pages_[i])->references.load(std::memory_order_acquire) == 1) continue;
    float *page = make_page(failure);
    if (!page) return failure->status;
    copy_page(pages_[i], filled_of_page(i, filled), page);
    drop_page(pages_[i]);
    pages_[i] = page;
  }
  return kOk;
}

void KvCache::save(size_t count, unsigned char *to) const {
  size_t n = shape_.head_size;
  for (size_t layer = 0; layer < shape_.n_layers; layer++)
    for (int part = 0; part < 2; part++)
      for (size_t h = 0; h < shape_.n_kv_heads; h++)
        for (size_t p = 0; p < count; p++) {
          const float *keys_at = keys(p / PI_PAGE_POSITIONS, layer, h), *values_at = values(p / PI_PAGE_POSITIONS, layer, h);
          size_t in_page = p % PI_PAGE_POSITIONS;
          for (size_t e = 0; e < n; e++, to += sizeof(float))
            store_f32(to, part ? values_at[pi_kv_value_element(&shape_, in_page, e)] : keys_at[pi_kv_key_element(&shape_, in_page, e)]);
        }
}

void KvCache::load(size_t count, const unsigned char *from) {
  size_t n = shape_.head_size;
  for (size_t layer = 0; layer < shape_.n_layers; layer++)
    for (int part = 0; part < 2; part++)
      for (size_t h = 0; h < shape_.n_kv_heads; h++)
        for (size_t p = 0; p < count; p++) {
          float *page = pages_[p / PI_PAGE_POSITIONS];
          float *keys_at = page + pi_kv_keys(&shape_, layer, h), *values_at = page + pi_kv_values(&shape_, layer, h);
          size_t in_page = p % PI_PAGE_POSITIONS;
          if (!part && in_page % PI_KEY_BLOCK == 0)
            memset(keys_at + pi_kv_key_element(&shape_, in_page, 0), 0, n * PI_KEY_BLOCK * sizeof(float));
          for (size_t e = 0; e < n; e++, from += sizeof(float))
            (part ? values_at[pi_kv_value_element(&shape_, in_page, e)] : keys_at[pi_kv_key_element(&shape_, in_page, e)]) = load_f32(from);
        }
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
