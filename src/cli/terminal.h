// The program's three channels and the signals that end it: whole writes, interruptible reads, a progress line. One thread, but for the
// signal handler and the progress line's own thread.
#ifndef PROOFINFER_CLI_TERMINAL_H
#define PROOFINFER_CLI_TERMINAL_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "handles.h"

namespace proofinfer::cli {

// Gives the standard channels that the caller closed something to point at, so that no file lands on them and is written into.
void open_missing_channels();

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

// Writes everything. print throws ReaderGone or Problem; print_error cannot fail in a way that matters.
void print(std::string_view text);
void print_error(std::string_view text);

// From the standard input: one line without its newline (nullopt: the input has ended), or all that is left. Throw Interrupted and Problem.
std::optional<std::string> read_line();
std::string read_all();

// While it lives, SIGINT and SIGTERM stop what runs with the cancel. A second signal ends the program at once. At most one at a time.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope &) = delete;
  SignalScope &operator=(const SignalScope &) = delete;

 private:
  Cancel cancel_;
};

// The signal that came, or 0.
int signal_received();
void throw_if_interrupted();
// Whether what came is Ctrl-C; then it is forgotten, and the program goes on.
bool take_interrupt();

// The cancel for the next operation of the library, its progress at 0. Throws Interrupted if a signal has come already. It lives as long
// as the SignalScope.
proofinfer_cancel *begin_operation();

// A line on the standard error that follows an operation's progress, drawn by a thread of its own from 0.3 s on and wiped at the end.
// Does nothing where the standard error is no terminal or `wanted` is false.
class Progress {
 public:
  using Describe = std::function<std::string(uint64_t done, uint64_t total)>;
  Progress(bool wanted, Describe describe);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

 private:
  void follow();

  Describe describe_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

// "1.5 GB": three digits, decimal units.
std::string bytes_text(double bytes);
// "%.*f" without the format string.
std::string number_text(double value, int decimals);

// Bytes that a terminal would obey made harmless: control characters except those 9 to 13 are left out. text: whole UTF-8 characters.
std::string without_controls(std::string_view text);

}  // namespace proofinfer::cli

#endif
