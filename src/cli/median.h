// The middle of some measurements.
#ifndef PROOFINFER_CLI_MEDIAN_H
#define PROOFINFER_CLI_MEDIAN_H

#include <algorithm>
#include <vector>

namespace proofinfer::cli {

// values: at least 1. Of an even number: the mean of the middle two.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace proofinfer::cli

#endif
