// Writes the small model and tokenizer of the tests to two files: make_small_model MODEL TOKENIZER.
#include <cstdio>

#include "support/small_world.h"

static bool write(const char *path, const std::vector<uint8_t> &bytes) {
  std::FILE *file = std::fopen(path, "wb");
  if (!file) return false;
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && written;
}

int main(int argc, char **argv) {
  using namespace proofinfer_test;
  if (argc != 3) return 2;
  return write(argv[1], small_checkpoint()) && write(argv[2], tokenizer_file(small_pieces())) ? 0 : 1;
}
