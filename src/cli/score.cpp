// proofinfer score: how probable a model finds given texts.
#include <math.h>

#include <algorithm>

#include "commands.h"
#include "engine.h"
#include "json.h"
#include "terminal.h"

namespace proofinfer::cli {
namespace {

// A session's default.
constexpr int64_t kDefaultWindow = 4096;

struct Text {
  std::string name;
  std::string bytes;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;  // NaN: not scored
};

struct Figures {
  size_t tokens = 0;
  size_t scored = 0;
  size_t scored_bytes = 0;
  double nats = 0;

  double perplexity() const { return scored ? exp(nats / static_cast<double>(scored)) : NAN; }
  double bits_per_byte() const { return scored_bytes ? nats / log(2.0) / static_cast<double>(scored_bytes) : NAN; }
  void add(const Figures &other) {
    tokens += other.tokens;
    scored += other.scored;
    scored_bytes += other.scored_bytes;
    nats += other.nats;
  }
};

// A part of a text that is evaluated from the beginning of a sequence: tokens [begin, end), behind the text's first token if that is `with_first`.
struct Window {
  size_t text, begin, end;
  size_t scored_from;  // the tokens before it are context
  bool with_first;
};

std::vector<Text> split_lines(const std::vector<Text> &texts) {
  std::vector<Text> lines;
  for (const Text &text : texts) {
    size_t number = 1;
    for (size_t begin = 0; begin < text.bytes.size(); number++) {
      const size_t end = std::min(text.bytes.find('\n', begin), text.bytes.size());
      if (end > begin) lines.push_back({text.name + ":" + std::to_string(number), text.bytes.substr(begin, end - begin), {}, {}});
      begin = end + 1;
    }
  }
  return lines;
}

std::vector<Text> read_texts(const Arguments &arguments) {
  const std::vector<std::string> &words = arguments.positionals();
  const std::vector<std::string> files = arguments.texts("file");
  if (words.empty()) throw UsageProblem("a model file is needed");
  if (words.size() > 1 && !files.empty()) throw UsageProblem("TEXT and --file exclude each other");
  arguments.expect_at_most(2);
  std::vector<Text> texts;
  texts.reserve(files.size() + 1);
  for (const std::string &path : files) texts.push_back({path, read_file("the text", path), {}, {}});
  const bool from_input = words.size() < 2 || words[1] == "-";
  if (files.empty()) texts.push_back({from_input ? "-" : "text", from_input ? read_all() : words[1], {}, {}});
  return arguments.has("lines") ? split_lines(texts) : texts;
}

// The windows of a text: the first is as long as possible, each of the others begins `stride` tokens behind the one before and scores what is new.
void add_windows(size_t text, const std::vector<int32_t> &tokens, int32_t bos, size_t length, size_t stride, std::vector<Window> *windows) {
  const bool has_bos = !tokens.empty() && tokens[0] == bos;
  windows->push_back({text, 0, std::min(length, tokens.size()), 0, false});
  for (size_t scored = length, begin = has_bos; scored < tokens.size();) {
    begin += stride;
    const size_t end = std::min(begin + length - has_bos, tokens.size());
    windows->push_back({text, begin, end, scored, has_bos});
    scored = end;
  }
}

// All windows in one call, which evaluates several of them in a pass.
void score(const proofinfer_model *model, const std::vector<Window> &windows, std::vector<Text> *texts, bool show_progress) {
  std::vector<int32_t> tokens;
  std::vector<size_t> counts;
  counts.reserve(windows.size());
  for (const Window &window : windows) {
    const std::vector<int32_t> &all = (*texts)[window.text].tokens;
    if (window.with_first) tokens.push_back(all[0]);
    tokens.insert(tokens.end(), all.begin() + static_cast<ptrdiff_t>(window.begin), all.begin() + static_cast<ptrdiff_t>(window.end));
    counts.push_back(window.with_first + window.end - window.begin);
  }
  std::vector<float> logprobs(tokens.size());
  {
    proofinfer_cancel *cancel = begin_operation();
    const Progress progress(show_progress, [](uint64_t done, uint64_t total) {
      return "scoring: " + std::to_string(done) + " of " + std::to_string(total) + " tokens";
    });
    call(proofinfer_model_score, model, tokens.data(), counts.data(), counts.size(), nullptr, logprobs.data(), cancel);
  }
  size_t offset = 0;
  for (size_t i = 0; i < windows.size(); offset += counts[i++]) {
    const Window &window = windows[i];
    const size_t first = offset + window.with_first;
    for (size_t at = std::max(window.begin, window.scored_from); at < window.end; at++)
      (*texts)[window.text].logprobs[at] = logprobs[first + at - window.begin];
  }
}

// The bytes that a token adds to a text after `previous`.
size_t bytes_of(const proofinfer_tokenizer *tokenizer, int32_t previous, int32_t token) {
  std::string bytes;
  read_text(bytes, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
    return proofinfer_tokenizer_decode(tokenizer, previous, token, 0, buffer, capacity, needed, error);
  });
  return bytes.size();
}

Figures figures_of(const proofinfer_tokenizer *tokenizer, const Text &text) {
  Figures figures;
  figures.tokens = text.tokens.size();
  figures.scored_bytes = text.bytes.size();
  for (float logprob : text.logprobs) {
    if (isnan(logprob)) continue;
    figures.scored++;
    figures.nats -= static_cast<double>(logprob);
  }
  // A first token that does not stand for the beginning is text that nothing is known about. Its space is the vocabulary's own where a text behind BOS
  // loses it, and no byte of the text.
  const int32_t bos = proofinfer_tokenizer_bos(tokenizer);
  if (!text.tokens.empty() && text.tokens[0] != bos)
    figures.scored_bytes -= std::min(figures.scored_bytes, bytes_of(tokenizer, bos, text.tokens[0]));
  if (figures.scored == 0) figures.scored_bytes = 0;
  return figures;
}

std::string piece_of(const proofinfer_tokenizer *tokenizer, int32_t token) {
  std::string piece;
  read_text(piece, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
    return proofinfer_tokenizer_piece(tokenizer, token, buffer, capacity, needed, nullptr, error);
  });
  return piece;
}

