// Draws for property tests: the same on every machine, replayable by their seed. One thread at a time.
#ifndef PROOFINFER_TESTS_SUPPORT_RANDOM_H
#define PROOFINFER_TESTS_SUPPORT_RANDOM_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>

namespace proofinfer_test {

inline uint64_t from_environment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  size_t below(size_t n) { return size_t(next() % n); }
  size_t between(size_t low, size_t high) { return low + below(high - low + 1); }
  bool chance(size_t percent) { return below(100) < percent; }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + std::ptrdiff_t(below(choices.size())));
  }

 private:
  uint64_t state_;
};

}  // namespace proofinfer_test

#endif
