#include "engine.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "system.h"
#include "terminal.h"
#include "vocabulary_file.h"

namespace proofinfer::cli {
namespace {

// The library takes no more.
constexpr int64_t kMostThreads = 1024;
constexpr uint64_t kDefaultSeed = 1;
constexpr double kDefaultTopP = 0.9;
constexpr double kAnyReal = 1.7976931348623157e308;

// A value that the library refuses is a mistake on the command line.
template <class Set, class... Value>
void set_option(proofinfer_options *options, Set set, std::string_view option, const std::string &spelling, Value... value) {
  try {
    call(set, options, option.data(), option.size(), value...);
  } catch (const ApiProblem &problem) {
    if (problem.status() == PROOFINFER_E_ARGUMENT) throw UsageProblem(spelling + ": " + problem.what());
    throw;
  }
}

struct RealFlag {
  const char *flag, *option;
  double otherwise, lowest, highest;
};
constexpr RealFlag kRealFlags[] = {
    {"temperature", "temperature", 0, 0, kAnyReal},
    {"top-p", "top_p", kDefaultTopP, 0, 1},
    {"typical-p", "typical_p", 0, 0, 1},
    {"min-p", "min_p", 0, 0, 1},
    {"repetition-penalty", "repetition_penalty", 1, 0.001, 1000},
    {"frequency-penalty", "frequency_penalty", 0, -1000, 1000},
    {"presence-penalty", "presence_penalty", 0, -1000, 1000},
};
struct IntegerFlag {
  const char *flag, *option;
  int64_t otherwise, lowest, highest;
};
constexpr IntegerFlag kIntegerFlags[] = {
    {"top-k", "top_k", 0, 0, INT32_MAX},
    {"penalty-window", "penalty_window", 64, 1, 1 << 20},
};

std::string with_path(const std::string &message, const char *what, const std::string &path) {
  if (message.find(path) != std::string::npos) return message;
  return std::string(what) + " '" + path + "': " + message;
}

std::string load_progress(uint64_t done, uint64_t total) {
  return "loading " + std::to_string(static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total))) + " % of " +
         bytes_text(static_cast<double>(total));
}

std::string prompt_progress(uint64_t done, uint64_t total) {
  return "reading the prompt: " + std::to_string(done) + " of " + std::to_string(total) + " tokens";
}

// Where the tokenizer of a model may lie, best first.
std::vector<std::string> tokenizer_candidates(const std::string &model_path) {
  const std::filesystem::path model(model_path);
  std::vector<std::string> candidates;
  for (const std::filesystem::path &candidate : {model.parent_path() / (model.stem().string() + "_tokenizer.bin"),
                                                 model.parent_path() / "tokenizer.bin", std::filesystem::path("tokenizer.bin")})
    if (std::find(candidates.begin(), candidates.end(), candidate.string()) == candidates.end()) candidates.push_back(candidate.string());
  return candidates;
}

// Why a candidate cannot be the model's tokenizer; empty: it can. A file that cannot be counted is left to the library's own check.
std::string reason_against(const std::string &path, int64_t vocab_size) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return "no such file";
  const std::optional<int32_t> count = count_pieces(path);
  if (!count || *count == vocab_size) return "";
  return "has " + std::to_string(*count) + " pieces";
}

Tokenizer find_tokenizer(const LoadedModel &model) {
  const int64_t vocab_size = model.get(PROOFINFER_MODEL_VOCAB_SIZE);
  if (is_gguf_file(model.path)) return open_tokenizer(model.path, vocab_size);
  std::string tried;
  for (const std::string &path : tokenizer_candidates(model.path)) {
    const std::string reason = reason_against(path, vocab_size);
    if (reason.empty()) return open_tokenizer(path, vocab_size);
    tried += (tried.empty() ? "'" : ", '") + path + "' (" + reason + ")";
  }
  throw Problem("no tokenizer with the " + std::to_string(vocab_size) + " pieces of model '" + model.path + "' found; tried " + tried +
                ". Name it with -z FILE");
}

}  // namespace

Options read_options(const Arguments &arguments) {
  Options options = make<Options>(proofinfer_options_create);
  if (arguments.has("no-map")) call(proofinfer_options_set_i64, options.get(), PROOFINFER_TEXT("map"), 0);
  const int64_t threads = arguments.integer("threads", std::min(usable_cpu_count(), kMostThreads), 1, INT64_MAX);
  set_option(options.get(), proofinfer_options_set_i64, "threads", arguments.spelling("threads"), threads);
  if (const std::optional<std::string> isa = arguments.text("isa"))
    set_option(options.get(), proofinfer_options_set_text, "isa", arguments.spelling("isa"), isa->data(), isa->size());
  for (const RealFlag &f : kRealFlags)
    set_option(options.get(), proofinfer_options_set_f64, f.option, arguments.spelling(f.flag),
               arguments.real(f.flag, f.otherwise, f.lowest, f.highest));
  for (const IntegerFlag &f : kIntegerFlags)
    set_option(options.get(), proofinfer_options_set_i64, f.option, arguments.spelling(f.flag),
               arguments.integer(f.flag, f.otherwise, f.lowest, f.highest));
  const uint64_t seed = arguments.unsigned_integer("seed", kDefaultSeed);
  set_option(options.get(), proofinfer_options_set_u64, "seed", arguments.spelling("seed"), seed);
  return options;
}

