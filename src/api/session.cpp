#include "model/session.h"

#include "api/options.h"
#include "model/batch.h"
#include "model/score.h"

namespace proofinfer {

// A session or batch for the time of one call: alive, and no other thread inside.
template <typename T>
class Entered {
 public:
  template <typename HandleType>
  Entered(Call *call, HandleType *handle, const char *name) {
    T *object = call->object<T>(handle, name);
    if (!object) return;
    if (!object->busy()->try_enter()) {
      fail(call->failure(), kBusy, "another thread is inside this %s", name);
      return;
    }
    object->retain();
    object_ = object;
  }
  ~Entered() {
    if (!object_) return;
    object_->busy()->leave();
    Object::release(object_);
  }
  Entered(const Entered &) = delete;
  Entered &operator=(const Entered &) = delete;
  explicit operator bool() const { return object_ != nullptr; }
  T *operator->() const { return object_; }

 private:
  T *object_ = nullptr;
};

static Status find_logits(const Session &session, size_t position, const float **logits, Failure *failure) {
  if (position >= session.position())
    return fail(failure, kArgument, "position is %zu; the session holds positions 0 up to, not including, %zu", position,
                session.position());
  *logits = session.logits(position);
  if (*logits) return kOk;
  return fail(failure, kState, "no logits are kept for position %zu: they were not asked for, or dropped by a later append", position);
}

}  // namespace proofinfer

using namespace proofinfer;

