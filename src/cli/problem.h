// What ends a command early: thrown anywhere in the program, turned into a message and an exit code by main. Any thread.
#ifndef PROOFINFER_CLI_PROBLEM_H
#define PROOFINFER_CLI_PROBLEM_H

#include <stdexcept>
#include <string>

namespace proofinfer::cli {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

// Something went wrong at run time: exit code 1, the message for a person.
class Problem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The command line asks for something that there is not: exit code 2, the message and where the help is.
class UsageProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The person pressed Ctrl-C, or the system asked the program to end: exit code 128 + the signal's number, no message.
class Interrupted : public std::exception {
 public:
  const char *what() const noexcept override { return "interrupted"; }
};

// Whoever reads the standard output has gone: exit code 1, no message.
class ReaderGone : public std::exception {
 public:
  const char *what() const noexcept override { return "nobody reads the output"; }
};

}  // namespace proofinfer::cli

#endif
