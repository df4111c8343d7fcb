// The architecture `llama` in a GGUF file: keys -> shape, names of tensors -> kinds. What keys and tensors mean: docs/gguf.md. One thread at a time.
#ifndef PROOFINFER_FORMAT_GGUF_LLAMA_H
#define PROOFINFER_FORMAT_GGUF_LLAMA_H

#include "format/gguf.h"
#include "format/model_shape.h"
#include "proved/checkpoint_layout.h"

namespace proofinfer {

class GgufLlama {
 public:
  // Reads the directory and proves that every tensor is there with its dimensions, and none that would be ignored. Reads no tensor.
  // kUnsupported, beside the errors of Gguf::open: another architecture; a key or a tensor that asks for arithmetic that is not done here.
  // kFormat: a key is missing, of another type, or cannot be; a tensor is missing or of other dimensions.
  Status open(Source *source, Account *account, Failure *failure);

  const Gguf &gguf() const { return gguf_; }
  const ModelShape &shape() const { return shape_; }
  // kind: a PI_ kind but PI_ROPE_TABLES; the classifier only if it has weights of its own. index: the layer, 0 for kinds with one tensor.
  const GgufTensor &tensor(int kind, uint64_t index) const { return gguf_.tensor(places_[place(kind, index)]); }
  // Divides frequency i by its element i, [head_size / 2] float32; nullptr: none does.
  const GgufTensor *rope_factors() const { return rope_factors_; }
  // The file's elements, each counted once, those of rope_factors are no weights.
  uint64_t parameter_count() const;

  // Rows [row, row + count) of a tensor as they are in the file: count * row_bytes(tensor) bytes.
  Status read_rows(Source *source, const GgufTensor &tensor, uint64_t row, uint64_t count, void *to, Failure *failure) const;
  static uint64_t row_bytes(const GgufTensor &tensor) { return tensor.bytes / tensor.rows; }
  // The same as float32: types F32, F16 and BF16, which widen exactly. to: [count][columns].
  Status read_floats(Source *source, const GgufTensor &tensor, uint64_t row, uint64_t count, float *to, Failure *failure) const;

 private:
  Status read_architecture(Source *source, Failure *failure);
  Status read_shape(Failure *failure);
  Status read_attention(Failure *failure);
  Status read_rope(Source *source, Failure *failure);
  Status read_scaling(Source *source, Failure *failure);
  Status refuse_other_arithmetic(Failure *failure);
  Status read_vocabulary(Failure *failure);
  // An integer of 1 to 2^31 - 1.
  Status get_size(const char *name, Need need, uint64_t *value, Failure *failure);
  // The same, or an array of it, all equal.
  Status get_equal_sizes(Source *source, const char *name, Need need, uint64_t *value, Failure *failure);
  Status get_positive(const char *name, float *value, Failure *failure);
  // The text of key `name`, at most capacity - 1 bytes of it; "" if there is none.
  Status bind_tensors(Account *account, Failure *failure);
  Status bind(int kind, uint64_t index, uint64_t rows, uint64_t columns, Failure *failure);
  Status bind_rope_factors(Source *source, Failure *failure);
  Status refuse_other_tensors(Account *account, Failure *failure);

  static constexpr uint64_t kLayerKinds = 9;
  // The layers' kinds, PI_ATTENTION_NORM to PI_W3, then embedding, final norm and classifier.
  uint64_t place(int kind, uint64_t index) const {
    if (kind >= PI_ATTENTION_NORM && kind <= PI_W3) return index * kLayerKinds + static_cast<uint64_t>(kind - PI_ATTENTION_NORM);
    return shape_.n_layers * kLayerKinds + (kind == PI_EMBEDDING ? 0 : kind == PI_FINAL_NORM ? 1 : 2);
  }

  Gguf gguf_;
  ModelShape shape_ = {};
  Buffer<uint32_t> places_;  // [n_layers * kLayerKinds + 3]: indices of tensors
  uint64_t places_count_ = 0;
  const GgufTensor *rope_factors_ = nullptr;
};

}  // namespace proofinfer

#endif
