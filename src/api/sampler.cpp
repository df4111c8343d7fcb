#include "model/sampler.h"

#include "api/options.h"

using namespace proofinfer;

extern "C" {

int32_t proofinfer_sampler_create(int32_t vocab_size, const proofinfer_options *options, proofinfer_sampler **sampler,
                                  proofinfer_error **error) {
  Call call(error);
  if (!call.need(sampler, "sampler")) return call.end();
  *sampler = nullptr;
  Settings settings;
  if (vocab_size < 1) return call.end(fail(call.failure(), kArgument, "vocab_size is %d; expected 1 or more", vocab_size));
  if (!read_settings(&call, options, &settings)) return call.end();
  Sampler *made = nullptr;
  Status status = Sampler::create(vocab_size, settings, &made, call.failure());
  if (status == kOk) *sampler = reinterpret_cast<proofinfer_sampler *>(made);
  return call.end(status);
}

int32_t proofinfer_sampler_sample(proofinfer_sampler *sampler, const float *logits, size_t count, int32_t *token,
                                  proofinfer_error **error) {
  Call call(error);
  if (token) *token = -1;
  Sampler *s = call.object<Sampler>(sampler, "sampler");
  if (!s || !call.need(logits, "logits") || !call.need(token, "token")) return call.end();
  Ref<Sampler> held = Ref<Sampler>::share(s);
  BusyScope lock(s->busy());
  if (!lock.entered()) return call.end(fail(call.failure(), kBusy, "another thread is inside this sampler"));
  if (count != s->vocab_size())
    return call.end(fail(call.failure(), kArgument, "count is %zu; expected the sampler's vocab_size %zu", count, s->vocab_size()));
  return call.end(s->sample(logits, token, call.failure()));
}

int32_t proofinfer_sampler_reseed(proofinfer_sampler *sampler, uint64_t seed, proofinfer_error **error) {
  Call call(error);
  Sampler *s = call.object<Sampler>(sampler, "sampler");
  if (!s) return call.end();
  Ref<Sampler> held = Ref<Sampler>::share(s);
  BusyScope lock(s->busy());
  if (!lock.entered()) return call.end(fail(call.failure(), kBusy, "another thread is inside this sampler"));
  s->reseed(seed);
  return call.end();
}

void proofinfer_sampler_free(proofinfer_sampler *sampler) { free_handle<Sampler>(sampler); }

}  // extern "C"
