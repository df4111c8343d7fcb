// proofinfer chat: a conversation in the chat template of the model's file; with the files of llama2.c, turn by turn as its program holds it.
#include "commands.h"
#include "engine.h"
#include "talk.h"
#include "terminal.h"
#include "text_output.h"

namespace proofinfer::cli {
namespace {

// What the user's part of a turn looks like to the model.
std::string render(const std::string &system, const std::string &user) {
  if (system.empty()) return "[INST] " + user + " [/INST]";
  return "[INST] <<SYS>>\n" + system + "\n<</SYS>>\n\n" + user + " [/INST]";
}

class Conversation {
 public:
  Conversation(const Arguments &arguments, Engine &engine)
      : engine_(engine),
        output_(engine.tokenizer(), arguments.has("raw-pieces")),
        end_of_turn_(proofinfer_tokenizer_eos(engine.tokenizer())),
        system_(arguments.text("system")),
        first_user_(arguments.text("prompt")) {}

  // Until the input ends (true) or there is no position left (false).
  bool hold() {
    while (engine_.position() < engine_.steps()) {
      const std::optional<std::string> turn = user_turn();
      if (!turn) return true;
      if (!read_turn(engine_.encode_prompt(*turn))) break;
      answer();
    }
    return false;
  }

  // The reference ends with a newline in any case; otherwise one that would leave an empty line is spared.
  void end_line() {
    output_.flush();
    if (output_.raw() || !output_.at_line_start()) output_.text("\n");
  }

 private:
  std::optional<std::string> ask(const char *question) {
    output_.text(question);
    return read_line();
  }

  // What the user says, rendered; nullopt at the end of the input. The system prompt belongs to the first turn.
  std::optional<std::string> user_turn() {
    const bool is_first = engine_.position() == 0;
    if (is_first && !system_) {
      system_ = ask("Enter system prompt (optional): ");
      if (!system_) return std::nullopt;
    }
    const std::optional<std::string> user = is_first && first_user_ ? first_user_ : ask("User: ");
    if (!user) return std::nullopt;
    return render(is_first ? *system_ : "", *user);
  }

  // Evaluates a user's turn; false if there is no room for it. Random numbers are drawn as the reference draws them: one a token.
  bool read_turn(const std::vector<int32_t> &tokens) {
    const bool fits = tokens.size() <= engine_.steps() - engine_.position();
    if (fits && !output_.raw()) engine_.append_prompt(tokens);
    output_.text("Assistant: ");
    if (output_.raw()) {
      read_turn_as_reference(tokens);
    } else if (fits) {
      engine_.skip_draws(tokens.size() - 1);
    }
    output_.begin(tokens.back());
    return fits;
  }

  // Token by token, as far as there is room: the reference samples behind each, and starts a line where that would end a turn.
  void read_turn_as_reference(const std::vector<int32_t> &tokens) {
    for (size_t i = 0; i < tokens.size() && engine_.position() < engine_.steps(); i++) {
      engine_.append(tokens[i]);
      if (i + 1 < tokens.size() && engine_.sample() == end_of_turn_) output_.text("\n");
    }
  }

  // Samples until the model ends its turn or the positions end.
  void answer() {
    for (;;) {
      const int32_t token = engine_.sample();
      if (token == end_of_turn_) {
        output_.flush();
        output_.text("\n");
        if (engine_.position() < engine_.steps()) append_end_of_turn();
        return;
      }
      output_.token(token);
      if (engine_.position() >= engine_.steps()) return;
      engine_.append(token);
    }
  }

  // The reference also samples behind the end of a turn and prints that token, which is of no use to anyone but a comparison.
  void append_end_of_turn() {
    engine_.append(end_of_turn_);
    if (!output_.raw()) return engine_.skip_draws(1);
    const int32_t token = engine_.sample();
    output_.begin(end_of_turn_);
    if (token == end_of_turn_) return output_.text("\n");
    output_.token(token);
  }

  Engine &engine_;
  TextOutput output_;
  int32_t end_of_turn_;
  std::optional<std::string> system_;
  std::optional<std::string> first_user_;
};

}  // namespace

int chat_with(const Arguments &arguments, int64_t default_steps) {
  Engine engine(arguments, model_path(arguments), default_steps);
  if (engine.has_kinds() || arguments.has("template")) {
    if (arguments.has("raw-pieces")) throw UsageProblem("--raw-pieces is for the files of llama2.c");
    return talk(arguments, engine);
  }
  for (const char *flag : {"max-tokens", "stop-string"})
    if (arguments.has(flag)) throw UsageProblem(std::string("--") + flag + " needs a chat template: name one with --template");
  Conversation conversation(arguments, engine);
  bool input_ended = false;
  try {
    input_ended = conversation.hold();
  } catch (const ReaderGone &) {
    throw;
  } catch (const std::exception &) {
    conversation.end_line();
    throw;
  }
  conversation.end_line();
  if (!input_ended && !arguments.has("quiet"))
    print_error("proofinfer: note: the conversation has no room left: all " + std::to_string(engine.steps()) + " positions are used\n");
  return kExitOk;
}

int run_chat(const Arguments &arguments) { return chat_with(arguments, 0); }

}  // namespace proofinfer::cli
