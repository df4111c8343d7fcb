// A 64-bit checksum of bytes, the same on every machine; not cryptographic. A change within one aligned word of 8 bytes always shows: for it every
// step is a bijection. Any thread.
#ifndef PROOFINFER_BASE_CHECKSUM_H
#define PROOFINFER_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

namespace proofinfer {

// Over words given in order. Four lanes take turns, so that their multiplications overlap and memory is the limit.
class Checksum {
 public:
  static constexpr size_t kLanes = 4;

  // word(i) for i in [0, count): the value of little-endian word i.
  template <typename Word>
  void add(size_t count, const Word &word) {
    uint64_t a = lanes_[0], b = lanes_[1], c = lanes_[2], d = lanes_[3];
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      a = step(a, word(i));
      b = step(b, word(i + 1));
      c = step(c, word(i + 2));
      d = step(d, word(i + 3));
    }
    lanes_[0] = a, lanes_[1] = b, lanes_[2] = c, lanes_[3] = d;
    for (size_t lane = 0; i < count; i++, lane++) lanes_[lane] = step(lanes_[lane], word(i));
    words_ += count;
  }
  void add_word(uint64_t word) {
    add(1, [word](size_t) { return word; });
  }
  // Bytes as they lie in memory; a last word that is not full is filled up with zeros, and the number of bytes counts.
  void add_bytes(const void *data, size_t count);

  uint64_t value() const {
    uint64_t h = words_ * kFactor;
    for (uint64_t lane : lanes_) h = step(h ^ h >> 32, lane);
    return h ^ h >> 29;
  }

 private:
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
  static uint64_t step(uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * kFactor;
    return lane << 29 | lane >> 35;
  }

  uint64_t lanes_[kLanes] = {0x243F6A8885A308D3u, 0x13198A2E03707344u, 0xA4093822299F31D0u, 0x082EFA98EC4E6C89u};
  uint64_t words_ = 0;
};

inline uint64_t checksum_of(const void *data, size_t count) {
  Checksum sum;
  sum.add_bytes(data, count);
  return sum.value();
}

}  // namespace proofinfer

#endif
