// proofinfer bench: how fast this machine loads a model, reads a prompt and generates.
#include "bench.h"

#include <algorithm>
#include <optional>

#include "commands.h"
#include "machine_speed.h"
#include "system.h"
#include "terminal.h"

namespace proofinfer::cli {
namespace {

constexpr int64_t kDefaultTokens = 200;
constexpr int64_t kDefaultRepeats = 5;
// Loading is repeated while it has taken less than this in all.
constexpr double kLoadSeconds = 5.0;

// Ids spread over the vocabulary; what they are has no influence on the time.
std::vector<int32_t> make_prompt(size_t count, int64_t vocab_size) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; i++) tokens[i] = static_cast<int32_t>((static_cast<int64_t>(i) * 7919 + 1) % vocab_size);
  return tokens;
}

// Clips the plan to the model's context; the prompt gives way first down to a half of it.
void clip_to_context(BenchPlan &plan, size_t seq_len) {
  plan.prompt_count = std::min(plan.prompt_count, seq_len);
  if (plan.prompt_count + plan.decode_count > seq_len && plan.decode_count > 0)
    plan.prompt_count = std::min(plan.prompt_count, std::max(seq_len / 2, seq_len - std::min(seq_len, plan.decode_count)));
  plan.decode_count = std::min(plan.decode_count, seq_len - plan.prompt_count);
}

BenchPlan read_plan(const Arguments &arguments) {
  BenchPlan plan;
  plan.prompt_count = static_cast<size_t>(arguments.integer("prompt-tokens", kDefaultTokens, 1, 1 << 20));
  plan.decode_count = static_cast<size_t>(arguments.integer("decode-tokens", kDefaultTokens, 0, 1 << 20));
  plan.repeats = static_cast<size_t>(arguments.integer("repeats", kDefaultRepeats, 1, 10000));
  plan.sessions = static_cast<size_t>(arguments.integer("sessions", 0, 0, 2048));
  if (plan.sessions > 0 && plan.decode_count == 0) throw UsageProblem("--sessions measures decoding; --decode-tokens is 0");
  plan.bounds = !arguments.has("no-bounds");
  plan.quiet = arguments.has("quiet");
  return plan;
}

// Loads the model several times, never two at once, and leaves the last in `model`.
std::vector<Figure> measure_load(const std::string &path, const proofinfer_options *options, const BenchPlan &plan, LoadedModel *model) {
  Figure seconds{"load_seconds", "load", "s", {}};
  Figure rate{"load_gigabytes_per_second", "load rate", "GB/s", {}};
  double total_seconds = 0;
  do {
    model->model.reset();
    *model = load_model(path, options, plan.quiet);
    seconds.runs.push_back(model->load_seconds);
    rate.runs.push_back(static_cast<double>(model->get(PROOFINFER_MODEL_FILE_BYTES)) / model->load_seconds / 1e9);
    total_seconds += model->load_seconds;
  } while (seconds.runs.size() < plan.repeats && total_seconds < kLoadSeconds);
  return {seconds, rate, {"peak_memory_after_load_bytes", "peak memory, loaded", "bytes", {static_cast<double>(peak_memory_bytes())}}};
}

double time_prefill(proofinfer_session *session, const std::vector<int32_t> &prompt) {
  call(proofinfer_session_rewind, session, size_t{0});
  const double start = seconds_now();
  append_tokens(session, prompt.data(), prompt.size(), false);
  return seconds_now() - start;
}

// Greedy decoding, the choice of each token included.
double time_decode(proofinfer_session *session, proofinfer_sampler *sampler, size_t count) {
  const double start = seconds_now();
  for (size_t i = 0; i < count; i++) {
    const int32_t token = sample_last(session, sampler);
    append_tokens(session, &token, 1, false);
  }
  return seconds_now() - start;
}

// A tokenizer that fits any model: every piece is "a". Text costs the scheduler what it costs others.
Tokenizer plain_tokenizer(int64_t vocab_size) {
  const std::string piece("\0\0\0\0\1\0\0\0a", 9);  // score, length, bytes
  std::string file("\1\0\0\0", 4);                  // the longest piece
  for (int64_t i = 0; i < vocab_size; i++) file += piece;
  return make<Tokenizer>(proofinfer_tokenizer_open_memory, file.data(), file.size(), static_cast<int32_t>(vocab_size), nullptr);
}