extern "C" {

int32_t proofinfer_session_create(const proofinfer_model *model, const proofinfer_options *options, proofinfer_session **session,
                                  proofinfer_error **error) {
  Call call(error);
  if (session) *session = nullptr;
  Settings settings;
  const Model *m = call.object<const Model>(model, "model");
  if (!m || !call.need(session, "session") || !read_settings(&call, options, &settings)) return call.end();
  Session *made = nullptr;
  Status status = Session::create(m, settings, &made, call.failure());
  if (status == kOk) *session = reinterpret_cast<proofinfer_session *>(made);
  return call.end(status);
}

int32_t proofinfer_session_clone(proofinfer_session *session, const proofinfer_options *options, proofinfer_session **clone,
                                 proofinfer_error **error) {
  Call call(error);
  if (clone) *clone = nullptr;
  if (!call.need(clone, "clone")) return call.end();
  Entered<Session> s(&call, session, "session");
  if (!s) return call.end();
  Settings settings = s->settings();
  if (options && !read_settings(&call, options, &settings)) return call.end();
  Session *made = nullptr;
  Status status = s->clone(settings, &made, call.failure());
  if (status == kOk) *clone = reinterpret_cast<proofinfer_session *>(made);
  return call.end(status);
}

int32_t proofinfer_session_save(proofinfer_session *session, void *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  Entered<Session> s(&call, session, "session");
  if (!s) return call.end();
  const size_t bytes = s->state_bytes();
  if (needed) *needed = bytes;
  if (!call.need_array(buffer, capacity, "buffer")) return call.end();
  if (capacity < bytes)
    return call.end(fail(call.failure(), kBufferTooSmall, "state: needs a capacity of %zu; found %zu", bytes, capacity));
  s->save(static_cast<unsigned char *>(buffer));
  return call.end();
}

int32_t proofinfer_session_restore(proofinfer_session *session, const void *data, size_t data_bytes, proofinfer_error **error) {
  Call call(error);
  Entered<Session> s(&call, session, "session");
  if (!s || !call.need_array(data, data_bytes, "data")) return call.end();
  return call.end(s->restore(static_cast<const unsigned char *>(data), data_bytes, call.failure()));
}

void proofinfer_session_free(proofinfer_session *session) { free_handle<Session>(session); }

int32_t proofinfer_session_append(proofinfer_session *session, const int32_t *tokens, size_t count, int32_t logits,
                                  proofinfer_cancel *cancel, proofinfer_error **error) {
  Call call(error);
  Cancel *polled = call.nullable_object<Cancel>(cancel, "cancel");
  if (call.failed() || !call.need_array(tokens, count, "tokens")) return call.end();
  if (logits < PROOFINFER_LOGITS_NONE || logits > PROOFINFER_LOGITS_ALL)
    return call.end(fail(call.failure(), kArgument, "logits is %d; expected PROOFINFER_LOGITS_NONE, _LAST or _ALL", logits));
  Entered<Session> s(&call, session, "session");
  if (!s) return call.end();
  LogitsMode mode = logits == PROOFINFER_LOGITS_ALL    ? LogitsMode::kAll
                    : logits == PROOFINFER_LOGITS_LAST ? LogitsMode::kLast
                                                       : LogitsMode::kNone;
  return call.end(s->append(tokens, count, mode, polled, call.failure()));
}

int32_t proofinfer_session_score(proofinfer_session *session, const int32_t *tokens, size_t count, float *logprobs,
                                 proofinfer_cancel *cancel, proofinfer_error **error) {
  Call call(error);
  Cancel *polled = call.nullable_object<Cancel>(cancel, "cancel");
  if (call.failed() || !call.need_array(tokens, count, "tokens") || !call.need_array(logprobs, count, "logprobs")) return call.end();
  Entered<Session> s(&call, session, "session");
  if (!s) return call.end();
  return call.end(s->score(tokens, count, logprobs, polled, call.failure()));
}

int32_t proofinfer_model_score(const proofinfer_model *model, const int32_t *tokens, const size_t *counts, size_t text_count,
                               const proofinfer_options *options, float *logprobs, proofinfer_cancel *cancel, proofinfer_error **error) {
  Call call(error);
  Settings settings;
  const Model *m = call.object<const Model>(model, "model");
  Cancel *polled = m ? call.nullable_object<Cancel>(cancel, "cancel") : nullptr;
  if (call.failed() || !read_settings(&call, options, &settings) || !call.need_array(counts, text_count, "counts")) return call.end();
  size_t token_count = 0;
  for (size_t i = 0; i < text_count; i++) {
    if (counts[i] > SIZE_MAX / sizeof(float) - token_count)
      return call.end(fail(call.failure(), kArgument, "counts up to text %zu are more than this machine can address", i));
    token_count += counts[i];
  }
  if (!call.need_array(tokens, token_count, "tokens") || !call.need_array(logprobs, token_count, "logprobs")) return call.end();
  Ref<const Model> held = Ref<const Model>::share(m);
  return call.end(score_texts(m, TokenTexts{tokens, counts, text_count}, settings, logprobs, polled, call.failure()));
}

int32_t proofinfer_session_logits(proofinfer_session *session, size_t position, float *buffer, size_t capacity, size_t *needed,
                                  proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  Entered<Session> s(&call, session, "session");
  const float *logits = nullptr;
  if (!s || find_logits(*s.operator->(), position, &logits, call.failure()) != kOk) return call.end();
  return call.end(call.put(logits, s->model()->vocab_size(), sizeof(float), buffer, capacity, needed, "logits"));
}

int32_t proofinfer_session_logits_view(proofinfer_session *session, size_t position, const float **logits, size_t *count,
                                       proofinfer_error **error) {
  Call call(error);
  if (logits) *logits = nullptr;
  if (count) *count = 0;
  if (!call.need(logits, "logits") || !call.need(count, "count")) return call.end();
  Entered<Session> s(&call, session, "session");
  if (!s || find_logits(*s.operator->(), position, logits, call.failure()) != kOk) return call.end();
  *count = s->model()->vocab_size();
  return call.end();
}

size_t proofinfer_session_position(const proofinfer_session *session) {
  Call call(nullptr);
  const Session *s = call.object<const Session>(session, "session");
  return s ? s->position() : 0;
}

size_t proofinfer_session_context_length(const proofinfer_session *session) {
  Call call(nullptr);
  const Session *s = call.object<const Session>(session, "session");
  return s ? s->context_length() : 0;
}

int32_t proofinfer_session_tokens(proofinfer_session *session, int32_t *tokens, size_t capacity, size_t *needed, proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  Entered<Session> s(&call, session, "session");
  if (!s) return call.end();
  return call.end(call.put(s->tokens(), s->position(), sizeof(int32_t), tokens, capacity, needed, "tokens"));
}

int32_t proofinfer_session_rewind(proofinfer_session *session, size_t position, proofinfer_error **error) {
  Call call(error);
  Entered<Session> s(&call, session, "session");
  if (!s) return call.end();
  if (position > s->position())
    return call.end(fail(call.failure(), kArgument, "position is %zu; expected 0 to the session's position %zu", position, s->position()));
  s->rewind(position);
  return call.end();
}

uint64_t proofinfer_session_memory_bytes(const proofinfer_session *session) {
  Call call(nullptr);
  const Session *s = call.object<const Session>(session, "session");
  return s ? s->used_bytes() : 0;
}

int32_t proofinfer_batch_create(const proofinfer_model *model, size_t max_rows, const proofinfer_options *options, proofinfer_batch **batch,
                                proofinfer_error **error) {
  Call call(error);
  if (batch) *batch = nullptr;
  Settings settings;
  const Model *m = call.object<const Model>(model, "model");
  if (!m || !call.need(batch, "batch") || !read_settings(&call, options, &settings)) return call.end();
  Batch *made = nullptr;
  Status status = Batch::create(m, max_rows, settings, &made, call.failure());
  if (status == kOk) *batch = reinterpret_cast<proofinfer_batch *>(made);
  return call.end(status);
}

int32_t proofinfer_batch_add(proofinfer_batch *batch, proofinfer_session *session, int32_t token, int32_t wants_logits,
                             proofinfer_error **error) {
  Call call(error);
  Session *s = call.object<Session>(session, "session");
  if (!s) return call.end();
  if (wants_logits != 0 && wants_logits != 1)
    return call.end(fail(call.failure(), kArgument, "wants_logits is %d; expected 0 or 1", wants_logits));
  Entered<Batch> b(&call, batch, "batch");
  if (!b) return call.end();
  return call.end(b->add(s, token, wants_logits != 0, call.failure()));
}

int32_t proofinfer_batch_evaluate(proofinfer_batch *batch, proofinfer_cancel *cancel, proofinfer_error **error) {
  Call call(error);
  Cancel *polled = call.nullable_object<Cancel>(cancel, "cancel");
  if (call.failed()) return call.end();
  Entered<Batch> b(&call, batch, "batch");
  if (!b) return call.end();
  return call.end(b->evaluate(polled, call.failure()));
}

int32_t proofinfer_batch_clear(proofinfer_batch *batch, proofinfer_error **error) {
  Call call(error);
  Entered<Batch> b(&call, batch, "batch");
  if (b) b->clear();
  return call.end();
}

void proofinfer_batch_free(proofinfer_batch *batch) { free_handle<Batch>(batch); }

}  // extern "C"