std::string padded(const std::string &text, size_t width) { return std::string(width - std::min(width, text.size()), ' ') + text; }

std::string figure_text(double value, int decimals) { return isnan(value) ? "-" : number_text(value, decimals); }

std::string row(const Figures &figures, const std::string &name) {
  return padded(std::to_string(figures.tokens), 8) + padded(std::to_string(figures.scored), 10) +
         padded(figure_text(figures.perplexity(), 4), 14) + padded(figure_text(figures.bits_per_byte(), 4), 11) + "  " + name + "\n";
}

std::string token_lines(const proofinfer_tokenizer *tokenizer, const Text &text) {
  std::string lines = "  log-prob       id  piece of " + text.name + "\n";
  for (size_t i = 0; i < text.tokens.size(); i++)
    lines += padded(figure_text(static_cast<double>(text.logprobs[i]), 5), 10) + padded(std::to_string(text.tokens[i]), 9) + "  " +
             json_quoted(piece_of(tokenizer, text.tokens[i])) + "\n";
  return lines;
}

void write_figures(JsonWriter *json, const Figures &figures) {
  json->integer("tokens", static_cast<int64_t>(figures.tokens));
  json->integer("scored", static_cast<int64_t>(figures.scored));
  json->integer("scored_bytes", static_cast<int64_t>(figures.scored_bytes));
  json->real("nats", figures.nats);
  json->real("perplexity", figures.perplexity());
  json->real("bits_per_byte", figures.bits_per_byte());
}

std::string report_json(const Arguments &arguments, const proofinfer_tokenizer *tokenizer, const std::vector<Text> &texts) {
  JsonWriter json;
  Figures total;
  json.open_object();
  json.text("model", arguments.positionals()[0]);
  json.open_array("texts");
  for (const Text &text : texts) {
    const Figures figures = figures_of(tokenizer, text);
    total.add(figures);
    json.open_object();
    json.text("name", text.name);
    write_figures(&json, figures);
    if (arguments.has("tokens")) {
      json.open_array("pieces");
      for (size_t i = 0; i < text.tokens.size(); i++) {
        json.open_object();
        json.integer("id", text.tokens[i]);
        json.text("piece", piece_of(tokenizer, text.tokens[i]));
        json.real("logprob", static_cast<double>(text.logprobs[i]));
        json.close_object();
      }
      json.close_array();
    }
    json.close_object();
  }
  json.close_array();
  json.open_object("total");
  write_figures(&json, total);
  json.close_object();
  json.close_object();
  return json.finish();
}

std::string report_table(const Arguments &arguments, const proofinfer_tokenizer *tokenizer, const std::vector<Text> &texts) {
  std::string out;
  for (const Text &text : texts)
    if (arguments.has("tokens")) out += token_lines(tokenizer, text) + "\n";
  out += "  tokens    scored    perplexity  bits/byte  text\n";
  Figures total;
  for (const Text &text : texts) {
    const Figures figures = figures_of(tokenizer, text);
    total.add(figures);
    out += row(figures, text.name);
  }
  if (texts.size() > 1) out += row(total, "(all)");
  return out;
}

}  // namespace

int run_score(const Arguments &arguments) {
  int64_t window = arguments.integer("context", 0, 2, INT64_MAX);
  const int64_t stride = arguments.integer("stride", 0, 1, INT64_MAX);
  std::vector<Text> texts = read_texts(arguments);
  const Options options = read_options(arguments);
  const LoadedModel model = load_model(arguments.positionals()[0], options.get(), arguments.has("quiet"));
  const Tokenizer tokenizer = load_tokenizer(arguments, model);
  window = std::min(window ? window : kDefaultWindow, model.get(PROOFINFER_MODEL_SEQ_LEN));
  if (stride >= window)
    throw UsageProblem("--stride is " + std::to_string(stride) + " and must be less than the window of " + std::to_string(window) +
                       " tokens");
  std::vector<Window> windows;
  for (size_t i = 0; i < texts.size(); i++) {
    texts[i].tokens = encode(tokenizer.get(), texts[i].bytes, PROOFINFER_ENCODE_DEFAULT);
    texts[i].logprobs.assign(texts[i].tokens.size(), NAN);
    add_windows(i, texts[i].tokens, proofinfer_tokenizer_bos(tokenizer.get()), static_cast<size_t>(window),
                static_cast<size_t>(stride ? stride : std::max<int64_t>(1, window / 2)), &windows);
  }
  score(model.model.get(), windows, &texts, !arguments.has("quiet"));
  print(arguments.has("json") ? report_json(arguments, tokenizer.get(), texts) : report_table(arguments, tokenizer.get(), texts));
  return kExitOk;
}

}  // namespace proofinfer::cli
