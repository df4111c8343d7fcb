#include "talk.h"

#include <algorithm>

#include "terminal.h"

namespace proofinfer::cli {
namespace {

constexpr char kHelp[] =
    "/reset         forget the conversation; the system prompt stays\n"
    "/system TEXT   another system prompt, and forget the conversation\n"
    "/help          this\n"
    "/quit          leave, as Ctrl-D does\n"
    "Ctrl-C stops an answer; between answers it leaves. A line that begins with // says what is behind the first /.\n";

struct Message {
  int32_t role;
  std::string content;
};

class Talk {
 public:
  Talk(const Arguments &arguments, Engine &engine)
      : engine_(engine),
        template_(arguments.text("template").value_or("")),
        max_tokens_(arguments.integer("max-tokens", 0, 0, INT32_MAX)),
        stop_strings_(arguments.texts("stop-string")),
        first_line_(arguments.text("prompt")),
        quiet_(arguments.has("quiet")),
        at_terminal_(stdin_is_terminal() && stdout_is_terminal()) {
    find_stop_tokens();
    if (const std::string reason = set_system(arguments.text("system").value_or("")); !reason.empty())
      throw UsageProblem(arguments.spelling("system") + ": " + reason);
  }

  void hold() {
    if (at_terminal_ && !quiet_) print_error("/help tells the commands, Ctrl-D leaves\n");
    while (const std::optional<std::string> line = next_line()) {
      if (line->empty()) continue;
      if ((*line)[0] == '/' && line->compare(0, 2, "//") != 0) {
        if (!obey(*line)) return;
      } else {
        say((*line)[0] == '/' ? line->substr(1) : *line);
      }
    }
    if (at_terminal_) print("\n");
  }

 private:
  void find_stop_tokens() {
    stop_tokens_.resize(16);
    size_t needed = 0;
    try {
      call(proofinfer_chat_stop_tokens, engine_.tokenizer(), template_.data(), template_.size(), stop_tokens_.data(), stop_tokens_.size(),
           &needed);
    } catch (const ApiProblem &problem) {
      if (problem.status() == PROOFINFER_E_ARGUMENT) throw UsageProblem(std::string("--template: ") + problem.what());
      if (problem.status() == PROOFINFER_E_UNSUPPORTED)
        throw Problem(std::string(problem.what()) + " (--template NAME; 'proofinfer generate --special' takes a whole prompt)");
      throw;
    }
    stop_tokens_.resize(needed);
  }

  // Why the template or the vocabulary has no form for it; empty: it has, and the conversation begins with it.
  std::string set_system(const std::string &text) {
    std::vector<Message> conversation;
    if (!text.empty()) conversation.push_back({PROOFINFER_ROLE_SYSTEM, text});
    conversation.swap(messages_);
    if (text.empty()) return "";
    std::string reason = reason_against_next();
    if (!reason.empty()) messages_.swap(conversation);
    return reason;
  }

  // Why no message can follow those that there are.
  std::string reason_against_next() {
    messages_.push_back({PROOFINFER_ROLE_USER, ""});
    std::string reason = reason_against_messages();
    messages_.pop_back();
    return reason;
  }

  // Why the messages cannot be said in the template and the vocabulary; empty: they can.
  std::string reason_against_messages() const {
    try {
      encode_messages();
    } catch (const ApiProblem &problem) {
      if (problem.status() != PROOFINFER_E_ARGUMENT && problem.status() != PROOFINFER_E_FORMAT) throw;
      return problem.what();
    }
    return "";
  }

  std::optional<std::string> next_line() {
    if (first_line_) return std::exchange(first_line_, std::nullopt);
    if (at_terminal_) print("> ");
    return read_line();
  }

  // False: leave.
  bool obey(const std::string &line) {
    const size_t end = std::min(line.find(' '), line.size());
    const std::string command = line.substr(0, end), rest = line.substr(std::min(end + 1, line.size()));
    if (command == "/quit") return false;
    if (command == "/help") {
      print_error(kHelp);
    } else if (command == "/reset" || command == "/system") {
      if (command == "/reset") {
        messages_.resize(has_system() ? 1 : 0);
      } else if (const std::string reason = set_system(rest); !reason.empty()) {
        print_error("proofinfer: " + reason + "; the conversation stays as it is\n");
      }
    } else {
      print_error("proofinfer: there is no command '" + command + "'; /help tells those that there are\n");
    }
    return true;
  }

  bool has_system() const { return !messages_.empty() && messages_[0].role == PROOFINFER_ROLE_SYSTEM; }