// Generations that have read the same prompt and decode together in a scheduler.
class Together {
 public:
  Together(const LoadedModel &model, proofinfer_options *options, const BenchPlan &plan, const std::vector<int32_t> &prompt)
      : options_(options),
        last_(prompt.back()),
        prompt_count_(prompt.size()),
        tokenizer_(plain_tokenizer(model.get(PROOFINFER_MODEL_VOCAB_SIZE))) {
    call(proofinfer_options_set_i64, options, PROOFINFER_TEXT("max_generations"), static_cast<int64_t>(plan.sessions));
    call(proofinfer_options_set_i64, options, PROOFINFER_TEXT("max_tokens"), static_cast<int64_t>(plan.decode_count));
    call(proofinfer_options_set_tokens, options, PROOFINFER_TEXT("stop_tokens"), nullptr, size_t{0});
    scheduler_ = make<Scheduler>(proofinfer_scheduler_create, model.model.get(), tokenizer_.get(), options);
    for (size_t i = 0; i < plan.sessions; i++) {
      sessions_.push_back(make<Session>(proofinfer_session_create, model.model.get(), options));
      append_tokens(sessions_.back().get(), prompt.data(), prompt.size(), false);
    }
  }
  // Tokens a second, of all generations together.
  double decode(proofinfer_sampler *sampler) {
    std::vector<Generation> generations;
    uint64_t id = 0;
    for (const Session &session : sessions_) {
      call(proofinfer_session_rewind, session.get(), prompt_count_ - 1);
      generations.push_back(
          make<Generation>(proofinfer_generation_create, session.get(), tokenizer_.get(), sampler, &last_, size_t{1}, options_));
      call(proofinfer_scheduler_add, scheduler_.get(), generations.back().get(), &id);
    }
    const double start = seconds_now();
    size_t token_count = 0;
    while (proofinfer_scheduler_count(scheduler_.get()) > 0) {
      call(proofinfer_scheduler_step, scheduler_.get(), begin_operation(), nullptr);
      while (take()) token_count++;
    }
    return static_cast<double>(token_count) / (seconds_now() - start);
  }

 private:
  bool take() {
    uint64_t id = 0;
    int32_t token = -1, stop_reason = 0;
    char text[8];
    size_t bytes = 0;
    call(proofinfer_scheduler_next, scheduler_.get(), uint64_t{0}, &id, &token, text, sizeof(text), &bytes, &stop_reason);
    return id != 0;
  }

  proofinfer_options *options_;
  int32_t last_;  // of the prompt
  size_t prompt_count_;
  Tokenizer tokenizer_;
  Scheduler scheduler_;
  std::vector<Session> sessions_;
};

void show_run(const BenchPlan &plan, size_t run) {
  if (!plan.quiet && stderr_is_terminal())
    print_error("\rmeasuring: run " + std::to_string(run + 1) + " of " + std::to_string(plan.repeats) + "\033[K");
}

// Bytes that one token's evaluation reads: all weights but an embedding that is not the classifier too, and the keys and values of the
// positions before it, here of those in the middle of decoding.
double bytes_per_token(const LoadedModel &model, const BenchPlan &plan) {
  const double positions = static_cast<double>(plan.prompt_count) + static_cast<double>(plan.decode_count) / 2;
  const double kv_dim = static_cast<double>(model.get(PROOFINFER_MODEL_HEAD_SIZE) * model.get(PROOFINFER_MODEL_N_KV_HEADS));
  double bytes = static_cast<double>(model.get(PROOFINFER_MODEL_WEIGHT_BYTES)) +
                 positions * kv_dim * 2 * sizeof(float) * static_cast<double>(model.get(PROOFINFER_MODEL_N_LAYERS));
  if (model.get(PROOFINFER_MODEL_SHARED_CLASSIFIER)) return bytes;
  const bool quantized = model.get(PROOFINFER_MODEL_GROUP_SIZE) > 0;
  const double weights = static_cast<double>(model.get(PROOFINFER_MODEL_VOCAB_SIZE) * model.get(PROOFINFER_MODEL_DIM));
  return bytes - weights * (quantized ? 1.0 + 4.0 / static_cast<double>(model.get(PROOFINFER_MODEL_GROUP_SIZE)) : 4.0);
}

// Multiplications and additions of the layers' matrices for one token; a prompt needs the classifier once only.
double operations_per_token(const LoadedModel &model) {
  const double dim = static_cast<double>(model.get(PROOFINFER_MODEL_DIM)),
               hidden_dim = static_cast<double>(model.get(PROOFINFER_MODEL_HIDDEN_DIM));
  const double kv_dim = static_cast<double>(model.get(PROOFINFER_MODEL_HEAD_SIZE) * model.get(PROOFINFER_MODEL_N_KV_HEADS));
  return 2 * static_cast<double>(model.get(PROOFINFER_MODEL_N_LAYERS)) * dim * (2 * dim + 2 * kv_dim + 3 * hidden_dim);
}

// The model's speed and, run by run beside it, what the machine could do.
struct Speeds {
  Figure prefill{"prefill_tokens_per_second", "prefill", "tok/s", {}};
  Figure decode{"decode_tokens_per_second", "decode", "tok/s", {}};
  Figure together{"together_tokens_per_second", "decode, together", "tok/s", {}};
  Figure bandwidth{"read_gigabytes_per_second", "memory read", "GB/s", {}};
  Figure arithmetic{"multiply_add_gigaflops", "multiply and add", "GFLOP/s", {}};
};

