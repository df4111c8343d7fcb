// Restoring a session from bytes. Input: u8 that chooses the checkpoint's format, then the state.
#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

std::vector<uint8_t> save(proofinfer_session *session) {
  size_t needed = 0;
  HOLDS(call(proofinfer_session_save, session, nullptr, size_t(0), &needed) == PROOFINFER_E_BUFFER);
  std::vector<uint8_t> bytes(needed);
  HOLDS(call(proofinfer_session_save, session, bytes.data(), bytes.size(), &needed) == PROOFINFER_OK);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Case c(size + (64 << 10));
  Reader in(data, size);
  const std::vector<uint8_t> &file = fixed_checkpoint(in.u8() % 3);
  Out<proofinfer_model> model;
  Out<proofinfer_session> made;
  model.of(call(proofinfer_model_open_memory, file.data(), file.size(), c.options(), nullptr, &model.handle));
  proofinfer_session *session = made.of(call(proofinfer_session_create, model.handle, c.options(), &made.handle));
  HOLDS(session != nullptr);
  const int32_t tokens[] = {1, 2, 3};
  HOLDS(call(proofinfer_session_append, session, &tokens[0], size_t(3), PROOFINFER_LOGITS_LAST, nullptr) == PROOFINFER_OK);
  const std::vector<uint8_t> before = save(session);
  const std::vector<uint8_t> state(in.data(), in.data() + in.left());
  if (call(proofinfer_session_restore, session, state.data(), state.size()) == PROOFINFER_OK) {
    c.count_as_loaded();
    HOLDS(save(session) == state);
    const size_t position = proofinfer_session_position(session);
    if (position < proofinfer_session_context_length(session))
      HOLDS(call(proofinfer_session_append, session, &tokens[0], size_t(1), PROOFINFER_LOGITS_LAST, nullptr) == PROOFINFER_OK);
  } else {
    HOLDS(save(session) == before);
  }
  proofinfer_session_free(session);
  proofinfer_model_free(model.handle);
  return 0;
}
