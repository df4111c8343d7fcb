#include "model/scheduler.h"

#include "api/options.h"

using namespace proofinfer;

extern "C" {

int32_t proofinfer_scheduler_create(const proofinfer_model *model, const proofinfer_tokenizer *tokenizer, const proofinfer_options *options,
                                    proofinfer_scheduler **scheduler, proofinfer_error **error) {
  Call call(error);
  if (!call.need(scheduler, "scheduler")) return call.end();
  *scheduler = nullptr;
  const Model *m = call.object<const Model>(model, "model");
  const Tokenizer *t = m ? call.object<const Tokenizer>(tokenizer, "tokenizer") : nullptr;
  Settings settings;
  if (!t || !read_settings(&call, options, &settings)) return call.end();
  Ref<const Model> held_model = Ref<const Model>::share(m);
  Ref<const Tokenizer> held_tokenizer = Ref<const Tokenizer>::share(t);
  Scheduler *made = nullptr;
  Status status = Scheduler::create(m, t, settings, &made, call.failure());
  if (status == kOk) *scheduler = reinterpret_cast<proofinfer_scheduler *>(made);
  return call.end(status);
}

int32_t proofinfer_scheduler_submit(const proofinfer_scheduler *scheduler, const int32_t *prompt, size_t prompt_count,
                                    const proofinfer_options *options, uint64_t *id, proofinfer_error **error) {
  Call call(error);
  if (id) *id = 0;
  const Scheduler *s = call.object<const Scheduler>(scheduler, "scheduler");
  Settings settings;
  if (!s || !call.need_array(prompt, prompt_count, "prompt") || !call.need(id, "id") || !read_settings(&call, options, &settings))
    return call.end();
  Ref<const Scheduler> held = Ref<const Scheduler>::share(s);
  return call.end(s->submit(prompt, prompt_count, settings, id, call.failure()));
}

int32_t proofinfer_scheduler_add(const proofinfer_scheduler *scheduler, proofinfer_generation *generation, uint64_t *id,
                                 proofinfer_error **error) {
  Call call(error);
  if (id) *id = 0;
  const Scheduler *s = call.object<const Scheduler>(scheduler, "scheduler");
  Generation *g = s ? call.object<Generation>(generation, "generation") : nullptr;
  if (!g || !call.need(id, "id")) return call.end();
  Ref<const Scheduler> held = Ref<const Scheduler>::share(s);
  Ref<Generation> held_generation = Ref<Generation>::share(g);
  return call.end(s->add(g, id, call.failure()));
}

int32_t proofinfer_scheduler_cancel(const proofinfer_scheduler *scheduler, uint64_t id, proofinfer_error **error) {
  Call call(error);
  const Scheduler *s = call.object<const Scheduler>(scheduler, "scheduler");
  if (!s) return call.end();
  Ref<const Scheduler> held = Ref<const Scheduler>::share(s);
  return call.end(s->cancel(id, call.failure()));
}

int32_t proofinfer_scheduler_step(proofinfer_scheduler *scheduler, proofinfer_cancel *cancel, size_t *row_count, proofinfer_error **error) {
  Call call(error);
  if (row_count) *row_count = 0;
  Scheduler *s = call.object<Scheduler>(scheduler, "scheduler");
  Cancel *polled = s ? call.nullable_object<Cancel>(cancel, "cancel") : nullptr;
  if (!s || call.failed()) return call.end();
  Ref<Scheduler> held = Ref<Scheduler>::share(s);
  Ref<Cancel> held_cancel = polled ? Ref<Cancel>::share(polled) : Ref<Cancel>();
  BusyScope lock(s->busy());
  if (!lock.entered()) return call.end(fail(call.failure(), kBusy, "another thread is inside this scheduler"));
  size_t rows = 0;
  Status status = s->step(polled, &rows, call.failure());
  if (row_count) *row_count = rows;
  return call.end(status);
}

int32_t proofinfer_scheduler_next(proofinfer_scheduler *scheduler, uint64_t only, uint64_t *id, int32_t *token, char *buffer,
                                  size_t capacity, size_t *needed, int32_t *stop_reason, proofinfer_error **error) {
  Call call(error);
  if (id) *id = 0;
  if (token) *token = -1;
  if (needed) *needed = 0;
  if (stop_reason) *stop_reason = PROOFINFER_STOP_NONE;
  Scheduler *s = call.object<Scheduler>(scheduler, "scheduler");
  if (!s || !call.need(id, "id") || !call.need(token, "token") || !call.need_array(buffer, capacity, "buffer") ||
      !call.need(stop_reason, "stop_reason"))
    return call.end();
  Ref<Scheduler> held = Ref<Scheduler>::share(s);
  BusyScope lock(s->busy());
  if (!lock.entered()) return call.end(fail(call.failure(), kBusy, "another thread is inside this scheduler"));
  Generation::Step step;
  Status status = s->next(only, id, buffer, capacity, &step, call.failure());
  *token = step.token;
  *stop_reason = static_cast<int32_t>(step.reason);
  if (needed) *needed = step.needed;
  return call.end(status);
}

size_t proofinfer_scheduler_count(const proofinfer_scheduler *scheduler) {
  Call call(nullptr);
  const Scheduler *s = call.object<const Scheduler>(scheduler, "scheduler");
  return s ? s->count() : 0;
}

uint64_t proofinfer_scheduler_memory_bytes(const proofinfer_scheduler *scheduler) {
  Call call(nullptr);
  const Scheduler *s = call.object<const Scheduler>(scheduler, "scheduler");
  return s ? s->used_bytes() : 0;
}

void proofinfer_scheduler_free(proofinfer_scheduler *scheduler) { free_handle<Scheduler>(scheduler); }

}  // extern "C"
