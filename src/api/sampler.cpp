#include "model/sampler.h"

#include "api/options.h"
#include "base/fp_environment.h"
#include "model/logits.h"

namespace proofinfer {

namespace {

// A call that has the sampler for itself.
class SamplerCall : public Call {
 public:
  SamplerCall(proofinfer_sampler *handle, proofinfer_error **error) : Call(error), sampler_(object<Sampler>(handle, "sampler")) {}
  // Runs `use` with the sampler unless the call has failed; kBusy: another thread is inside. The status to return.
  template <typename Use>
  int32_t with_sampler(Use use) {
    if (failed()) return end();
    Ref<Sampler> held = Ref<Sampler>::share(sampler_);
    BusyScope lock(sampler_->busy());
    if (!lock.entered()) return end(fail(failure(), kBusy, "another thread is inside this sampler"));
    return end(use(sampler_));
  }

 private:
  Sampler *sampler_;
};

// The logits as a call gives them: there, at least one, all finite.
Status check_logits(Call *call, const float *logits, size_t count) {
  if (!call->need(logits, "logits")) return kArgument;
  if (count == 0 || count > INT32_MAX) return fail(call->failure(), kArgument, "count is %zu; expected 1 to %d", count, INT32_MAX);
  return check_finite(logits, count, call->failure());
}

}  // namespace

}  // namespace proofinfer

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
  if (token) *token = -1;
  SamplerCall call(sampler, error);
  if (!call.failed() && call.need(logits, "logits")) call.need(token, "token");
  return call.with_sampler([&](Sampler *s) {
    if (count != s->vocab_size())
      return fail(call.failure(), kArgument, "count is %zu; expected the sampler's vocab_size %zu", count, s->vocab_size());
    return s->sample(logits, token, call.failure());
  });
}

int32_t proofinfer_sampler_accept(proofinfer_sampler *sampler, const int32_t *tokens, size_t count, proofinfer_error **error) {
  SamplerCall call(sampler, error);
  if (!call.failed()) call.need_array(tokens, count, "tokens");
  return call.with_sampler([&](Sampler *s) { return s->accept(tokens, count, call.failure()); });
}

int32_t proofinfer_sampler_set_bias(proofinfer_sampler *sampler, const int32_t *tokens, const float *biases, size_t count,
                                    proofinfer_error **error) {
  SamplerCall call(sampler, error);
  if (!call.failed() && call.need_array(tokens, count, "tokens")) call.need_array(biases, count, "biases");
  return call.with_sampler([&](Sampler *s) { return s->set_bias(tokens, biases, count, call.failure()); });
}

int32_t proofinfer_sampler_set_banned(proofinfer_sampler *sampler, const int32_t *tokens, size_t count, proofinfer_error **error) {
  SamplerCall call(sampler, error);
  if (!call.failed()) call.need_array(tokens, count, "tokens");
  return call.with_sampler([&](Sampler *s) { return s->set_banned(tokens, count, call.failure()); });
}

int32_t proofinfer_sampler_set_mask(proofinfer_sampler *sampler, const uint32_t *mask, size_t word_count, proofinfer_error **error) {
  SamplerCall call(sampler, error);
  if (!call.failed()) call.need_array(mask, word_count, "mask");
  return call.with_sampler([&](Sampler *s) { return s->set_mask(mask, word_count, call.failure()); });
}

int32_t proofinfer_sampler_reseed(proofinfer_sampler *sampler, uint64_t seed, proofinfer_error **error) {
  SamplerCall call(sampler, error);
  return call.with_sampler([&](Sampler *s) {
    s->reseed(seed);
    return kOk;
  });
}

void proofinfer_sampler_free(proofinfer_sampler *sampler) { free_handle<Sampler>(sampler); }

int32_t proofinfer_logits_logprobs(const float *logits, size_t count, const int32_t *tokens, size_t token_count, float *logprobs,
                                   proofinfer_error **error) {
  Call call(error);
  FpScope contract;
  if (check_logits(&call, logits, count) != kOk || !call.need_array(tokens, token_count, "tokens") ||
      !call.need_array(logprobs, token_count, "logprobs"))
    return call.end();
  for (size_t i = 0; i < token_count; i++)
    if (tokens[i] < 0 || static_cast<size_t>(tokens[i]) >= count)
      return call.end(fail(call.failure(), kArgument, "token %zu is %d; expected 0 to %zu", i, tokens[i], count - 1));
  LogSoftmax log_p = log_softmax(logits, count);
  for (size_t i = 0; i < token_count; i++) logprobs[i] = log_p.of(logits[tokens[i]]);
  return call.end();
}

int32_t proofinfer_logits_top(const float *logits, size_t count, size_t top_count, int32_t *tokens, float *logprobs,
                              proofinfer_error **error) {
  Call call(error);
  FpScope contract;
  if (check_logits(&call, logits, count) != kOk || !call.need_array(tokens, top_count, "tokens")) return call.end();
  if (top_count > count)
    return call.end(fail(call.failure(), kArgument, "top_count is %zu; expected at most the count %zu", top_count, count));
  largest_logits(logits, count, tokens, top_count);
  if (!logprobs) return call.end();
  LogSoftmax log_p = log_softmax(logits, count);
  for (size_t i = 0; i < top_count; i++) logprobs[i] = log_p.of(logits[tokens[i]]);
  return call.end();
}

}  // extern "C"
