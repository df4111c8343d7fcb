// Opening a tokenizer and using it. Input: u16 vocab_size, then the file; the file's own bytes are also the text that is encoded.
#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

void check_piece(proofinfer_tokenizer *tokenizer, int32_t id, std::vector<char> *buffer) {
  size_t needed = 0, decoded = 0;
  float score = 0.0f;
  int32_t status = call(proofinfer_tokenizer_piece, tokenizer, id, buffer->data(), buffer->size(), &needed, &score);
  HOLDS(status == PROOFINFER_OK && score - score == 0.0f);
  status = call(proofinfer_tokenizer_decode, tokenizer, id - 1, id, 0u, buffer->data(), buffer->size(), &decoded);
  HOLDS(status == PROOFINFER_OK && decoded <= needed);
  if (needed > 0) HOLDS(call(proofinfer_tokenizer_piece, tokenizer, id, nullptr, size_t(0), &needed, &score) == PROOFINFER_E_BUFFER);
}

void encode(proofinfer_tokenizer *tokenizer, const char *text, size_t bytes, uint32_t flags) {
  std::vector<int32_t> ids(2 * bytes + 3);
  size_t count = 0;
  int32_t status = call(proofinfer_tokenizer_encode, tokenizer, text, bytes, flags, ids.data(), ids.size(), &count);
  HOLDS(status == PROOFINFER_OK || status == PROOFINFER_E_FORMAT);
  if (status != PROOFINFER_OK) return;
  HOLDS(count <= ids.size());
  for (size_t i = 0; i < count; i++) HOLDS(ids[i] >= 0 && ids[i] < proofinfer_tokenizer_vocab_size(tokenizer));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Case c(size);
  Reader in(data, size);
  const int32_t vocab_size = in.u16();
  const std::vector<uint8_t> file(in.data(), in.data() + in.left());
  Out<proofinfer_tokenizer> made;
  proofinfer_tokenizer *tokenizer =
      made.of(call(proofinfer_tokenizer_open_memory, file.data(), file.size(), vocab_size, c.options(), &made.handle));
  if (!tokenizer) return 0;
  c.count_as_loaded();
  const int32_t pieces = proofinfer_tokenizer_vocab_size(tokenizer);
  HOLDS(vocab_size == 0 ? pieces > 0 : pieces == vocab_size);
  std::vector<char> buffer(file.size());
  for (int32_t id = 0; id < pieces && id < 300; id++) check_piece(tokenizer, id, &buffer);
  const char *text = reinterpret_cast<const char *>(file.data());
  const size_t half = file.size() / 2;
  encode(tokenizer, text, file.size(), 0);
  encode(tokenizer, text + half, file.size() - half, PROOFINFER_ENCODE_BOS | PROOFINFER_ENCODE_EOS | PROOFINFER_ENCODE_SPECIAL);
  encode(tokenizer, "the ab", 6, PROOFINFER_ENCODE_DEFAULT);
  proofinfer_tokenizer_free(tokenizer);
  return 0;
}