// The shares that a median of the model has of the median of its bound.
std::vector<Figure> shares(const LoadedModel &model, const BenchPlan &plan, const Speeds &speeds) {
  std::vector<Figure> figures = {
      speeds.bandwidth, speeds.arithmetic, {"bytes_per_token", "read per token", "bytes", {bytes_per_token(model, plan)}}};
  if (!speeds.decode.runs.empty())
    figures.push_back({"decode_share_of_read_bound",
                       "decode of the bound",
                       "",
                       {median(speeds.decode.runs) * bytes_per_token(model, plan) / (median(speeds.bandwidth.runs) * 1e9)}});
  if (model.get(PROOFINFER_MODEL_GROUP_SIZE) == 0)
    figures.push_back({"prefill_share_of_multiply_add",
                       "prefill of the peak",
                       "",
                       {median(speeds.prefill.runs) * operations_per_token(model) / (median(speeds.arithmetic.runs) * 1e9)}});
  return figures;
}

std::vector<Figure> measure_speed(const LoadedModel &model, proofinfer_options *options, const BenchPlan &plan) {
  set_context_length(options, static_cast<int64_t>(plan.prompt_count + plan.decode_count));
  const Session session = make<Session>(proofinfer_session_create, model.model.get(), options);
  const int64_t vocab_size = model.get(PROOFINFER_MODEL_VOCAB_SIZE);
  const Sampler sampler = make<Sampler>(proofinfer_sampler_create, static_cast<int32_t>(vocab_size), options);
  const std::vector<int32_t> prompt = make_prompt(plan.prompt_count, vocab_size);
  // The first run touches the memory and wakes the threads; it does not count.
  time_prefill(session.get(), prompt);
  time_decode(session.get(), sampler.get(), plan.decode_count);
  std::optional<Together> together;
  if (plan.sessions > 0 && plan.decode_count > 0) together.emplace(model, options, plan, prompt);
  const double peak_bytes = static_cast<double>(peak_memory_bytes());  // before the bounds' own memory
  const size_t threads = static_cast<size_t>(model.get(PROOFINFER_MODEL_THREADS));
  std::optional<ReadBandwidth> bandwidth;
  if (plan.bounds) bandwidth.emplace(static_cast<size_t>(bytes_per_token(model, plan)), threads);
  Speeds speeds;
  for (size_t run = 0; run < plan.repeats; run++) {
    show_run(plan, run);
    speeds.prefill.runs.push_back(static_cast<double>(plan.prompt_count) / time_prefill(session.get(), prompt));
    const double seconds = time_decode(session.get(), sampler.get(), plan.decode_count);
    if (plan.decode_count > 0) speeds.decode.runs.push_back(static_cast<double>(plan.decode_count) / seconds);
    if (together) speeds.together.runs.push_back(together->decode(sampler.get()));
    if (bandwidth) speeds.bandwidth.runs.push_back(bandwidth->measure(seconds) / 1e9);
    if (bandwidth) speeds.arithmetic.runs.push_back(measure_multiply_add(threads) / 1e9);
  }
  if (!plan.quiet && stderr_is_terminal()) print_error("\r\033[K");
  const double session_bytes = static_cast<double>(proofinfer_session_memory_bytes(session.get()));
  std::vector<Figure> figures = {speeds.prefill};
  if (plan.decode_count > 0) figures.push_back(speeds.decode);
  if (together) {
    figures.push_back(speeds.together);
    figures.push_back({"together_gain", "gain of together", "", {median(speeds.together.runs) / median(speeds.decode.runs)}});
  }
  if (bandwidth)
    for (const Figure &figure : shares(model, plan, speeds)) figures.push_back(figure);
  figures.push_back({"session_memory_bytes", "session memory", "bytes", {session_bytes}});
  figures.push_back({"peak_memory_bytes", "peak memory", "bytes", {peak_bytes}});
  return figures;
}

void append(std::vector<Figure> &to, const std::vector<Figure> &more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

int run_bench(const Arguments &arguments) {
  const std::string path = model_path(arguments);
  BenchPlan plan = read_plan(arguments);
  const Options options = read_options(arguments);
  LoadedModel model;
  std::vector<Figure> figures = measure_load(path, options.get(), plan, &model);
  clip_to_context(plan, static_cast<size_t>(model.get(PROOFINFER_MODEL_SEQ_LEN)));
  append(figures, measure_speed(model, options.get(), plan));
  print(arguments.has("json") ? bench_json(model, plan, figures) : bench_table(model, plan, figures));
  return kExitOk;
}

}  // namespace proofinfer::cli
