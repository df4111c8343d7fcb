// A model's file of any format that is read: what it is called, its shape, its tensors. One thread at a time; immutable once open.
#ifndef PROOFINFER_FORMAT_MODEL_FILE_H
#define PROOFINFER_FORMAT_MODEL_FILE_H

#include "format/checkpoint.h"
#include "format/gguf_llama.h"
#include "format/gguf_metadata.h"
#include "format/model_shape.h"

namespace proofinfer {

class ModelFile {
 public:
  // Checks everything but the weights. account: must outlive this. Errors: those of Checkpoint::open and GgufLlama::open.
  Status open(Source *source, Account *account, Failure *failure);

  bool is_gguf() const { return is_gguf_; }
  // GGUF files only, and all others only.
  const GgufLlama &gguf() const { return gguf_; }
  const Checkpoint &checkpoint() const { return checkpoint_; }
  bool packed() const { return !is_gguf_ && checkpoint_.packed(); }

  const ModelShape &shape() const { return shape_; }
  // Of the int8 groups of llama2.c's version 2; 0: there are none.
  uint64_t group_size() const { return is_gguf_ ? 0 : checkpoint_.layout().group_size; }

  const char *format_name() const;        // "llama2.c legacy", ..., "GGUF version 3"
  const char *element_type_name() const;  // of the matrices: "f32", "q8_0", ..., "mixed"
  uint64_t file_bytes() const { return is_gguf_ ? gguf_.gguf().file_bytes() : checkpoint_.file_bytes(); }
  uint64_t tensor_count() const { return is_gguf_ ? gguf_.gguf().tensor_count() : checkpoint_.tensor_count(); }
  TensorInfo tensor(uint64_t index) const;
  uint64_t parameter_count() const { return is_gguf_ ? gguf_.parameter_count() : checkpoint_.parameter_count(); }
  const GgufMetadata &metadata() const { return metadata_; }

 private:
  bool is_gguf_ = false;
  Checkpoint checkpoint_;
  GgufLlama gguf_;
  GgufMetadata metadata_;
  ModelShape shape_ = {};
};

}  // namespace proofinfer

#endif
