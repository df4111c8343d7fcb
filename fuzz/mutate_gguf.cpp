#include "format/gguf.h"
#include "mutate.h"
#include "support/gguf_model.h"

using namespace proofinfer_fuzz;
using proofinfer_test::GgufFile;

namespace {

GgufFile fresh_file(proofinfer_fuzz::Random *random) {
  proofinfer_test::GgufToy toy;
  toy.types.clear();
  uint32_t block = 1;
  for (uint32_t i = 0; i <= random->below(3); i++) {
    const auto &element = proofinfer_test::kGgufElements[random->below(std::size(proofinfer_test::kGgufElements))];
    toy.types.push_back(element.name);
    block = std::max(block, uint32_t(element.columns));
  }
  toy.dim = block == 1 ? 1 + random->below(12) : block;
  toy.n_kv_heads = 1 + random->below(2);
  toy.n_heads = toy.n_kv_heads * (1 + random->below(2));
  toy.head_size = 2 + 2 * random->below(2);
  toy.hidden_dim = 1 + random->below(4);
  toy.n_layers = 1 + random->below(2);
  toy.vocab_size = 1 + random->below(18);
  toy.context_length = 1 + random->below(100);
  toy.shared_classifier = random->one_in(2);
  if (random->one_in(3)) toy.rope[0] = 0.5f;
  if (random->one_in(3)) toy.rope[1] = 1.0f, toy.rope[2] = 3.0f;
  GgufFile file = proofinfer_test::toy_gguf(toy, random->next());
  if (random->one_in(2)) file.add("tokenizer.ggml.tokens", std::vector<std::string>(toy.vocab_size, "t"));
  if (random->one_in(2)) file.add_array("tokenizer.ggml.scores", proofinfer_test::kF32, std::vector<float>(toy.vocab_size, 0.5f));
  return file;
}

// A lie that the writer tells.
void tell_a_lie(GgufFile *file, proofinfer_fuzz::Random *random) {
  GgufFile::Tensor &tensor = file->tensors[random->below(uint32_t(file->tensors.size()))];
  GgufFile::Key &key = file->keys[random->below(uint32_t(file->keys.size()))];
  switch (random->below(9)) {
    case 0: tensor.offset = uint64_t(random->next()) << random->below(60); break;
    case 1: tensor.dims[0] = uint64_t(1) << random->below(64); break;
    case 2: tensor.dims.push_back(random->below(3)); break;
    case 3: tensor.type = random->below(40); break;
    case 4: key.type = random->below(14); break;
    case 5: file->keys.push_back(key); break;
    case 6: file->tensors.push_back(tensor); break;
    case 7: file->tensor_count = uint64_t(1) << random->below(64); break;
    default: file->key_count = uint64_t(1) << random->below(64); break;
  }
}

size_t copied(const std::vector<uint8_t> &file, uint8_t *data, size_t size, size_t max_size) {
  if (file.size() > max_size) return size;
  std::copy(file.begin(), file.end(), data);
  return file.size();
}

}  // namespace

// Mutates the weights of a good file, or one of its values; now and then the bytes as they come, or a file made anew.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  proofinfer_fuzz::Random random(seed);
  if (random.one_in(8)) return LLVMFuzzerMutate(data, size, max_size);
  proofinfer::Source source;
  source.open_memory(data, size);
  proofinfer::Account account(proofinfer::MemoryHooks(), 0);
  proofinfer::Failure failure;
  proofinfer::Gguf gguf;
  const bool opens = gguf.open(&source, &account, &failure) == proofinfer::kOk && gguf.tensor_count() > 0 && gguf.key_count() > 0;
  if (!opens || random.one_in(4)) {
    GgufFile file = fresh_file(&random);
    if (random.one_in(3)) tell_a_lie(&file, &random);
    return copied(file.bytes(), data, size, max_size);
  }
  if (random.one_in(3)) {
    const proofinfer::GgufKey &key = gguf.key(random.below(uint32_t(gguf.key_count())));
    const size_t bytes = std::max<size_t>(1, proofinfer::gguf_type_bytes(key.type));
    if (key.offset + bytes <= size) LLVMFuzzerMutate(data + key.offset, bytes, bytes);
    return size;
  }
  const proofinfer::GgufTensor &tensor = gguf.tensor(random.below(uint32_t(gguf.tensor_count())));
  LLVMFuzzerMutate(data + tensor.offset, size_t(tensor.bytes), size_t(tensor.bytes));
  return size;
}
