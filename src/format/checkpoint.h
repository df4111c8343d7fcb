// Checkpoint bytes -> a checked directory of tensors. Knows no model. One thread at a time.
//
// Formats: llama2.c version 1 (float32) and version 2 (Q8_0), known by the magic "ak42" and the version number, and llama2.c legacy (seven int32,
// then float32 tensors; no magic), the last resort. In all of them the header's own size formula must give exactly the file's size:
// trailing bytes are an error. Bytes of a version header behind its fields are not looked at. And the packed file (format/packed.h).
//
// Errors: kUnrecognized (empty, or the bytes look like something else: the message says what), kUnsupported (a checkpoint of a format or
// version that is known by its magic and not read here), kTruncated (shorter than its header asks for; names the first tensor that is cut),
// kFormat (a header value that cannot be: names field, offset, found and expected; or longer than its header asks for).
#ifndef PROOFINFER_FORMAT_CHECKPOINT_H
#define PROOFINFER_FORMAT_CHECKPOINT_H

#include "base/source.h"
#include "format/packed.h"
#include "proved/checkpoint_layout.h"

namespace proofinfer {

struct TensorName {
  static constexpr size_t kCapacity = 48;
  char text[kCapacity];  // "token_embedding", "layers.3.wq", ...
};

struct TensorInfo {
  TensorName name;
  uint64_t rows, columns;
  uint64_t file_offset, file_bytes;
  const char *type;  // "f32", "q8_0", ...
  bool quantized;
};

class Checkpoint {
 public:
  // Reads the header, proves by the size that every tensor is there, and keeps the layout. Reads no tensor.
  Status open(Source *source, Failure *failure);

  // Of a packed file: the shape, and the places that tensors have in a file of version 1 or 2.
  const pi_checkpoint_layout &layout() const { return layout_; }
  bool packed() const { return packed_; }
  const PackedPlan &packed_plan() const { return packed_plan_; }
  uint64_t packed_fingerprint() const { return packed_fingerprint_; }
  uint64_t file_bytes() const { return packed_ ? packed_plan_.file_bytes : layout_.file_bytes; }
  const char *format_name() const;        // "llama2.c legacy", "llama2.c version 1", "llama2.c version 2", "proofinfer packed"
  const char *element_type_name() const;  // "f32", "q8_0"
  bool quantized() const { return layout_.group_size != 0; }

  // Tensors in file order, index in [0, tensor_count()). Of a packed file: norms and matrices as they stand in it, several tensors in one.
  uint64_t tensor_count() const;
  TensorInfo tensor(uint64_t index) const;
  // The name of tensor `index` of a kind.
  static TensorName kind_name(int kind, uint64_t index);
  // Weights in the file, each counted once; the unused RoPE tables are none.
  uint64_t parameter_count() const;

  // Reads rows [row, row + row_count) of tensor `index` of a float32 kind: row_count * columns floats.
  Status read_rows(Source *source, int kind, uint64_t index, uint64_t row, uint64_t row_count, float *to, Failure *failure) const;
  // The same of a quantized kind: q: [row_count][columns]; scales: [row_count][columns / group_size].
  Status read_quantized_rows(Source *source, int kind, uint64_t index, uint64_t row, uint64_t row_count, int8_t *q, float *scales,
                             Failure *failure) const;

 private:
  Status check_size(uint64_t size_bytes, Failure *failure) const;
  Status open_packed(Source *source, Failure *failure);
  TensorInfo packed_tensor(uint64_t index) const;
  pi_checkpoint_layout layout_;
  bool packed_ = false;
  PackedPlan packed_plan_ = {};
  uint64_t packed_fingerprint_ = 0;
};

}  // namespace proofinfer

#endif
