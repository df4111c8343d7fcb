// What all fuzz targets share: calls that check the error object, memory hooks that measure, and what must hold of every execution.
// One thread.
//
// Nothing here or in a target needs the C++ library's compiled part, so that a build with MemorySanitizer can run them.
#ifndef PROOFINFER_FUZZ_HARNESS_H
#define PROOFINFER_FUZZ_HARNESS_H

#include <proofinfer.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// The target: what libFuzzer and the replay call.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace proofinfer_fuzz {

// Prints and aborts, which is how a target tells libFuzzer of a find.
[[noreturn]] void broken(const char *file, int line, const char *what);
#define HOLDS(condition) ((condition) ? void(0) : proofinfer_fuzz::broken(__FILE__, __LINE__, #condition))

// The error object is there exactly on failure, has the status's code and a message. Frees it.
void check_error(int32_t status, proofinfer_error *error);

// call(proofinfer_x, arguments...) calls proofinfer_x(arguments..., &error), checks the error and gives the status.
template <typename... Parameters, typename... Arguments>
int32_t call(int32_t (*function)(Parameters...), Arguments... arguments) {
  proofinfer_error *error = reinterpret_cast<proofinfer_error *>(uintptr_t(1));  // must be overwritten
  int32_t status = function(arguments..., &error);
  check_error(status, error);
  return status;
}

// An out-parameter for a handle: it must be overwritten by NULL on failure and by a handle on success.
template <typename T>
struct Out {
  T *handle = reinterpret_cast<T *>(uintptr_t(1));
  T *of(int32_t status) {
    HOLDS((status == PROOFINFER_OK) == (handle != nullptr));
    HOLDS(handle != reinterpret_cast<T *>(uintptr_t(1)));
    return handle;
  }
};

// One execution. At its end all memory that it took was released, and at no time was there more than 4 times the input and 16 MiB of it. Its
// time is measured in time_limit.cpp.
class Case {
 public:
  explicit Case(size_t input_bytes);
  ~Case();
  Case(const Case &) = delete;
  Case &operator=(const Case &) = delete;
  // Options whose objects take measured memory.
  proofinfer_options *options() { return options_; }
  // The input got past the loader; the share of those is printed at the end.
  void count_as_loaded();

 private:
  size_t input_bytes_;
  uint64_t begin_bytes_;
  proofinfer_options *options_;
};

// Options whose objects take measured memory; for what lives longer than one execution.
proofinfer_options *make_measured_options();

// Takes values off the front of an input; 0 when it has ended.
class Reader {
 public:
  Reader(const uint8_t *data, size_t size) : data_(data), size_(size) {}
  bool ended() const { return size_ == 0; }
  size_t left() const { return size_; }
  const uint8_t *data() const { return data_; }
  uint8_t u8() {
    if (size_ == 0) return 0;
    size_--;
    return *data_++;
  }
  uint16_t u16() {
    uint16_t low = u8();
    return uint16_t(low | u8() << 8);
  }
  int32_t i32() {
    uint32_t low = u16();
    return int32_t(low | uint32_t(u16()) << 16);
  }

 private:
  const uint8_t *data_;
  size_t size_;
};

// Numbers that decide what a mutator does.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return uint32_t((z ^ z >> 31) >> 16);
  }
  uint32_t below(uint32_t n) { return next() % n; }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

// What every model from a checkpoint must say of itself and do; `context` positions are computed.
void check_model(Case *c, proofinfer_model *model, size_t file_bytes, size_t context);
// The part of it that evaluates tokens, up to `context` of them, in a session.
void check_evaluation(Case *c, proofinfer_model *model, size_t context);
// The same for one from a packed file, of which one position is computed.
void check_packed_model(Case *c, proofinfer_model *model);

// The small vocabulary and the small checkpoints that the text and the session target work with. Computed once.
const std::vector<uint8_t> &fixed_tokenizer();
constexpr int32_t kFixedVocabSize = 268;
const std::vector<uint8_t> &fixed_checkpoint(int format);

bool is_utf8(const char *text, size_t bytes);

}  // namespace proofinfer_fuzz

#endif
