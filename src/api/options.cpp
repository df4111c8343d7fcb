#include "api/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

namespace proofinfer {

namespace {

// The table that the setters, the queries and the documentation in the header agree on.
struct OptionInfo {
  const char *name;
  int32_t type;
  const char *default_value, *lowest, *highest, *scope;
};

constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxRows = 2048;  // of decoding and of prompts: together what a batch takes
constexpr int64_t kMaxPositions = INT32_MAX;
constexpr int64_t kMaxPenaltyWindow = int64_t(1) << 20;
constexpr int64_t kMaxLogprobs = 1024;
constexpr double kMaxTemperature = 1e30;
constexpr double kMaxPenalty = 1e3;

enum OptionIndex {
  kThreads,
  kShareFromBytes,
  kMap,
  kVerify,
  kIsa,
  kMemoryLimit,
  kContextLength,
  kTemperature,
  kTopP,
  kTopK,
  kTypicalP,
  kMinP,
  kRepetitionPenalty,
  kFrequencyPenalty,
  kPresencePenalty,
  kPenaltyWindow,
  kSeed,
  kMaxGenerations,
  kPrefillChunk,
  kMaxTokens,
  kStopTokens,
  kStopStrings,
  kLogprobs,
  kOptionCount
};

constexpr OptionInfo kOptions[kOptionCount] = {
    {"threads", PROOFINFER_OPTION_I64, "1", "1", "1024", "model"},
    {"share_from_bytes", PROOFINFER_OPTION_U64, "131072", "0", "18446744073709551615", "model"},
    {"map", PROOFINFER_OPTION_I64, "1", "0", "1", "model"},
    {"verify", PROOFINFER_OPTION_I64, "0", "0", "1", "model"},
    {"isa", PROOFINFER_OPTION_TEXT, "auto", "", "", "model,session,batch,scheduler,sampler"},
    {"memory_limit_bytes", PROOFINFER_OPTION_U64, "0", "0", "18446744073709551615", "model,tokenizer,session,sampler,batch,scheduler"},
    {"context_length", PROOFINFER_OPTION_I64, "0", "0", "2147483647", "session"},
    {"temperature", PROOFINFER_OPTION_F64, "0", "0", "1e30", "sampler"},
    {"top_p", PROOFINFER_OPTION_F64, "0.9", "0", "1", "sampler"},
    {"top_k", PROOFINFER_OPTION_I64, "0", "0", "2147483647", "sampler"},
    {"typical_p", PROOFINFER_OPTION_F64, "0", "0", "1", "sampler"},
    {"min_p", PROOFINFER_OPTION_F64, "0", "0", "1", "sampler"},
    {"repetition_penalty", PROOFINFER_OPTION_F64, "1", "0.001", "1000", "sampler"},
    {"frequency_penalty", PROOFINFER_OPTION_F64, "0", "-1000", "1000", "sampler"},
    {"presence_penalty", PROOFINFER_OPTION_F64, "0", "-1000", "1000", "sampler"},
    {"penalty_window", PROOFINFER_OPTION_I64, "64", "1", "1048576", "sampler"},
    {"seed", PROOFINFER_OPTION_U64, "1", "0", "18446744073709551615", "sampler"},
    {"max_generations", PROOFINFER_OPTION_I64, "64", "1", "2048", "scheduler"},
    {"prefill_chunk", PROOFINFER_OPTION_I64, "32", "1", "2048", "scheduler"},
    {"max_tokens", PROOFINFER_OPTION_I64, "0", "0", "2147483647", "generation"},
    {"stop_tokens", PROOFINFER_OPTION_TOKENS, "", "", "", "generation"},
    {"stop_strings", PROOFINFER_OPTION_TEXTS, "", "", "", "generation"},
    {"logprobs", PROOFINFER_OPTION_I64, "0", "0", "1024", "generation"},
};

constexpr const char *kTypeNames[] = {"?", "i64", "u64", "f64", "text", "tokens", "texts"};

}  // namespace

class Options : public Object {
 public:
  static constexpr Kind kKind = Kind::kOptions;
  Options(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  Settings settings;
  Buffer<int32_t> stop_tokens;
  Buffer<uint8_t> stop_string_bytes;
  Buffer<size_t> stop_string_ends;
};

namespace {

// The options behind the handle and the index of the option `name` of that type, or nullptr with a failure in `call`.
Options *find(Call *call, proofinfer_options *handle, const char *name, size_t name_bytes, int32_t type, int *index) {
  Options *options = call->object<Options>(handle, "options");
  if (!options || !call->need_array(name, name_bytes, "name")) return nullptr;
  for (int i = 0; i < kOptionCount; i++) {
    if (strlen(kOptions[i].name) != name_bytes || memcmp(kOptions[i].name, name, name_bytes) != 0) continue;
    *index = i;
    if (kOptions[i].type == type) return options;
    fail(call->failure(), kArgument, "option %s has type %s; it was set as %s", kOptions[i].name, kTypeNames[kOptions[i].type],
         kTypeNames[type]);
    return nullptr;
  }
  int shown = name_bytes < 64 ? static_cast<int>(name_bytes) : 64;
  fail(call->failure(), kArgument, "there is no option \"%.*s\"", shown, name ? name : "");
  return nullptr;
}

Status fail_bounds(Call *call, int index, const char *found) {
  return fail(call->failure(), kArgument, "option %s is %s; expected %s to %s", kOptions[index].name, found, kOptions[index].lowest,
              kOptions[index].highest);
}

// Where the value of an option goes and what it may be; the texts of kOptions say the same, as a test holds.
template <typename T>
struct Place {
  T Settings::*field;
  T lowest, highest;
};

Place<int64_t> i64_place(int index) {
  switch (index) {
    case kThreads: return {&Settings::threads, 1, kMaxThreads};
    case kMap: return {&Settings::map, 0, 1};
    case kVerify: return {&Settings::verify, 0, 1};
    case kContextLength: return {&Settings::context_length, 0, kMaxPositions};
    case kMaxGenerations: return {&Settings::max_generations, 1, kMaxRows};
    case kPrefillChunk: return {&Settings::prefill_chunk, 1, kMaxRows};
    case kLogprobs: return {&Settings::logprobs, 0, kMaxLogprobs};
    case kTopK: return {&Settings::top_k, 0, kMaxPositions};
    case kPenaltyWindow: return {&Settings::penalty_window, 1, kMaxPenaltyWindow};
    default: return {&Settings::max_tokens, 0, kMaxPositions};
  }
}

Place<double> f64_place(int index) {
  switch (index) {
    case kTemperature: return {&Settings::temperature, 0.0, kMaxTemperature};
    case kTypicalP: return {&Settings::typical_p, 0.0, 1.0};
    case kMinP: return {&Settings::min_p, 0.0, 1.0};
    case kRepetitionPenalty: return {&Settings::repetition_penalty, 1.0 / kMaxPenalty, kMaxPenalty};
    case kFrequencyPenalty: return {&Settings::frequency_penalty, -kMaxPenalty, kMaxPenalty};
    case kPresencePenalty: return {&Settings::presence_penalty, -kMaxPenalty, kMaxPenalty};
    default: return {&Settings::top_p, 0.0, 1.0};
  }
}

Status set_i64(Call *call, Options *options, int index, int64_t value) {
  Place<int64_t> place = i64_place(index);
  if (value < place.lowest || value > place.highest) {
    char found[24];
    snprintf(found, sizeof(found), "%lld", (long long)value);
    return fail_bounds(call, index, found);
  }
  options->settings.*place.field = value;
  return kOk;
}

Status set_f64(Call *call, Options *options, int index, double value) {
  Place<double> place = f64_place(index);
  if (!(value >= place.lowest && value <= place.highest)) {
    char found[40];
    snprintf(found, sizeof(found), "%.9g", value);
    return fail_bounds(call, index, found);
  }
  options->settings.*place.field = value;
  return kOk;
}

Status set_isa(Call *call, Options *options, const char *value, size_t value_bytes) {
  if (value_bytes == 4 && memcmp(value, "auto", 4) == 0) {
    options->settings.kernels = nullptr;
    return kOk;
  }
  bool available = false;
  const Kernels *kernels = kernels_named(value, value_bytes, &available);
  int shown = value_bytes < 32 ? static_cast<int>(value_bytes) : 32;
  if (!kernels) return fail(call->failure(), kArgument, "option isa is \"%.*s\"; this build has no such kernels", shown, value);
  if (!available) return fail(call->failure(), kArgument, "option isa is \"%.*s\"; this CPU or system cannot run it", shown, value);
  options->settings.kernels = kernels;
  return kOk;
}

// Where each of some strings ends. kArgument: too many, an empty or a long one.
Status find_ends(Call *call, const size_t *text_bytes, size_t count, size_t *ends) {
  size_t end = 0;
  for (size_t i = 0; i < count; i++) {
    if (text_bytes[i] < 1 || text_bytes[i] > Settings::kMaxStopStringBytes)
      return fail(call->failure(), kArgument, "option stop_strings: string %zu has %zu bytes; expected 1 to %zu", i, text_bytes[i],
                  Settings::kMaxStopStringBytes);
    ends[i] = end += text_bytes[i];
  }
  return kOk;
}

Status set_stop_strings(Call *call, Options *options, const char *texts, const size_t *text_bytes, size_t count) {
  if (count > Settings::kMaxStopStrings)
    return fail(call->failure(), kArgument, "option stop_strings has %zu strings; expected at most %zu", count, Settings::kMaxStopStrings);
  Buffer<size_t> ends;
  Buffer<uint8_t> bytes;
  Status status = ends.allocate(options->account(), count, "stop strings", call->failure());
  if (status == kOk) status = find_ends(call, text_bytes, count, ends.data());
  size_t total = status == kOk && count > 0 ? ends[count - 1] : 0;
  if (status == kOk && !call->need_array(texts, total, "texts")) return kArgument;
  if (status == kOk) status = bytes.allocate(options->account(), total, "stop strings", call->failure());
  if (status != kOk) return status;
  if (total) memcpy(bytes.data(), texts, total);
  bytes.swap(options->stop_string_bytes);
  ends.swap(options->stop_string_ends);
  options->settings.stop_strings = {options->stop_string_bytes.data(), options->stop_string_ends.data(), count};
  return kOk;
}

}  // namespace

bool read_settings(Call *call, const proofinfer_options *handle, Settings *settings) {
  const Options *options = call->nullable_object<Options>(handle, "options");
  if (options) *settings = options->settings;
  return !call->failed();
}

}  // namespace proofinfer

using namespace proofinfer;

extern "C" {

int32_t proofinfer_options_create(proofinfer_options **options, proofinfer_error **error) {
  Call call(error);
  if (!call.need(options, "options")) return call.end();
  *options = reinterpret_cast<proofinfer_options *>(Object::make<Options>(MemoryHooks(), 0, "options", call.failure()));
  return call.end();
}

void proofinfer_options_free(proofinfer_options *options) { free_handle<Options>(options); }

int32_t proofinfer_options_set_i64(proofinfer_options *options, const char *name, size_t name_bytes, int64_t value,
                                   proofinfer_error **error) {
  Call call(error);
  int index = 0;
  Options *found = find(&call, options, name, name_bytes, PROOFINFER_OPTION_I64, &index);
  return found ? call.end(set_i64(&call, found, index, value)) : call.end();
}

int32_t proofinfer_options_set_u64(proofinfer_options *options, const char *name, size_t name_bytes, uint64_t value,
                                   proofinfer_error **error) {
  Call call(error);
  int index = 0;
  Options *found = find(&call, options, name, name_bytes, PROOFINFER_OPTION_U64, &index);
  if (found)
    (index == kSeed             ? found->settings.seed
     : index == kShareFromBytes ? found->settings.share_from_bytes
                                : found->settings.memory_limit_bytes) = value;
  return call.end();
}

int32_t proofinfer_options_set_f64(proofinfer_options *options, const char *name, size_t name_bytes, double value,
                                   proofinfer_error **error) {
  Call call(error);
  int index = 0;
  Options *found = find(&call, options, name, name_bytes, PROOFINFER_OPTION_F64, &index);
  return found ? call.end(set_f64(&call, found, index, value)) : call.end();
}

int32_t proofinfer_options_set_text(proofinfer_options *options, const char *name, size_t name_bytes, const char *value, size_t value_bytes,
                                    proofinfer_error **error) {
  Call call(error);
  int index = 0;
  Options *found = find(&call, options, name, name_bytes, PROOFINFER_OPTION_TEXT, &index);
  if (!found || !call.need_array(value, value_bytes, "value")) return call.end();
  return call.end(set_isa(&call, found, value ? value : "", value_bytes));
}

int32_t proofinfer_options_set_tokens(proofinfer_options *options, const char *name, size_t name_bytes, const int32_t *tokens, size_t count,
                                      proofinfer_error **error) {
  Call call(error);
  int index = 0;
  Options *found = find(&call, options, name, name_bytes, PROOFINFER_OPTION_TOKENS, &index);
  if (!found || !call.need_array(tokens, count, "tokens")) return call.end();
  if (count > Settings::kMaxStopTokens)
    return call.end(
        fail(call.failure(), kArgument, "option stop_tokens has %zu ids; expected at most %zu", count, Settings::kMaxStopTokens));
  Buffer<int32_t> copy;
  if (copy.allocate(found->account(), count, "stop tokens", call.failure()) != kOk) return call.end();
  if (count) memcpy(copy.data(), tokens, count * sizeof(int32_t));
  copy.swap(found->stop_tokens);
  found->settings.stop_tokens = found->stop_tokens.data();
  found->settings.stop_token_count = count;
  found->settings.has_stop_tokens = true;
  return call.end();
}

int32_t proofinfer_options_set_texts(proofinfer_options *options, const char *name, size_t name_bytes, const char *texts,
                                     const size_t *text_bytes, size_t count, proofinfer_error **error) {
  Call call(error);
  int index = 0;
  Options *found = find(&call, options, name, name_bytes, PROOFINFER_OPTION_TEXTS, &index);
  if (!found || !call.need_array(text_bytes, count, "text_bytes")) return call.end();
  return call.end(set_stop_strings(&call, found, texts, text_bytes, count));
}

int32_t proofinfer_options_set_allocator(proofinfer_options *options, proofinfer_allocate_function allocate,
                                         proofinfer_release_function release, void *user, proofinfer_error **error) {
  Call call(error);
  Options *found = call.object<Options>(options, "options");
  if (!found) return call.end();
  if (!allocate != !release)
    return call.end(fail(call.failure(), kArgument, "%s is NULL; expected both functions or neither", allocate ? "release" : "allocate"));
  found->settings.hooks.allocate = allocate;
  found->settings.hooks.release = release;
  found->settings.hooks.user = user;
  return call.end();
}

size_t proofinfer_option_count(void) { return kOptionCount; }
const char *proofinfer_option_name(size_t index) { return index < kOptionCount ? kOptions[index].name : nullptr; }
int32_t proofinfer_option_type(size_t index) { return index < kOptionCount ? kOptions[index].type : 0; }
const char *proofinfer_option_default(size_t index) { return index < kOptionCount ? kOptions[index].default_value : nullptr; }
const char *proofinfer_option_lowest(size_t index) { return index < kOptionCount ? kOptions[index].lowest : nullptr; }
const char *proofinfer_option_highest(size_t index) { return index < kOptionCount ? kOptions[index].highest : nullptr; }
const char *proofinfer_option_scope(size_t index) { return index < kOptionCount ? kOptions[index].scope : nullptr; }

}  // extern "C"