  // One turn. What cannot be answered is taken out of the conversation again.
  void say(const std::string &line) {
    messages_.push_back({PROOFINFER_ROLE_USER, line});
    if (const std::string reason = reason_against_messages(); !reason.empty()) {
      messages_.pop_back();
      print_error("proofinfer: " + reason + "; this message is not sent\n");
      return;
    }
    std::string answer;
    try {
      const std::vector<int32_t> prompt = fitting_prompt();
      if (!prompt.empty()) {
        const size_t kept = engine_.rewind_to_common(prompt);
        engine_.append_prompt({prompt.begin() + static_cast<ptrdiff_t>(kept), prompt.end()});
        stream_answer(&answer);
      }
    } catch (const Interrupted &) {
      // Of an answer that was stopped counts what was shown.
      if (!take_interrupt()) throw;
    }
    if (!answer.empty() && answer.back() != '\n') print("\n");
    if (answer.empty())
      messages_.pop_back();
    else
      keep(answer);
  }

  // An answer is part of every later prompt. Not every text that a model makes can be encoded again: a piece may hold a byte that has none by itself.
  void keep(const std::string &answer) {
    messages_.push_back({PROOFINFER_ROLE_ASSISTANT, answer});
    const std::string reason = reason_against_next();
    if (reason.empty()) return;
    messages_.resize(messages_.size() - 2);
    print_error("proofinfer: the answer cannot be part of a prompt: " + reason + "; it is forgotten, and the message before it\n");
  }

  std::vector<int32_t> encode_messages() const {
    std::vector<int32_t> roles;
    std::vector<size_t> sizes;
    std::string contents;
    for (const Message &message : messages_) {
      roles.push_back(message.role);
      sizes.push_back(message.content.size());
      contents += message.content;
    }
    // A guess at first: a token a byte, and what stands around each message.
    std::vector<int32_t> tokens(contents.size() + 64 * (messages_.size() + 1));
    for (;;) {
      size_t needed = 0;
      proofinfer_error *error = nullptr;
      const int32_t status =
          proofinfer_chat_encode(engine_.tokenizer(), template_.data(), template_.size(), roles.data(), contents.data(), sizes.data(),
                                 messages_.size(), PROOFINFER_CHAT_ANSWER, tokens.data(), tokens.size(), &needed, &error);
      const Error owned(error);
      tokens.resize(needed);
      if (status == PROOFINFER_E_BUFFER) continue;
      check(status, error);
      return tokens;
    }
  }

  // Positions that a prompt may take: an answer has a quarter of all, or "--max-tokens" if that is less.
  size_t prompt_room() const {
    const size_t all = engine_.steps(), quarter = all / 4;
    const size_t wanted = max_tokens_ > 0 ? static_cast<size_t>(max_tokens_) : quarter;
    return all - std::max<size_t>(1, std::min(wanted, quarter));
  }

  // The conversation as tokens, its oldest turns left out if they no longer fit. Empty: the last message alone is too long, which is said.
  std::vector<int32_t> fitting_prompt() {
    size_t forgotten = 0;
    for (;;) {
      std::vector<int32_t> prompt = encode_messages();
      if (prompt.size() <= prompt_room()) {
        if (forgotten > 0)
          note("the oldest " + std::to_string(forgotten) + " messages no longer fit the " + std::to_string(engine_.steps()) +
               " positions and are forgotten");
        return prompt;
      }
      const size_t first = has_system();
      if (messages_.size() < first + 3) {
        note("this message makes a prompt of " + std::to_string(prompt.size()) + " tokens; there is room for " +
             std::to_string(prompt_room()) + ", so it is not sent");
        return {};
      }
      messages_.erase(messages_.begin() + static_cast<ptrdiff_t>(first), messages_.begin() + static_cast<ptrdiff_t>(first) + 2);
      forgotten += 2;
    }
  }

  void stream_answer(std::string *answer) {
    const Generation generation = engine_.generate(&stop_tokens_, stop_strings_, max_tokens_);
    std::string piece;
    int32_t token = 0, reason = PROOFINFER_STOP_NONE;
    while (reason == PROOFINFER_STOP_NONE) {
      read_text(piece, [&](char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
        return proofinfer_generation_next(generation.get(), begin_operation(), &token, buffer, capacity, needed, &reason, error);
      });
      *answer += piece;
      print(without_controls(piece));
    }
    if (engine_.position() >= engine_.steps() && (reason == PROOFINFER_STOP_CONTEXT || reason == PROOFINFER_STOP_LENGTH)) {
      if (!answer->empty() && answer->back() != '\n') print("\n");
      *answer += '\n';
      note("the answer has no room left: all " + std::to_string(engine_.steps()) + " positions are used");
    }
  }

  void note(const std::string &text) const {
    if (!quiet_) print_error("proofinfer: note: " + text + "\n");
  }

  Engine &engine_;
  std::string template_;  // empty: the file's
  int64_t max_tokens_;    // of an answer; 0: no limit
  std::vector<std::string> stop_strings_;
  std::optional<std::string> first_line_;
  bool quiet_, at_terminal_;
  std::vector<int32_t> stop_tokens_;
  std::vector<Message> messages_;
};

}  // namespace

int talk(const Arguments &arguments, Engine &engine) {
  Talk(arguments, engine).hold();
  return kExitOk;
}

}  // namespace proofinfer::cli
