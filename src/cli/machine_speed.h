// What this machine can do at best, measured: reading memory, and multiplying and adding. Bounds for what bench measures.
#ifndef PROOFINFER_CLI_MACHINE_SPEED_H
#define PROOFINFER_CLI_MACHINE_SPEED_H

#include <stddef.h>

#include <vector>

namespace proofinfer::cli {

// Memory as large as a model's weights, to be read whole by as many threads as the model computes with: once in small pages and once, where
// the system offers them, in huge ones.
class ReadBandwidth {
 public:
  ReadBandwidth(size_t bytes, size_t threads);
  ~ReadBandwidth();
  ReadBandwidth(const ReadBandwidth &) = delete;
  ReadBandwidth &operator=(const ReadBandwidth &) = delete;

  // Tries 1, 4 and 8 streams a thread in either kind of pages, then reads for about so many seconds in the way that has the best median up to
  // now: the bytes a second of that. As long as the thing to compare with took, because other users of the memory disturb both alike then.
  // 0 where there was no memory.
  double measure(double seconds);

 private:
  double read_seconds(size_t pages, size_t streams) const;

  size_t bytes_;  // of each, whole huge pages
  size_t threads_;
  void *memory_[2];
  std::vector<double> trials_[2][3];  // seconds, [small or huge pages][1, 4 or 8 streams]
};

// Float operations a second of separate multiplications and additions in registers, by that many threads together: the best of a few runs.
double measure_multiply_add(size_t threads);

}  // namespace proofinfer::cli

#endif
