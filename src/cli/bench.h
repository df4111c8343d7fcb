// The figures of `proofinfer bench` and how they are told. A measurement is a function that returns figures; run_bench puts them in
// a row. One thread.
#ifndef PROOFINFER_CLI_BENCH_H
#define PROOFINFER_CLI_BENCH_H

#include <stdint.h>

#include <string>
#include <vector>

#include "engine.h"
#include "median.h"

namespace proofinfer::cli {

struct BenchPlan {
  size_t prompt_count = 0;  // tokens fed at once
  size_t decode_count = 0;  // tokens fed one after another
  size_t repeats = 0;
  size_t sessions = 0;  // that decode together, each token of all in one pass; 0: not measured
  bool bounds = true;   // measure the machine beside the model
  bool quiet = false;
};

// One quantity, measured once or more; its median is what counts.
struct Figure {
  const char *key;           // "decode_tokens_per_second"
  const char *label;         // "decode"
  const char *unit;          // "tok/s"; "bytes" is shown as MB in the table
  std::vector<double> runs;  // [at least 1]
};

// What the figures were measured on, and the figures.
std::string bench_table(const LoadedModel &model, const BenchPlan &plan, const std::vector<Figure> &figures);
std::string bench_json(const LoadedModel &model, const BenchPlan &plan, const std::vector<Figure> &figures);

}  // namespace proofinfer::cli

#endif
