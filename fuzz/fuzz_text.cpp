// Text to ids and back, with vocabularies that have all byte pieces. Input: u8 vocabulary << 4 | flags, then the text; its bytes are also taken as
// ids.
#include <string>

#include "harness.h"
#include "support/vocabulary.h"

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

struct Vocabulary {
  proofinfer_tokenizer *tokenizer;
  bool marks_spaces;  // U+2581 in a text is a space
};

// What comes back: a typed mark does as a space.
Text expected_text(const Vocabulary &vocabulary, const char *text, size_t bytes) {
  Text expected;
  for (size_t i = 0; i < bytes; i++) {
    const bool mark = vocabulary.marks_spaces && bytes - i >= 3 && std::string(text + i, 3) == "\xE2\x96\x81";
    expected.push_back(mark ? ' ' : text[i]);
    if (mark) i += 2;
  }
  return expected;
}

void round_trip(const Vocabulary &vocabulary, const char *text, size_t bytes, uint32_t flags) {
  const proofinfer_tokenizer *tokenizer = vocabulary.tokenizer;
  std::vector<int32_t> ids(2 * bytes + 3);
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
  if (flags & (PROOFINFER_ENCODE_SPECIAL | PROOFINFER_ENCODE_DEFAULT)) return;  // control pieces are no text
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
  HOLDS(decoded == expected_text(vocabulary, text, bytes));
  const Text streamed = stream_text(tokenizer, 1, ids);
  if (is_utf8(text, bytes)) HOLDS(streamed == decoded);
}

proofinfer_tokenizer *open_fixed(const std::vector<uint8_t> &file, int32_t vocab_size) {
  proofinfer_options *options = make_measured_options();
  Out<proofinfer_tokenizer> made;
  proofinfer_tokenizer *tokenizer =
      made.of(call(proofinfer_tokenizer_open_memory, file.data(), file.size(), vocab_size, options, &made.handle));
  HOLDS(tokenizer != nullptr);
  proofinfer_options_free(options);
  return tokenizer;
}

// The small tokenizer.bin, one of each pre-tokenizer, one of SentencePiece's kind; BOS is 1 in all of them.
std::vector<Vocabulary> open_vocabularies() {
  using namespace proofinfer_test;
  std::vector<Vocabulary> all = {{open_fixed(fixed_tokenizer(), kFixedVocabSize), false}};
  for (const char *pre : {"default", "gpt-2", "smollm", "llama-bpe"}) {
    RuleVocabulary rules;
    rules.pre = pre;
    rules.rules = {{"a", "b"}, {"ab", "ab"}, {" ", "ab"}, {"1", "1"}, {"\n", "\n"}, {"\xC3", "\xA9"}, {"b", "a"}, {"<", "<"}};
    rules.others = {{letters_of(" the")}, {"<s>", 0, kControl}, {"<x>", 0, kUserDefined}, {"<x><s", 0, kUserDefined}};
    GgufFile file = rule_file(rules);
    file.add("tokenizer.ggml.bos_token_id", 1u), file.add("tokenizer.ggml.eos_token_id", 1u);
    all.push_back({open_fixed(file.bytes(), 0), false});
  }
  const std::string space = "\xE2\x96\x81";
  const GgufFile scored =
      scored_file(scored_pieces({{space, -1}, {"a", -2}, {"b", -3}, {"ab", 1}, {space + "a", 2}, {"\n\n", -1}, {"\n", -1}}));
  all.push_back({open_fixed(scored.bytes(), 0), true});
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<Vocabulary> &vocabularies = *new std::vector<Vocabulary>(open_vocabularies());
  Case c(size);
  c.count_as_loaded();
  Reader in(data, size);
  const uint32_t flags = in.u8();
  const Text text(in.data(), in.data() + in.left());
  size_t needed = 0;
  const Vocabulary &vocabulary = vocabularies[(flags >> 4) % vocabularies.size()];
  const proofinfer_tokenizer *tokenizer = vocabulary.tokenizer;
  if (flags > 15)
    HOLDS(call(proofinfer_tokenizer_encode, tokenizer, text.data(), text.size(), flags, nullptr, size_t(0), &needed) ==
          PROOFINFER_E_ARGUMENT);
  round_trip(vocabulary, text.data(), text.size(), flags & 15);
  std::vector<int32_t> ids;
  while (!in.ended()) ids.push_back(in.u16() % proofinfer_tokenizer_vocab_size(tokenizer));
  stream_text(tokenizer, -1, ids);
  return 0;
}
