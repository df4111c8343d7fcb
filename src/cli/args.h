// The command line: a table of flags a command, read into typed values with errors that name the flag. Not shared between threads.
#ifndef PROOFINFER_CLI_ARGS_H
#define PROOFINFER_CLI_ARGS_H

#include <stdint.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace proofinfer::cli {

struct Flag {
  char letter;        // '\0': none
  const char *name;   // the long spelling without its dashes
  const char *value;  // what stands for the value in the help; nullptr: the flag takes none
  const char *help;   // one sentence or more
};

class Arguments {
 public:
  // Reads words that follow the command's name. Throws UsageProblem for a flag that is not in the table or lacks its value.
  Arguments(const std::vector<Flag> &flags, const std::vector<std::string> &words);

  const std::vector<std::string> &positionals() const { return positionals_; }
  bool has(std::string_view name) const { return values_.count(std::string(name)) != 0; }
  std::optional<std::string> text(std::string_view name) const;
  // Every value of a flag that may be given several times.
  std::vector<std::string> texts(std::string_view name) const;
  // The value as a number within [lowest, highest]; throws UsageProblem otherwise.
  int64_t integer(std::string_view name, int64_t otherwise, int64_t lowest, int64_t highest) const;
  uint64_t unsigned_integer(std::string_view name, uint64_t otherwise) const;
  double real(std::string_view name, double otherwise, double lowest, double highest) const;
  // How the person wrote the flag, for messages: "-n" or "--steps".
  std::string spelling(std::string_view name) const;

  // Throws UsageProblem if there are more positionals than `most`.
  void expect_at_most(size_t most) const;

 private:
  struct Given {
    std::string spelling;             // of the last one
    std::vector<std::string> values;  // in order; for most flags the last counts
  };
  size_t read_flag(const std::vector<Flag> &flags, const std::vector<std::string> &words, size_t at);

  std::map<std::string, Given> values_;
  std::vector<std::string> positionals_;
};

// "ID:NUMBER" pairs separated by commas or spaces; `what` names them in the message.
struct Bias {
  int32_t token;
  float bias;
};
std::vector<Bias> parse_biases(std::string_view what, std::string_view text);
// Token ids separated by commas or spaces; `what` names them in the message. "none" is the empty list.
std::vector<int32_t> parse_tokens(std::string_view what, std::string_view text);

}  // namespace proofinfer::cli

#endif
