// SHA-256 (FIPS 180-4) for comparing with recorded figures. Plain functions, any thread.
#ifndef PROOFINFER_TESTS_SUPPORT_SHA256_H
#define PROOFINFER_TESTS_SUPPORT_SHA256_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace proofinfer_test {

class Sha256 {
 public:
  void add(const void *data, size_t bytes);
  // Ends the message: 64 lower-case hexadecimal digits. The object is used up.
  std::string hex();

 private:
  void compress(const uint8_t *block);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t block_[64] = {};
  uint64_t total_bytes_ = 0;
};

std::string sha256_hex(const void *data, size_t bytes);
std::string sha256_hex(const std::vector<uint8_t> &bytes);

}  // namespace proofinfer_test

#endif
