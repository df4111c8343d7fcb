#include "model/generation.h"

#include <string.h>

#include "api/options.h"

namespace proofinfer {

static_assert(static_cast<int32_t>(StopReason::kNone) == PROOFINFER_STOP_NONE &&
                  static_cast<int32_t>(StopReason::kToken) == PROOFINFER_STOP_TOKEN &&
                  static_cast<int32_t>(StopReason::kLength) == PROOFINFER_STOP_LENGTH &&
                  static_cast<int32_t>(StopReason::kContext) == PROOFINFER_STOP_CONTEXT &&
                  static_cast<int32_t>(StopReason::kString) == PROOFINFER_STOP_STRING &&
                  static_cast<int32_t>(StopReason::kCancelled) == PROOFINFER_STOP_CANCELLED,
              "internal and public stop reasons must agree");

}  // namespace proofinfer

using namespace proofinfer;

extern "C" {

int32_t proofinfer_generation_create(proofinfer_session *session, const proofinfer_tokenizer *tokenizer, proofinfer_sampler *sampler,
                                     const int32_t *prompt, size_t prompt_count, const proofinfer_options *options,
                                     proofinfer_generation **generation, proofinfer_error **error) {
  Call call(error);
  if (!call.need(generation, "generation")) return call.end();
  *generation = nullptr;
  Session *s = call.object<Session>(session, "session");
  const Tokenizer *t = s ? call.object<const Tokenizer>(tokenizer, "tokenizer") : nullptr;
  Sampler *p = t ? call.object<Sampler>(sampler, "sampler") : nullptr;
  Settings settings;
  if (!p || !call.need_array(prompt, prompt_count, "prompt") || !read_settings(&call, options, &settings)) return call.end();
  Ref<Session> held_session = Ref<Session>::share(s);
  Ref<const Tokenizer> held_tokenizer = Ref<const Tokenizer>::share(t);
  Ref<Sampler> held_sampler = Ref<Sampler>::share(p);
  Generation *made = nullptr;
  Status status = Generation::create(s, t, p, prompt, prompt_count, settings, &made, call.failure());
  if (status == kOk) *generation = reinterpret_cast<proofinfer_generation *>(made);
  return call.end(status);
}

int32_t proofinfer_generation_next(proofinfer_generation *generation, proofinfer_cancel *cancel, int32_t *token, char *buffer,
                                   size_t capacity, size_t *needed, int32_t *stop_reason, proofinfer_error **error) {
  Call call(error);
  if (token) *token = -1;
  if (needed) *needed = 0;
  if (stop_reason) *stop_reason = PROOFINFER_STOP_NONE;
  Generation *g = call.object<Generation>(generation, "generation");
  Cancel *polled = g ? call.nullable_object<Cancel>(cancel, "cancel") : nullptr;
  if (call.failed() || !call.need(token, "token") || !call.need_array(buffer, capacity, "buffer") || !call.need(stop_reason, "stop_reason"))
    return call.end();
  Ref<Generation> held = Ref<Generation>::share(g);
  Ref<Cancel> held_cancel = polled ? Ref<Cancel>::share(polled) : Ref<Cancel>();
  Generation::Step step;
  Status status = g->next(polled, buffer, capacity, &step, call.failure());
  *token = step.token;
  *stop_reason = static_cast<int32_t>(step.reason);
  if (needed) *needed = step.needed;
  return call.end(status);
}

int32_t proofinfer_generation_logprobs(proofinfer_generation *generation, float *logprob, int32_t *tokens, float *logprobs, size_t capacity,
                                       size_t *needed, proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  Generation *g = call.object<Generation>(generation, "generation");
  if (!g || !call.need(logprob, "logprob") || !call.need_array(tokens, capacity, "tokens") ||
      !call.need_array(logprobs, capacity, "logprobs"))
    return call.end();
  Ref<Generation> held = Ref<Generation>::share(g);
  Generation::Logprobs found;
  if (Status status = g->logprobs(&found, call.failure())) return call.end(status);
  if (call.put(found.tokens, found.count, sizeof(int32_t), tokens, capacity, needed, "log-probabilities") != kOk) return call.end();
  if (found.count > 0) memcpy(logprobs, found.logprobs, found.count * sizeof(float));
  *logprob = found.chosen;
  return call.end();
}

int32_t proofinfer_generation_stop_string(proofinfer_generation *generation, size_t *index, proofinfer_error **error) {
  Call call(error);
  if (index) *index = 0;
  Generation *g = call.object<Generation>(generation, "generation");
  if (!g || !call.need(index, "index")) return call.end();
  Ref<Generation> held = Ref<Generation>::share(g);
  return call.end(g->stop_string(index, call.failure()));
}

int32_t proofinfer_generation_force(proofinfer_generation *generation, int32_t token, proofinfer_error **error) {
  Call call(error);
  Generation *g = call.object<Generation>(generation, "generation");
  if (!g) return call.end();
  Ref<Generation> held = Ref<Generation>::share(g);
  return call.end(g->force(token, call.failure()));
}

void proofinfer_generation_free(proofinfer_generation *generation) { free_handle<Generation>(generation); }

}  // extern "C"
