// What the operating system says: the processors this program may use and the memory it has used. Any thread.
#ifndef PROOFINFER_CLI_SYSTEM_H
#define PROOFINFER_CLI_SYSTEM_H

#include <stdint.h>

namespace proofinfer::cli {

// Processors that the program may use: those in its affinity mask, at most what the quota of its control group pays for (versions 1
// and 2), at least 1. Where there are no control groups the affinity alone counts.
int64_t usable_cpu_count();

// The largest memory that the program has had resident so far; 0: unknown.
uint64_t peak_memory_bytes();

// Seconds from a clock that never goes back.
double seconds_now();

}  // namespace proofinfer::cli

#endif
