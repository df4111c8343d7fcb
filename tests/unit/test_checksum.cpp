// The checksum of files and states: its definition a second time, byte by byte, for every length of the last word and every lane.
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace proofinfer_test {

namespace {

struct Plain {
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;  // 2^64 divided by the golden ratio
  // The digits of pi.
  uint64_t lanes[4] = {0x243F6A8885A308D3u, 0x13198A2E03707344u, 0xA4093822299F31D0u, 0x082EFA98EC4E6C89u};
  uint64_t words = 0;

  static uint64_t turned(uint64_t lane, uint64_t word) {
    uint64_t product = (lane ^ word) * kFactor, turned = product;
    for (int i = 0; i < 29; i++) turned = turned * 2 + (turned >> 63);
    return turned;
  }
  void add(size_t lane, uint64_t word) {
    lanes[lane] = turned(lanes[lane], word);
    words++;
  }
  void add_bytes(const std::string &bytes) {
    std::string padded = bytes;
    while (padded.size() % 8 != 0) padded += '\0';
    for (size_t at = 0; at < padded.size(); at += 8) {
      uint64_t word = 0;
      for (size_t i = 8; i-- > 0;) word = word * 256 + static_cast<unsigned char>(padded[at + i]);
      // A word that was filled up begins anew, as the count does.
      add(at + 8 <= bytes.size() ? at / 8 % 4 : 0, word);
    }
    add(0, bytes.size());
  }
  uint64_t value() const {
    uint64_t h = words * kFactor;
    for (uint64_t lane : lanes) h = turned(h ^ (h >> 32), lane);
    return h ^ (h >> 29);
  }
};

std::string bytes_of(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; i++) bytes += static_cast<char>(i * 151 + 37 + i / 64);
  return bytes;
}

}  // namespace

TEST(Checksum, is_what_its_definition_says_at_every_length) {
  for (size_t count = 0; count <= 150; count++) {
    const std::string bytes = bytes_of(count);
    Plain plain;
    plain.add_bytes(bytes);
    EXPECT_EQ(proofinfer::checksum_of(bytes.data(), bytes.size()), plain.value()) << count << " bytes";
  }
}

TEST(Checksum, goes_on_from_one_piece_to_the_next) {
  for (size_t first : {0, 1, 8, 31, 32, 40})
    for (size_t second : {0, 7, 8, 24, 33}) {
      Plain plain;
      plain.add_bytes(bytes_of(first));
      plain.add_bytes(bytes_of(second));
      plain.add(0, 0x0123456789ABCDEFu);
      proofinfer::Checksum sum;
      sum.add_bytes(bytes_of(first).data(), first);
      sum.add_bytes(bytes_of(second).data(), second);
      sum.add_word(0x0123456789ABCDEFu);
      EXPECT_EQ(sum.value(), plain.value()) << first << " bytes, then " << second;
    }
}

}  // namespace proofinfer_test
