#include "format/model_file.h"

#include <stdio.h>
#include <string.h>

namespace proofinfer {

Status ModelFile::open(Source *source, Account *account, Failure *failure) {
  unsigned char first[4] = {0};
  size_t count = source->size_bytes() < sizeof(first) ? static_cast<size_t>(source->size_bytes()) : sizeof(first);
  Status status = source->read(0, first, count, "model header", failure);
  if (status != kOk) return status;
  is_gguf_ = Gguf::is_gguf(first, count);
  if (is_gguf_) {
    status = gguf_.open(source, account, failure);
    if (status == kOk) status = metadata_.read(source, gguf_.gguf(), account, failure);
    shape_ = gguf_.shape();
    return status;
  }
  status = checkpoint_.open(source, failure);
  if (status != kOk) return status;
  const pi_checkpoint_layout &l = checkpoint_.layout();
  shape_ = {l.dim,           l.hidden_dim,     l.n_layers,
            l.n_heads,       l.n_kv_heads,     l.head_size,
            l.vocab_size,    l.seq_len,        l.shared_classifier != 0,
            kLlama2cEpsilon, kLlama2cRopeBase, 1.0f};
  return kOk;
}

const char *ModelFile::format_name() const {
  if (!is_gguf_) return checkpoint_.format_name();
  return gguf_.gguf().version() == 2 ? "GGUF version 2" : "GGUF version 3";
}

const char *ModelFile::element_type_name() const {
  if (!is_gguf_) return checkpoint_.element_type_name();
  const GgufElement *found = nullptr;
  constexpr int kMatrices[] = {PI_EMBEDDING, PI_CLASSIFIER, PI_WQ, PI_WK, PI_WV, PI_WO, PI_W1, PI_W2, PI_W3};
  for (int kind : kMatrices) {
    bool of_layer = kind >= PI_ATTENTION_NORM && kind <= PI_W3;
    if (kind == PI_CLASSIFIER && shape_.shared_classifier) continue;
    for (uint64_t i = 0; i < (of_layer ? shape_.n_layers : 1); i++) {
      const GgufElement *element = gguf_element(gguf_.tensor(kind, i).type);
      if (found && found != element) return "mixed";
      found = element;
    }
  }
  return found->text;
}

TensorInfo ModelFile::tensor(uint64_t index) const {
  if (!is_gguf_) return checkpoint_.tensor(index);
  const GgufTensor &tensor = gguf_.gguf().tensor(static_cast<size_t>(index));
  const GgufElement *element = gguf_element(tensor.type);
  TensorInfo info{{}, tensor.rows, tensor.columns, tensor.offset, tensor.bytes, element->text, element->block_columns > 1};
  // The names that have a place are short.
  snprintf(info.name.text, TensorName::kCapacity, "%.*s", static_cast<int>(tensor.name_bytes), gguf_.gguf().name(tensor));
  return info;
}

}  // namespace proofinfer
