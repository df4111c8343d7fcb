#include "base/memory.h"

#include "base/os.h"

namespace proofinfer {

// From this size on memory comes straight from the system, in huge pages where there are any, and goes straight back.
static constexpr size_t kMapThresholdBytes = size_t(4) << 20;

static void *take(const MemoryHooks &hooks, size_t bytes, size_t alignment) {
  if (hooks.allocate) return hooks.allocate(hooks.user, bytes, alignment);
  return bytes >= kMapThresholdBytes ? os_map_memory(bytes) : os_heap_allocate(bytes, alignment);
}

Status Account::charge(size_t bytes, const char *what, Failure *failure) {
  uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (limit_bytes_ && (used > limit_bytes_ || bytes > limit_bytes_ - used))
      return fail(failure, kLimit, "%s: %zu bytes more than the %llu held would exceed memory_limit_bytes %llu", what, bytes,
                  static_cast<unsigned long long>(used), static_cast<unsigned long long>(limit_bytes_));
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return kOk;
}

void *Account::allocate(size_t bytes, size_t alignment, const char *what, Failure *failure) {
  if (charge(bytes, what, failure) != kOk) return nullptr;
  void *memory = take(hooks_, bytes, alignment);
  if (memory) return memory;
  used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  fail(failure, kMemory, "%s: %zu bytes of memory could not be had", what, bytes);
  return nullptr;
}

void Account::release(void *memory, size_t bytes, size_t alignment) {
  used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (hooks_.release)
    hooks_.release(hooks_.user, memory, bytes, alignment);
  else if (bytes >= kMapThresholdBytes)
    os_unmap_memory(memory, bytes);
  else
    os_heap_free(memory);
}

}  // namespace proofinfer
