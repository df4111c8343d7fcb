// How fast texts of 1 MB become ids: bench_tokenizer VOCABULARY PROSE CODE [repetitions]. VOCABULARY: a GGUF file or a tokenizer.bin of 32000 pieces;
// PROSE, CODE: text files, repeated to 1 MB. Prints medians of MB a second, one thread, and how long opening takes. Standalone.
#include <proofinfer.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/vocabulary.h"

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::string megabyte_of(const std::string &unit) {
  std::string text;
  while (text.size() < 1000000) text += unit;
  text.resize(1000000);
  return text;
}

std::string read(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) {
    std::fprintf(stderr, "%s: cannot be read\n", path);
    std::exit(1);
  }
  return text;
}

proofinfer_tokenizer *open(const std::string &data) {
  proofinfer_tokenizer *tokenizer = nullptr;
  proofinfer_error *error = nullptr;
  const int32_t pieces = data.compare(0, 4, "GGUF") == 0 ? 0 : 32000;
  if (proofinfer_tokenizer_open_memory(data.data(), data.size(), pieces, nullptr, &tokenizer, &error) != PROOFINFER_OK) {
    std::fprintf(stderr, "%s\n", proofinfer_error_message(error));
    std::exit(1);
  }
  return tokenizer;
}

// Rules for runs of one letter in an order that no training gives: the longest first, so that each merge calls for others at once.
std::string hostile() {
  proofinfer_test::RuleVocabulary vocabulary;
  for (size_t i = 64; i >= 2; i--) vocabulary.rules.push_back({std::string(i / 2, 'a'), std::string(i - i / 2, 'a')});
  proofinfer_test::Bytes bytes = proofinfer_test::rule_file(vocabulary).bytes();
  return std::string(bytes.begin(), bytes.end());
}

void measure(const char *name, const proofinfer_tokenizer *tokenizer, const std::string &text, int repetitions) {
  std::vector<int32_t> ids(2 * text.size() + 3);
  std::vector<double> seconds;
  size_t count = 0;
  for (int i = 0; i < repetitions; i++) {
    const double start = now();
    if (proofinfer_tokenizer_encode(tokenizer, text.data(), text.size(), 0, ids.data(), ids.size(), &count, nullptr) != PROOFINFER_OK)
      std::exit(1);
    seconds.push_back(now() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("%-16s %6.1f MB/s  %7zu ids\n", name, 1e-6 * static_cast<double>(text.size()) / seconds[seconds.size() / 2], count);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "bench_tokenizer VOCABULARY PROSE CODE [repetitions]\n");
    return 2;
  }
  const int repetitions = argc > 4 ? std::atoi(argv[4]) : 9;
  const std::string file = read(argv[1]);
  const double start = now();
  proofinfer_tokenizer *tokenizer = open(file);
  std::printf("opening          %6.1f ms, %d pieces\n", 1e3 * (now() - start), proofinfer_tokenizer_vocab_size(tokenizer));
  measure("prose", tokenizer, megabyte_of(read(argv[2])), repetitions);
  measure("code", tokenizer, megabyte_of(read(argv[3])), repetitions);
  for (const char *unit : {"a", "ab", " ", "\n", "1", "!"})
    measure(*unit == '\n' ? "line ends" : (std::string("only '") + unit + "'").c_str(), tokenizer, megabyte_of(unit), repetitions);
  proofinfer_tokenizer *worst = open(hostile());
  measure("hostile rules", worst, megabyte_of("a"), repetitions);
  proofinfer_tokenizer_free(worst);
  proofinfer_tokenizer_free(tokenizer);
  return 0;
}
