// A model's file to a checkpoint of llama2.c, row by row: memory is bounded by a few rows. One thread at a time.
#ifndef PROOFINFER_FORMAT_CONVERT_H
#define PROOFINFER_FORMAT_CONVERT_H

#include "base/cancel.h"
#include "base/sink.h"
#include "format/model_file.h"

namespace proofinfer {

// What to write. group_size: version 2 only; 0: the largest power of two up to 64 that divides dim and hidden_dim.
struct ConvertTarget {
  int32_t format;
  int32_t group_size;
};

// Float32 weights are copied, or quantized per group: scale = max|w| / 127, q = w / scale rounded half to even, zeros for a group of zeros; a
// NaN or an infinity is an error. Quantized weights become q * scale, or are copied when the group size is the same. The legacy format's
// RoPE tables, which its readers skip, are written as zeros. A GGUF file must have weights of the types F32, F16 and BF16, which widen exactly, and no
// more than the target's header can say: llama2.c's epsilon and RoPE, heads that make up the embedding.
Status convert(const ModelFile &from, Source *source, const ConvertTarget &target, Sink *sink, Account *account, Cancel *cancel,
               Failure *failure);

}  // namespace proofinfer

#endif
