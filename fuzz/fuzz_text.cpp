// Text to ids and back, with a vocabulary that has all byte pieces. Input: u8 flags, then the text; its bytes are also taken as ids.
#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

using Text = std::vector<char>;

void add(Text *to, const char *bytes, size_t count) { to->insert(to->end(), bytes, bytes + count); }

// Pushes ids, each first into a buffer that may be too small, and gives all that came out.
Text stream_text(const proofinfer_tokenizer *tokenizer, int32_t previous, const std::vector<int32_t> &ids) {
  Out<proofinfer_stream> made;
  proofinfer_stream *stream = made.of(call(proofinfer_stream_create, tokenizer, previous, &made.handle));
  Text all;
  char small[2], large[64];
  size_t needed = 0;
  for (int32_t id : ids) {
    int32_t status = call(proofinfer_stream_push, stream, id, small, sizeof(small), &needed);
    const char *from = small;
    if (status == PROOFINFER_E_BUFFER) {
      HOLDS(needed > sizeof(small) && needed <= sizeof(large));
      const size_t promised = needed;
      status = call(proofinfer_stream_push, stream, id, large, sizeof(large), &needed);
      HOLDS(needed == promised);
      from = large;
    }
    HOLDS(status == PROOFINFER_OK && is_utf8(from, needed));
    add(&all, from, needed);
  }
  HOLDS(call(proofinfer_stream_flush, stream, large, sizeof(large), &needed) == PROOFINFER_OK && is_utf8(large, needed));
  add(&all, large, needed);
  proofinfer_stream_free(stream);
  return all;
}

void round_trip(const proofinfer_tokenizer *tokenizer, const char *text, size_t bytes, uint32_t flags) {
  std::vector<int32_t> ids(bytes + 3);
  size_t count = 0, again = 0;
  HOLDS(call(proofinfer_tokenizer_encode, tokenizer, text, bytes, flags, ids.data(), ids.size(), &count) == PROOFINFER_OK);
  HOLDS(count <= ids.size());
  ids.resize(count);
  std::vector<int32_t> exact(count);
  if (count > 0)
    HOLDS(call(proofinfer_tokenizer_encode, tokenizer, text, bytes, flags, exact.data(), count - 1, &again) == PROOFINFER_E_BUFFER &&
          again == count);
  HOLDS(call(proofinfer_tokenizer_encode, tokenizer, text, bytes, flags, exact.data(), count, &again) == PROOFINFER_OK);
  HOLDS(again == count && exact == ids);
  if (flags & PROOFINFER_ENCODE_EOS) ids.pop_back();
  if (flags & PROOFINFER_ENCODE_BOS) ids.erase(ids.begin());
  Text decoded;
  int32_t previous = 1;  // BOS: the space that encoding put first is dropped
  for (int32_t id : ids) {
    char piece[64];
    size_t needed = 0;
    HOLDS(call(proofinfer_tokenizer_decode, tokenizer, previous, id, 0u, piece, sizeof(piece), &needed) == PROOFINFER_OK);
    add(&decoded, piece, needed);
    previous = id;
  }
  HOLDS(decoded == Text(text, text + bytes));
  const Text streamed = stream_text(tokenizer, 1, ids);
  if (is_utf8(text, bytes)) HOLDS(streamed == decoded);
}

proofinfer_tokenizer *open_fixed_tokenizer() {
  proofinfer_options *options = make_measured_options();
  Out<proofinfer_tokenizer> made;
  const std::vector<uint8_t> &file = fixed_tokenizer();
  proofinfer_tokenizer *tokenizer =
      made.of(call(proofinfer_tokenizer_open_memory, file.data(), file.size(), kFixedVocabSize, options, &made.handle));
  HOLDS(tokenizer != nullptr);
  proofinfer_options_free(options);
  return tokenizer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const proofinfer_tokenizer *const tokenizer = open_fixed_tokenizer();
  Case c(size);
  c.count_as_loaded();
  Reader in(data, size);
  const uint32_t flags = in.u8();
  const Text text(in.data(), in.data() + in.left());
  size_t needed = 0;
  if (flags > 15)
    HOLDS(call(proofinfer_tokenizer_encode, tokenizer, text.data(), text.size(), flags, nullptr, size_t(0), &needed) ==
          PROOFINFER_E_ARGUMENT);
  round_trip(tokenizer, text.data(), text.size(), flags & 3);
  std::vector<int32_t> ids;
  while (!in.ended()) ids.push_back(in.u16() % kFixedVocabSize);
  stream_text(tokenizer, -1, ids);
  return 0;
}
