// proofinfer tokenize: text to token ids and back.
#include <algorithm>

#include "commands.h"
#include "engine.h"
#include "json.h"
#include "terminal.h"
#include "vocabulary_file.h"

namespace proofinfer::cli {
namespace {

struct Request {
  std::string model;               // empty: none
  std::vector<std::string> words;  // the text, or the ids to decode
};

// With --decode every positional is an id. Otherwise two are MODEL and TEXT; one is TEXT, or MODEL where no tokenizer is named.
Request read_request(const Arguments &arguments) {
  const std::vector<std::string> &words = arguments.positionals();
  const bool named = arguments.has("tokenizer");
  if (arguments.has("decode")) {
    if (named) return {"", words};
    if (words.empty()) throw UsageProblem("a tokenizer (-z FILE) or a model file is needed");
    return {words[0], {words.begin() + 1, words.end()}};
  }
  arguments.expect_at_most(2);
  if (words.size() == 2) return {words[0], {words[1]}};
  if (words.size() == 1 && named) return {"", words};
  if (words.size() == 1) return {words[0], {}};
  if (!named) throw UsageProblem("a tokenizer (-z FILE) or a model file is needed");
  return {};
}

int64_t vocabulary_of_file(const std::string &path) {
  if (is_gguf_file(path)) return 0;
  const std::optional<int32_t> count = count_pieces(path);
  // Not countable: let the library say what is wrong with the file. It reads at least one piece to find out.
  return count.value_or(1);
}

Tokenizer tokenizer_for(const Arguments &arguments, const Request &request) {
  // A GGUF model brings its tokenizer: its weights are not needed for it.
  const std::optional<std::string> named = arguments.text("tokenizer");
  const std::string path = named ? *named : request.model;
  const bool gguf = is_gguf_file(path);
  if (!request.model.empty() && !gguf) {
    const Options options = read_options(arguments);
    return load_tokenizer(arguments, load_model(request.model, options.get(), arguments.has("quiet")));
  }
  if (arguments.has("vocab")) return open_tokenizer(path, arguments.integer("vocab", 1, 1, INT32_MAX));
  Tokenizer tokenizer = open_tokenizer(path, vocabulary_of_file(path));
  if (!gguf && !count_pieces(path))
    throw Problem("tokenizer '" + path +
                  "': the file does not end with the end of a piece, so its pieces cannot be counted. Say how many with --vocab N");
  return tokenizer;
}

std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string text_of(const Request &request) {
  if (request.words.empty() || (request.words.size() == 1 && request.words[0] == "-")) return read_all();
  return joined(request.words);
}

std::string id_line(const std::vector<int32_t> &tokens) {
  std::string line;
  for (int32_t token : tokens) line += (line.empty() ? "" : " ") + std::to_string(token);
  return line + "\n";
}

std::string piece_table(const proofinfer_tokenizer *tokenizer, const std::vector<int32_t> &tokens) {
  std::string table = "     id  piece\n";
  std::string piece;
  for (int32_t token : tokens) {
    read_text(piece, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
      return proofinfer_tokenizer_piece(tokenizer, token, buffer, capacity, needed, nullptr, error);
    });
    const std::string id = std::to_string(token);
    table += std::string(7 - std::min<size_t>(7, id.size()), ' ') + id + "  " + json_quoted(piece) + "\n";
  }
  return table;
}

// The text of ids. A BOS in front only says that the text begins, as it does where a model generates.
std::string decoded(const proofinfer_tokenizer *tokenizer, const std::vector<int32_t> &tokens) {
  const bool begins = !tokens.empty() && tokens[0] == proofinfer_tokenizer_bos(tokenizer);
  const Stream stream = make<Stream>(proofinfer_stream_create, tokenizer, begins ? tokens[0] : -1);
  std::string text;
  std::string piece;
  for (size_t i = begins ? 1 : 0; i < tokens.size(); i++) {
    read_text(piece, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
      return proofinfer_stream_push(stream.get(), tokens[i], buffer, capacity, needed, error);
    });
    text += piece;
  }
  read_text(piece, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
    return proofinfer_stream_flush(stream.get(), buffer, capacity, needed, error);
  });
  return text + piece;
}

}  // namespace

int run_tokenize(const Arguments &arguments) {
  const Request request = read_request(arguments);
  const Tokenizer tokenizer = tokenizer_for(arguments, request);
  const std::string text = text_of(request);
  if (arguments.has("decode")) {
    print(decoded(tokenizer.get(), parse_tokens("--decode", text)) + "\n");
    return kExitOk;
  }
  const uint32_t flags = (arguments.has("bos") ? PROOFINFER_ENCODE_BOS : 0) | (arguments.has("eos") ? PROOFINFER_ENCODE_EOS : 0) |
                         (arguments.has("special") ? PROOFINFER_ENCODE_SPECIAL : 0) |
                         (arguments.has("default") ? PROOFINFER_ENCODE_DEFAULT : 0);
  const std::vector<int32_t> tokens = encode(tokenizer.get(), text, flags);
  print(arguments.has("pieces") ? piece_table(tokenizer.get(), tokens) : id_line(tokens));
  if (stderr_is_terminal() && !arguments.has("ids-only") && !arguments.has("quiet"))
    print_error(std::to_string(tokens.size()) + " tokens for " + std::to_string(text.size()) + " bytes\n");
  return kExitOk;
}

}  // namespace proofinfer::cli
