// proofinfer generate: a prompt, and the text that the model puts behind it.
#include <algorithm>

#include "commands.h"
#include "engine.h"
#include "system.h"
#include "terminal.h"
#include "text_output.h"

namespace proofinfer::cli {
namespace {

// The reference program's number of positions.
constexpr int64_t kDefaultSteps = 256;

struct Timing {
  size_t prompt_count = 0;  // prompt tokens evaluated
  double prompt_seconds = 0;
  size_t generated_count = 0;  // tokens sampled and printed
  double generated_seconds = 0;
};

struct Stops {
  std::optional<std::vector<int32_t>> tokens;  // nullopt: those of the vocabulary
  std::vector<std::string> strings;
};

std::string prompt_text(const Arguments &arguments) {
  const std::optional<std::string> text = arguments.text("prompt");
  const std::optional<std::string> path = arguments.text("prompt-file");
  if (text && path) throw UsageProblem("--prompt and --prompt-file exclude each other");
  if (path) return read_file("the prompt file", *path);
  return text.value_or("");
}

// nullopt: the flag is absent.
std::optional<std::vector<int32_t>> given_stop_tokens(const Arguments &arguments) {
  const std::optional<std::string> given = arguments.text("stop");
  if (!given) return std::nullopt;
  return parse_tokens("--stop", *given);
}

std::string rate_text(size_t count, double seconds) {
  std::string text = std::to_string(count) + " tokens";
  if (count > 0 && seconds > 0) text += ", " + number_text(static_cast<double>(count) / seconds, 1) + " tok/s";
  return text;
}

void report(const Arguments &arguments, const Engine &engine, const Timing &timing) {
  if (arguments.has("quiet") || !(arguments.has("verbose") || stderr_is_terminal())) return;
  const LoadedModel &model = engine.model();
  print_error("prompt: " + rate_text(timing.prompt_count, timing.prompt_seconds) +
              "; generated: " + rate_text(timing.generated_count, timing.generated_seconds) +
              "; load: " + number_text(model.load_seconds, 3) + " s; threads: " + std::to_string(model.get(PROOFINFER_MODEL_THREADS)) +
              "; kernels: " + model.text(PROOFINFER_MODEL_ISA) + "\n");
}

// Prints the prompt without the token that begins a text: as many tokens as there are steps.
void echo(const Engine &engine, const std::vector<int32_t> &prompt, TextOutput &output) {
  const bool begins = prompt[0] == proofinfer_tokenizer_bos(engine.tokenizer());
  output.begin(begins ? prompt[0] : -1);
  const size_t last = std::min(engine.steps(), prompt.size() - 1);
  for (size_t i = begins; i <= last; i++) output.token(prompt[i]);
}

// The token at position i is printed by step i, so n steps print n tokens: the rest of the prompt, then sampled ones. The last
// one printed is not evaluated.
void sample_and_print(Engine &engine, const std::vector<int32_t> &stops, TextOutput &output, Timing *timing) {
  const double start = seconds_now();
  for (;;) {
    const int32_t token = engine.sample();
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) break;
    output.token(token);
    timing->generated_count++;
    timing->generated_seconds = seconds_now() - start;
    if (engine.position() >= engine.steps()) break;
    engine.append(token);
  }
}

// The same until a stop string, of which nothing is printed, nor of what may still become one.
void generate_and_print(proofinfer_generation *generation, TextOutput &output, Timing *timing) {
  const double start = seconds_now();
  std::string piece;
  int32_t token = 0, reason = PROOFINFER_STOP_NONE;
  while (reason == PROOFINFER_STOP_NONE) {
    read_text(piece, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
      return proofinfer_generation_next(generation, begin_operation(), &token, buffer, capacity, needed, &reason, error);
    });
    output.text(without_controls(piece));
    if (reason != PROOFINFER_STOP_TOKEN) timing->generated_count++;
    timing->generated_seconds = seconds_now() - start;
  }
}

void note_long_prompt(const Arguments &arguments, const Engine &engine, size_t prompt_count) {
  if (arguments.has("quiet")) return;
  print_error("proofinfer: note: the prompt has " + std::to_string(prompt_count) + " tokens and there are " +
              std::to_string(engine.steps()) + " positions: nothing is generated\n");
}

// The text without its last newline. A prompt that fills all positions is printed as far as they go and never evaluated.
void tell(Engine &engine, const std::vector<int32_t> &prompt, const Stops &stops, TextOutput &output, Timing *timing) {
  if (prompt.size() > engine.steps()) return echo(engine, prompt, output);
  const double start = seconds_now();
  engine.append_prompt(prompt);
  timing->prompt_count = prompt.size();
  timing->prompt_seconds = seconds_now() - start;
  echo(engine, prompt, output);
  if (stops.strings.empty() && stops.tokens) return sample_and_print(engine, *stops.tokens, output, timing);
  output.flush();
  generate_and_print(engine.generate(stops.tokens ? &*stops.tokens : nullptr, stops.strings).get(), output, timing);
}

}  // namespace

int run_generate(const Arguments &arguments) {
  const std::string path = model_path(arguments);
  const std::string mode = arguments.text("mode").value_or("generate");
  if (mode == "chat") return chat_with(arguments, kDefaultSteps);
  if (mode != "generate") throw UsageProblem(arguments.spelling("mode") + " needs generate or chat, not '" + mode + "'");
  const std::optional<std::vector<int32_t>> given_stops = given_stop_tokens(arguments);
  if (arguments.has("raw-pieces") && arguments.has("stop-string")) throw UsageProblem("--raw-pieces and --stop-string exclude each other");
  const std::string text = prompt_text(arguments);
  Engine engine(arguments, path, kDefaultSteps);
  Stops stops = {given_stops, arguments.texts("stop-string")};
  // A tokenizer.bin has this one; what it prints token by token is what the reference prints.
  if (!stops.tokens && !engine.has_kinds()) stops.tokens = {proofinfer_tokenizer_bos(engine.tokenizer())};
  const std::vector<int32_t> prompt = engine.encode_prompt(text, arguments.has("special"));
  TextOutput output(engine.tokenizer(), arguments.has("raw-pieces"));
  Timing timing;
  try {
    tell(engine, prompt, stops, output, &timing);
  } catch (const ReaderGone &) {
    throw;
  } catch (const std::exception &) {
    // What was told so far stays a whole line, whatever ends it.
    output.flush();
    if (!output.at_line_start()) output.text("\n");
    report(arguments, engine, timing);
    throw;
  }
  output.flush();
  output.text("\n");
  if (prompt.size() > engine.steps()) note_long_prompt(arguments, engine, prompt.size());
  report(arguments, engine, timing);
  return kExitOk;
}

std::string model_path(const Arguments &arguments) {
  arguments.expect_at_most(1);
  if (arguments.positionals().empty()) throw UsageProblem("a model file is needed");
  return arguments.positionals()[0];
}

}  // namespace proofinfer::cli
