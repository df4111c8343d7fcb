// The packed file: weights as they lie in memory, so that they can be mapped. One layout on every machine. Plain functions, any thread.
//
//   offset  bytes  what (little-endian)
//        0      8  "PIPACKED"
//        8      4  version: 1
//       12      4  0
//       16      8  bytes of the file
//       24     28  int32 dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
//       52      4  1: the classifier is the embedding; 0: it has weights of its own
//       56      4  int32 group_size; 0: float32
//       60      4  0
//       64      8  fingerprint of shape and weights
//       72         0 up to 4088
//     4088      8  checksum of the bytes before it
//     4096         norm weights: [n_layers][attention, ffn][dim], [dim]; zeros up to a multiple of 4096
//                  packed matrices: n_layers times wq wk wv, wo, w1 w3, w2; embedding; classifier if it has weights of its own
//
// No offset stands in the header: the shape gives them all, so that none can lie. On a header's word nothing but numbers is believed: whatever the
// weights are, they change results and never which memory is read.
#ifndef PROOFINFER_FORMAT_PACKED_H
#define PROOFINFER_FORMAT_PACKED_H

#include "base/source.h"
#include "proved/checkpoint_layout.h"

namespace proofinfer {

constexpr size_t kPackedHeaderBytes = 4096;
constexpr uint32_t kPackedVersion = 1;

// Where the parts of packed weights lie, in a file and in memory.
struct PackedPlan {
  uint64_t qkv_bytes, o_bytes, w13_bytes, w2_bytes, layer_bytes;  // of one layer
  uint64_t table_bytes;                                           // of the embedding, and of the classifier
  uint64_t weights_bytes, norms_count;
  uint64_t weights_offset, file_bytes;

  // False if the sizes exceed 2^63 - 1 bytes.
  bool plan(const pi_checkpoint_layout &layout);
};

struct PackedHeader {
  pi_checkpoint_header shape;  // its format is PI_FORMAT_V1 or PI_FORMAT_V2, by the group size
  uint64_t file_bytes;
  uint64_t fingerprint;
};

// Whether the first bytes of a file are those of a packed file.
bool is_packed(const unsigned char *first, size_t count);
// Checks everything in a header but the shape, which pi_checkpoint_plan checks.
Status read_packed_header(Source *source, PackedHeader *header, Failure *failure);
// bytes: [kPackedHeaderBytes].
void write_packed_header(const pi_checkpoint_layout &layout, const PackedPlan &plan, uint64_t fingerprint, unsigned char *bytes);

// Turns packed weights read as raw bytes into this machine's order, or back, in place; whole blocks of the layout. Nothing to do on little-endian machines.
void swap_packed(unsigned char *weights, size_t bytes, size_t group_size);

}  // namespace proofinfer

#endif
