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
constexpr double kMaxTemperature = 1e30;

enum OptionIndex {
  kThreads,
  kShareFromBytes,
  kIsa,
  kMemoryLimit,
  kContextLength,
  kTemperature,
  kTopP,
  kSeed,
  kMaxGenerations,
  kPrefillChunk,
  kMaxTokens,
  kStopTokens,
  kOptionCount
};

constexpr OptionInfo kOptions[kOptionCount] = {
    {"threads", PROOFINFER_OPTION_I64, "1", "1", "1024", "model"},
    {"share_from_bytes", PROOFINFER_OPTION_U64, "131072", "0", "18446744073709551615", "model"},
    {"isa", PROOFINFER_OPTION_TEXT, "auto", "", "", "model,session,batch,scheduler"},
    {"memory_limit_bytes", PROOFINFER_OPTION_U64, "0", "0", "18446744073709551615", "model,tokenizer,session,sampler,batch,scheduler"},
    {"context_length", PROOFINFER_OPTION_I64, "0", "0", "2147483647", "session"},
    {"temperature", PROOFINFER_OPTION_F64, "0", "0", "1e30", "sampler"},
    {"top_p", PROOFINFER_OPTION_F64, "0.9", "0", "1", "sampler"},
    {"seed", PROOFINFER_OPTION_U64, "1", "0", "18446744073709551615", "sampler"},
    {"max_generations", PROOFINFER_OPTION_I64, "64", "1", "2048", "scheduler"},
    {"prefill_chunk", PROOFINFER_OPTION_I64, "32", "1", "2048", "scheduler"},
    {"max_tokens", PROOFINFER_OPTION_I64, "0", "0", "2147483647", "generation"},
    {"stop_tokens", PROOFINFER_OPTION_TOKENS, "", "", "", "generation"},
};

constexpr const char *kTypeNames[] = {"?", "i64", "u64", "f64", "text", "tokens"};

}  // namespace

class Options : public Object {
 public:
  static constexpr Kind kKind = Kind::kOptions;
  Options(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  Settings settings;
  Buffer<int32_t> stop_tokens;
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

Status set_i64(Call *call, Options *options, int index, int64_t value) {
  bool counts_rows = index == kMaxGenerations || index == kPrefillChunk;
  int64_t lowest = index == kThreads || counts_rows ? 1 : 0;
  int64_t highest = index == kThreads ? kMaxThreads : counts_rows ? kMaxRows : kMaxPositions;
  if (value < lowest || value > highest) {
    char found[24];
    snprintf(found, sizeof(found), "%lld", (long long)value);
    return fail_bounds(call, index, found);
  }
  switch (index) {
    case kThreads: options->settings.threads = value; break;
    case kMaxGenerations: options->settings.max_generations = value; break;
    case kPrefillChunk: options->settings.prefill_chunk = value; break;
    case kContextLength: options->settings.context_length = value; break;
    default: options->settings.max_tokens = value; break;
  }
  return kOk;
}

Status set_f64(Call *call, Options *options, int index, double value) {
  double highest = index == kTemperature ? kMaxTemperature : 1.0;
  if (!(value >= 0.0 && value <= highest)) {
    char found[40];
    snprintf(found, sizeof(found), "%.9g", value);
    return fail_bounds(call, index, found);
  }
  (index == kTemperature ? options->settings.temperature : options->settings.top_p) = value;
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
