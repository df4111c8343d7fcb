// Every kernel set of this machine says the same of a checkpoint: the same status, and of a model the same bits. Input: 4 bytes that choose
// tokens, then the file.
#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

constexpr size_t kTokens = 4;

struct Result {
  int32_t status = PROOFINFER_OK;
  std::vector<float> logits;
};

void keep_logits(proofinfer_session *session, size_t position, std::vector<float> *to) {
  const float *logits = nullptr;
  size_t count = 0;
  HOLDS(call(proofinfer_session_logits_view, session, position, &logits, &count) == PROOFINFER_OK);
  to->insert(to->end(), logits, logits + count);
}

// at_once: the tokens in one append, else one by one.
Result evaluate(Case *c, const char *isa, const uint8_t *choices, const std::vector<uint8_t> &file, bool at_once) {
  HOLDS(call(proofinfer_options_set_text, c->options(), PROOFINFER_TEXT("isa"), isa, std::strlen(isa)) == PROOFINFER_OK);
  Result result;
  Out<proofinfer_model> made;
  result.status = call(proofinfer_model_open_memory, file.data(), file.size(), c->options(), nullptr, &made.handle);
  proofinfer_model *model = made.of(result.status);
  if (!model) return result;
  int64_t vocab_size = 0, seq_len = 0;
  HOLDS(call(proofinfer_model_get_i64, model, PROOFINFER_MODEL_VOCAB_SIZE, &vocab_size) == PROOFINFER_OK);
  HOLDS(call(proofinfer_model_get_i64, model, PROOFINFER_MODEL_SEQ_LEN, &seq_len) == PROOFINFER_OK);
  const size_t count = seq_len < int64_t(kTokens) ? size_t(seq_len) : kTokens;
  HOLDS(call(proofinfer_options_set_i64, c->options(), PROOFINFER_TEXT("context_length"), int64_t(count)) == PROOFINFER_OK);
  Out<proofinfer_session> session_made;
  proofinfer_session *session = session_made.of(call(proofinfer_session_create, model, c->options(), &session_made.handle));
  HOLDS(session != nullptr);
  int32_t tokens[kTokens];
  for (size_t i = 0; i < count; i++) tokens[i] = int32_t(choices[i] % vocab_size);
  for (size_t begin = 0; begin < count;) {
    const size_t part = at_once ? count : 1;
    HOLDS(call(proofinfer_session_append, session, tokens + begin, part, PROOFINFER_LOGITS_ALL, nullptr) == PROOFINFER_OK);
    for (size_t i = 0; i < part; i++) keep_logits(session, begin + i, &result.logits);
    begin += part;
  }
  proofinfer_session_free(session);
  proofinfer_model_free(model);
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Case c(size);
  if (size < kTokens) return 0;
  const std::vector<uint8_t> file(data + kTokens, data + size);
  const Result expected = evaluate(&c, "scalar", data, file, false);
  if (expected.status == PROOFINFER_OK) c.count_as_loaded();
  for (size_t i = 0; i < proofinfer_isa_count(); i++) {
    if (!proofinfer_isa_available(i)) continue;
    const Result found = evaluate(&c, proofinfer_isa_name(i), data, file, true);
    HOLDS(found.status == expected.status && found.logits.size() == expected.logits.size());
    HOLDS(found.logits.empty() || std::memcmp(found.logits.data(), expected.logits.data(), found.logits.size() * sizeof(float)) == 0);
  }
  return 0;
}
