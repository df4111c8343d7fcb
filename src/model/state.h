// The state of a session as bytes: what it holds, for which model, and a checksum. Little-endian on every machine; equal states give equal bytes.
//
//   offset  bytes  what
//        0      8  "PISTATE1"; the last character is the version
//        8      8  bytes of the whole state
//       16      8  positions held
//       24     36  dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len, group_size, shared_classifier of the model
//       60      4  1: the logits of the last position follow the tokens; 0: they do not
//       64      8  fingerprint of the model
//       72         tokens: int32 a position
//                  logits: vocab_size float32, or none
//                  keys and values: float32, KvCache::save
//                  checksum of all bytes before it: 8
#ifndef PROOFINFER_MODEL_STATE_H
#define PROOFINFER_MODEL_STATE_H

#include "model/session.h"

namespace proofinfer {

// Where the parts of a state lie.
struct StateLayout {
  static constexpr size_t kHeaderBytes = 72, kChecksumBytes = 8;
  uint64_t tokens, logits, kv, checksum, total;  // offsets; the size

  // False if the sizes exceed what can be addressed.
  bool plan(uint64_t position, uint64_t logits_count, uint64_t position_floats);
};

}  // namespace proofinfer

#endif