void set_context_length(proofinfer_options *options, int64_t positions) {
  set_option(options, proofinfer_options_set_i64, "context_length", "--context", positions);
}

int64_t LoadedModel::get(int32_t property) const {
  int64_t value = 0;
  call(proofinfer_model_get_i64, model.get(), property, &value);
  return value;
}

const char *LoadedModel::text(int32_t property) const {
  const char *value = proofinfer_model_get_text(model.get(), property);
  return value ? value : "?";
}

LoadedModel load_model(const std::string &path, const proofinfer_options *options, bool quiet) {
  LoadedModel loaded;
  loaded.path = path;
  proofinfer_cancel *cancel = begin_operation();
  const double start = seconds_now();
  try {
    const Progress progress(!quiet, load_progress);
    loaded.model = make<Model>(proofinfer_model_open, path.data(), path.size(), options, cancel);
  } catch (const ApiProblem &problem) {
    throw ApiProblem(problem.status(), with_path(problem.what(), "model", path));
  }
  loaded.load_seconds = seconds_now() - start;
  return loaded;
}

Tokenizer open_tokenizer(const std::string &path, int64_t vocab_size) {
  try {
    return make<Tokenizer>(proofinfer_tokenizer_open, path.data(), path.size(), static_cast<int32_t>(vocab_size), nullptr);
  } catch (const ApiProblem &problem) {
    throw ApiProblem(problem.status(), with_path(problem.what(), "tokenizer", path));
  }
}

Tokenizer load_tokenizer(const Arguments &arguments, const LoadedModel &model) {
  const std::optional<std::string> path = arguments.text("tokenizer");
  if (!path) return find_tokenizer(model);
  const int64_t vocab_size = model.get(PROOFINFER_MODEL_VOCAB_SIZE);
  Tokenizer tokenizer = open_tokenizer(*path, vocab_size);
  const std::optional<int32_t> count = count_pieces(*path);
  if (count && *count != vocab_size && !arguments.has("quiet"))
    print_error("proofinfer: note: tokenizer '" + *path + "' has " + std::to_string(*count) + " pieces and the model " +
                std::to_string(vocab_size) + ": it may be another model's\n");
  return tokenizer;
}

std::vector<int32_t> encode(const proofinfer_tokenizer *tokenizer, std::string_view text, uint32_t flags) {
  std::vector<int32_t> tokens(2 * text.size() + 3);
  size_t needed = 0;
  call(proofinfer_tokenizer_encode, tokenizer, text.data(), text.size(), flags, tokens.data(), tokens.size(), &needed);
  tokens.resize(needed);
  return tokens;
}

