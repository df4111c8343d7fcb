// The commands of the program: their flags and help as data, and the functions that run them. Immutable.
#ifndef PROOFINFER_CLI_COMMANDS_H
#define PROOFINFER_CLI_COMMANDS_H

#include <string>
#include <string_view>
#include <vector>

#include "args.h"

namespace proofinfer::cli {

struct Command {
  const char *name;
  const char *summary;              // for the list of commands
  std::vector<const char *> usage;  // what follows "proofinfer " in the synopsis
  const char *description;          // one paragraph
  std::vector<Flag> flags;
  std::vector<const char *> examples;  // "command    # what it does" or a bare command
  int (*run)(const Arguments &arguments);
};

const std::vector<Command> &commands();
const Command *find_command(std::string_view name);

int run_generate(const Arguments &arguments);
int run_chat(const Arguments &arguments);
int run_score(const Arguments &arguments);
int run_tokenize(const Arguments &arguments);
int run_inspect(const Arguments &arguments);
int run_convert(const Arguments &arguments);
int run_bench(const Arguments &arguments);
int run_selftest(const Arguments &arguments);

// The chat of `generate -m chat` and of `chat`; default_steps: what -n means when it is absent.
int chat_with(const Arguments &arguments, int64_t default_steps);

// The only positional, a model's path; throws UsageProblem otherwise.
std::string model_path(const Arguments &arguments);

// What a command is for, how it is called, every flag and examples.
std::string help_text(const Command &command);
std::string overview_text();
std::string version_text();

}  // namespace proofinfer::cli

#endif
