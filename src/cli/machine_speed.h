// What this machine can do at best, measured: reading memory, and multiplying and adding. Bounds for what bench measures.
#ifndef PROOFINFER_CLI_MACHINE_SPEED_H
#define PROOFINFER_CLI_MACHINE_SPEED_H

#include <stddef.h>

namespace proofinfer::cli {

// Memory as large as a model's weights, to be read whole by as many threads as the model computes with: once in small pages and once, where
// the system offers them, in huge ones.
class ReadBandwidth {
 public:
  ReadBandwidth(size_t bytes, size_t threads);
  ~ReadBandwidth();
  ReadBandwidth(const ReadBandwidth &) = delete;
  ReadBandwidth &operator=(const ReadBandwidth &) = delete;

  // Bytes a second: the best of 1, 4 and 8 streams a thread in either kind of pages, each read three times. 0 where there was no memory.
  double measure() const;

 private:
  size_t bytes_;  // of each, whole huge pages
  size_t threads_;
  void *memory_[2];
};

// Float operations a second of separate multiplications and additions in registers, by that many threads together: the best of a few runs.
double measure_multiply_add(size_t threads);

}  // namespace proofinfer::cli

#endif
