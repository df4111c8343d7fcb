// The texts of --help and --version.
#include <algorithm>

#include "commands.h"
#include "handles.h"

namespace proofinfer::cli {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kFlagColumn = 26;

// Breaks a text at spaces into lines that end before kWidth; all but the first begin with `indent` spaces.
std::string wrapped(std::string_view text, size_t indent) {
  std::string result;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + end > kWidth) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      column++;
    }
    result += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return result;
}

std::string flag_text(const Flag &flag) {
  std::string head = flag.letter ? std::string("  -") + flag.letter + ", --" : "      --";
  head += flag.name;
  if (flag.value) head += std::string(" ") + flag.value;
  const bool fits = head.size() < kFlagColumn;
  head += fits ? std::string(kFlagColumn - head.size(), ' ') : "\n" + std::string(kFlagColumn, ' ');
  return head + wrapped(flag.help, kFlagColumn) + "\n";
}

std::string kernel_sets_text() {
  std::string text;
  for (size_t i = 0; i < proofinfer_isa_count(); i++)
    text +=
        std::string(text.empty() ? "" : ", ") + proofinfer_isa_name(i) + (proofinfer_isa_available(i) ? "" : " (not on this processor)");
  return text;
}

}  // namespace

std::string help_text(const Command &command) {
  std::string text = std::string("proofinfer ") + command.name + " - " + command.summary + "\n\nUsage:\n";
  for (const char *usage : command.usage) text += std::string("  proofinfer ") + usage + "\n";
  text += "\n" + wrapped(command.description, 0) + "\n\nFlags:\n";
  for (const Flag &flag : command.flags) text += flag_text(flag);
  text += "\nExamples:\n";
  for (const char *example : command.examples) text += std::string("  ") + example + "\n";
  return text;
}

std::string overview_text() {
  std::string text =
      "proofinfer - run Llama-family language models on a CPU, every output bit the\n"
      "same everywhere\n\n"
      "Usage:\n"
      "  proofinfer MODEL [flags]            continue a prompt, as 'generate'\n"
      "  proofinfer COMMAND ...\n"
      "  proofinfer help COMMAND             what a command does, and its flags\n"
      "  proofinfer --help | --version\n\n"
      "Commands:\n";
  for (const Command &command : commands()) {
    const std::string name = command.name;
    text += "  " + name + std::string(12 - std::min<size_t>(12, name.size()), ' ') + command.summary + "\n";
  }
  text +=
      "\nA first story, and a look at the model that told it:\n"
      "  proofinfer stories260K.bin -z tok512.bin -i \"Once upon a time\"\n"
      "  proofinfer inspect stories260K.bin\n\n"
      "Exit codes: 0 all is well, 1 something failed, 2 the command line is wrong,\n"
      "130 ended by Ctrl-C (143 by SIGTERM).\n";
  return text;
}

std::string version_text() {
  std::string text = std::string("proofinfer ") + proofinfer_version_text() + "\n";
  text += std::string("build: ") + proofinfer_build_text() + "\n";
  return text + "kernel sets: " + kernel_sets_text() + "\n";
}

}  // namespace proofinfer::cli
