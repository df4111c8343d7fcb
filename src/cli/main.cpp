// The program: picks the command, runs it, and turns what ends it into a message and an exit code.
#include <filesystem>
#include <new>

#include "commands.h"
#include "handles.h"
#include "terminal.h"

namespace proofinfer::cli {
namespace {

// What is to be run: a command, or a text to print.
struct Call {
  const Command *command = nullptr;
  std::vector<std::string> words;
  std::string text;
};

// A word that is no command is a model's path if it may be one.
bool may_be_path(const std::string &word) {
  std::error_code failed;
  return word.find_first_of("/.") != std::string::npos || std::filesystem::exists(word, failed);
}

Call help_call(const std::vector<std::string> &words) {
  if (words.size() < 2) return {nullptr, {}, overview_text()};
  const Command *command = find_command(words[1]);
  if (!command) throw UsageProblem("there is no command '" + words[1] + "'");
  return {nullptr, {}, help_text(*command)};
}

Call choose(const std::vector<std::string> &words) {
  if (words.empty()) throw UsageProblem("a model file or a command is needed");
  const std::string &first = words[0];
  if (first == "help") return help_call(words);
  if (first == "--help" || first == "-h") return {nullptr, {}, overview_text()};
  if (first == "--version" || first == "-V") return {nullptr, {}, version_text()};
  if (const Command *command = find_command(first)) return {command, {words.begin() + 1, words.end()}, ""};
  if (first[0] != '-' && !may_be_path(first)) throw UsageProblem("'" + first + "' is neither a command nor a file");
  return {find_command("generate"), words, ""};
}

void check_library_version() {
  if (proofinfer_version_number() / 1000000 != PROOFINFER_VERSION_MAJOR)
    throw Problem(std::string("this program needs libproofinfer ") + std::to_string(PROOFINFER_VERSION_MAJOR) + ", and version " +
                  proofinfer_version_text() + " is installed");
}

int run(const Call &chosen) {
  if (!chosen.command) {
    print(chosen.text);
    return kExitOk;
  }
  try {
    const Arguments arguments(chosen.command->flags, chosen.words);
    if (arguments.has("help")) {
      print(help_text(*chosen.command));
      return kExitOk;
    }
    return chosen.command->run(arguments);
  } catch (const UsageProblem &problem) {
    throw UsageProblem(std::string(problem.what()) + "\nSee 'proofinfer help " + chosen.command->name + "'.");
  }
}

int complain(const std::string &message, int exit_code) {
  print_error("proofinfer: " + message + "\n");
  return exit_code;
}

int guarded(const std::vector<std::string> &words) {
  try {
    check_library_version();
    const SignalScope signals;
    return run(choose(words));
  } catch (const Interrupted &) {
    return 128 + signal_received();
  } catch (const ReaderGone &) {
    return kExitFailure;
  } catch (const UsageProblem &problem) {
    const std::string message = problem.what();
    const bool has_hint = message.find('\n') != std::string::npos;
    return complain(has_hint ? message : message + "\nSee 'proofinfer --help'.", kExitUsage);
  } catch (const std::bad_alloc &) {
    return complain("out of memory", kExitFailure);
  } catch (const std::exception &problem) {
    return complain(problem.what(), kExitFailure);
  }
}

}  // namespace

int run_selftest(const Arguments &arguments) {
  arguments.expect_at_most(0);
  call(proofinfer_selftest);
  if (!arguments.has("quiet")) print("selftest passed\n");
  return kExitOk;
}

}  // namespace proofinfer::cli

int main(int argc, char **argv) {
  proofinfer::cli::open_missing_channels();
  return proofinfer::cli::guarded({argv + (argc > 0 ? 1 : 0), argv + argc});
}