std::string read_file(const char *what, const std::string &path) {
  if (path == "-") return read_all();
  std::ifstream file(path, std::ios::binary);
  (void)file.peek();  // a folder opens and cannot be read
  if (!file.is_open() || file.bad()) throw Problem(std::string("cannot read ") + what + " '" + path + "'");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void append_tokens(proofinfer_session *session, const int32_t *tokens, size_t count, bool show_progress) {
  proofinfer_cancel *cancel = begin_operation();
  const Progress progress(show_progress, prompt_progress);
  call(proofinfer_session_append, session, tokens, count, PROOFINFER_LOGITS_LAST, cancel);
}

int32_t sample_last(proofinfer_session *session, proofinfer_sampler *sampler) {
  const float *logits = nullptr;
  size_t count = 0;
  int32_t token = 0;
  call(proofinfer_session_logits_view, session, proofinfer_session_position(session) - 1, &logits, &count);
  call(proofinfer_sampler_sample, sampler, logits, count, &token);
  return token;
}

namespace {

// --ban and --bias. An id that the vocabulary lacks is a mistake on the command line.
void limit_sampler(const Arguments &arguments, proofinfer_sampler *sampler) {
  std::vector<int32_t> banned, tokens;
  std::vector<float> biases;
  if (const std::optional<std::string> ban = arguments.text("ban")) banned = parse_tokens("--ban", *ban);
  if (const std::optional<std::string> bias = arguments.text("bias"))
    for (const Bias &b : parse_biases("--bias", *bias)) {
      tokens.push_back(b.token);
      biases.push_back(b.bias);
    }
  const char *flag = "--ban: ";
  try {
    call(proofinfer_sampler_set_banned, sampler, banned.data(), banned.size());
    flag = "--bias: ";
    call(proofinfer_sampler_set_bias, sampler, tokens.data(), biases.data(), tokens.size());
  } catch (const ApiProblem &problem) {
    if (problem.status() == PROOFINFER_E_ARGUMENT) throw UsageProblem(std::string(flag) + problem.what());
    throw;
  }
}

}  // namespace

Engine::Engine(const Arguments &arguments, const std::string &model_path, int64_t default_steps) : quiet_(arguments.has("quiet")) {
  const int64_t steps = arguments.integer("steps", default_steps, 0, INT64_MAX);
  const int64_t context = arguments.integer("context", 0, 1, INT64_MAX);
  draws_ = arguments.real("temperature", 0, 0, kAnyReal) > 0;
  const Options options = read_options(arguments);
  model_ = load_model(model_path, options.get(), quiet_);
  tokenizer_ = load_tokenizer(arguments, model_);
  // Room for what is asked for and no more: memory follows -n, not what the file claims.
  set_context_length(options.get(), context ? context : std::min(steps, model_.get(PROOFINFER_MODEL_SEQ_LEN)));
  session_ = make<Session>(proofinfer_session_create, model_.model.get(), options.get());
  const int32_t vocab_size = static_cast<int32_t>(model_.get(PROOFINFER_MODEL_VOCAB_SIZE));
  sampler_ = make<Sampler>(proofinfer_sampler_create, vocab_size, options.get());
  limit_sampler(arguments, sampler_.get());
  const size_t room = proofinfer_session_context_length(session_.get());
  steps_ = steps == 0 ? room : std::min(room, static_cast<size_t>(steps));
}

std::vector<int32_t> Engine::encode_prompt(std::string_view text, bool special) const {
  std::vector<int32_t> tokens = encode(tokenizer_.get(), text, PROOFINFER_ENCODE_DEFAULT | (special ? PROOFINFER_ENCODE_SPECIAL : 0));
  // A model begins behind something.
  const int32_t bos = proofinfer_tokenizer_bos(tokenizer_.get());
  if (tokens.empty() && bos < 0) throw Problem("the prompt is empty, and the vocabulary has no piece that begins a text");
  if (tokens.empty()) tokens.push_back(bos);
  return tokens;
}

bool Engine::has_kinds() const {
  return std::string_view(proofinfer_tokenizer_get_text(tokenizer_.get(), PROOFINFER_TOKENIZER_MODEL)) != "llama2.c";
}

size_t Engine::rewind_to_common(const std::vector<int32_t> &prompt) {
  std::vector<int32_t> held(position());
  size_t needed = 0;
  call(proofinfer_session_tokens, session_.get(), held.data(), held.size(), &needed);
  const size_t most = std::min(held.size(), prompt.size() - 1);
  const size_t common =
      static_cast<size_t>(std::mismatch(held.begin(), held.begin() + static_cast<ptrdiff_t>(most), prompt.begin()).first - held.begin());
  call(proofinfer_session_rewind, session_.get(), common);
  return common;
}

void Engine::append_prompt(const std::vector<int32_t> &tokens) {
  append_tokens(session_.get(), tokens.data(), tokens.size(), !quiet_ && tokens.size() > 1);
}

void Engine::append(int32_t token) { append_tokens(session_.get(), &token, 1, false); }

int32_t Engine::sample() { return sample_last(session_.get(), sampler_.get()); }

Generation Engine::generate(const std::vector<int32_t> *stop_tokens, const std::vector<std::string> &stop_strings, int64_t max_tokens) {
  const Options options = make<Options>(proofinfer_options_create);
  std::string texts;
  std::vector<size_t> bytes;
  for (const std::string &text : stop_strings) {
    texts += text;
    bytes.push_back(text.size());
  }
  // The last token is not appended, so that there is one more than there are positions.
  const int64_t room = static_cast<int64_t>(steps_ - position() + 1);
  call(proofinfer_options_set_i64, options.get(), PROOFINFER_TEXT("max_tokens"), max_tokens > 0 ? std::min(max_tokens, room) : room);
  if (stop_tokens)
    call(proofinfer_options_set_tokens, options.get(), PROOFINFER_TEXT("stop_tokens"), stop_tokens->data(), stop_tokens->size());
  set_option(options.get(), proofinfer_options_set_texts, "stop_strings", "--stop-string", texts.data(), bytes.data(), bytes.size());
  return make<Generation>(proofinfer_generation_create, session_.get(), tokenizer_.get(), sampler_.get(), nullptr, size_t(0),
                          options.get());
}

void Engine::skip_draws(size_t count) {
  for (size_t i = 0; draws_ && i < count; i++) sample();
}

}  // namespace proofinfer::cli
