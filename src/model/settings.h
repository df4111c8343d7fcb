// The values of all options, with their defaults, as the model room reads them. Plain data.
#ifndef PROOFINFER_MODEL_SETTINGS_H
#define PROOFINFER_MODEL_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "kernels/kernels.h"

namespace proofinfer {

// Byte strings one after another.
struct StringList {
  const uint8_t *bytes = nullptr;  // [ends[count - 1]]
  const size_t *ends = nullptr;    // [count] where each ends; none is empty
  size_t count = 0;
};

struct Settings {
  static constexpr size_t kMaxStopTokens = 1024, kMaxStopStrings = 64, kMaxStopStringBytes = 1024;
  MemoryHooks hooks;
  uint64_t memory_limit_bytes = 0;  // 0: none
  int64_t threads = 1;              // the caller's included
  // Work that streams fewer bytes is not shared among threads: it is done before the others have noticed it, in some microseconds.
  uint64_t share_from_bytes = uint64_t(128) << 10;
  int64_t map = 1;                   // packed files: mapped instead of read
  int64_t verify = 0;                // packed files: all weights compared with the header's fingerprint
  const Kernels *kernels = nullptr;  // nullptr: not chosen
  int64_t context_length = 0;        // 0: min(seq_len, 4096)
  double temperature = 0.0;
  double top_p = 0.9;
  int64_t top_k = 0;       // 0: off
  double typical_p = 0.0;  // 0 or 1: off
  double min_p = 0.0;      // 0: off
  double repetition_penalty = 1.0;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  int64_t penalty_window = 64;
  uint64_t seed = 1;
  bool evaluated_by_others = false;  // a session's: it has no workspace, and append is never called
  int64_t max_generations = 64;
  int64_t prefill_chunk = 32;
  int64_t max_tokens = 0;                // 0: no limit
  const int32_t *stop_tokens = nullptr;  // [stop_token_count], valid during the call
  size_t stop_token_count = 0;
  bool has_stop_tokens = false;  // false: the tokenizer's default
  StringList stop_strings;       // valid during the call
  int64_t logprobs = 0;          // most probable alternatives to keep; 0: off
};

}  // namespace proofinfer

#endif
