#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace proofinfer::cli {
namespace {

// What the signal handler touches: atomics without locks, a pipe, and a cancel whose request may be made from a handler.
std::atomic<int> g_signal{0};
std::atomic<proofinfer_cancel *> g_cancel{nullptr};
std::atomic<int> g_wake_write{-1};
int g_wake_read = -1;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<proofinfer_cancel *>::is_always_lock_free);

constexpr int kSignals[] = {SIGINT, SIGTERM};

extern "C" void on_signal(int number) {
  if (g_signal.exchange(number) != 0) _exit(128 + number);
  const int saved = errno;
  proofinfer_cancel_request(g_cancel.load());
  if (write(g_wake_write.load(), "", 1) < 0) errno = 0;
  errno = saved;
}

// An ignored signal stays ignored: that is how a shell without job control starts programs in the background.
void set_handler(int number, void (*handler)(int)) {
  struct sigaction old = {};
  if (sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

void open_wake_pipe() {
  int ends[2];
  if (pipe(ends) != 0) throw Problem(std::string("cannot make a pipe: ") + strerror(errno));
  for (int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  g_wake_read = ends[0];
  g_wake_write = ends[1];
}

// 0: everything is written; otherwise the error number.
int write_all(int channel, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(channel, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready = {channel, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Appends what the standard input has ready; false at its end.
bool read_some(std::string &to) {
  for (;;) {
    throw_if_interrupted();
    pollfd ready[2] = {{STDIN_FILENO, POLLIN, 0}, {g_wake_read, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) {
      if (errno == EINTR) continue;
      throw Problem(std::string("cannot wait for the standard input: ") + strerror(errno));
    }
    throw_if_interrupted();
    char chunk[4096];
    const ssize_t got = read(STDIN_FILENO, chunk, sizeof(chunk));
    if (got > 0) to.append(chunk, static_cast<size_t>(got));
    if (got >= 0) return got > 0;
    if (errno != EINTR && errno != EAGAIN) throw Problem(std::string("cannot read the standard input: ") + strerror(errno));
  }
}

std::string &unread_input() {
  static std::string text;
  return text;
}

}  // namespace

void open_missing_channels() {
  // The standard output is opened for reading only, so that writing to it fails as it would have done.
  for (int channel : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(channel, F_GETFD) < 0 && open("/dev/null", channel == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

bool stdin_is_terminal() { return isatty(STDIN_FILENO) == 1; }
bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

void print(std::string_view text) {
  const int error_number = write_all(STDOUT_FILENO, text);
  if (error_number == EPIPE) throw ReaderGone();
  if (error_number) throw Problem(std::string("cannot write to the standard output: ") + strerror(error_number));
}

void print_error(std::string_view text) { write_all(STDERR_FILENO, text); }

std::optional<std::string> read_line() {
  std::string &unread = unread_input();
  size_t searched = 0;
  size_t newline;
  while ((newline = unread.find('\n', searched)) == std::string::npos) {
    searched = unread.size();
    if (read_some(unread)) continue;
    if (unread.empty()) return std::nullopt;
    return std::exchange(unread, std::string());
  }
  std::string line = unread.substr(0, newline);
  unread.erase(0, newline + 1);
  return line;
}

std::string read_all() {
  std::string text = std::exchange(unread_input(), std::string());
  while (read_some(text)) {
  }
  return text;
}

SignalScope::SignalScope() : cancel_(make<Cancel>(proofinfer_cancel_create)) {
  open_wake_pipe();
  g_cancel = cancel_.get();
  // Writing to a pipe that nobody reads reports an error instead of ending the program unheard.
  signal(SIGPIPE, SIG_IGN);
  for (int number : kSignals) set_handler(number, on_signal);
}

SignalScope::~SignalScope() {
  for (int number : kSignals) set_handler(number, SIG_DFL);
  g_cancel = nullptr;
  close(g_wake_write.exchange(-1));
  close(std::exchange(g_wake_read, -1));
}

int signal_received() { return g_signal.load(); }

void throw_if_interrupted() {
  if (signal_received()) throw Interrupted();
}

bool take_interrupt() {
  int number = SIGINT;
  if (!g_signal.compare_exchange_strong(number, 0)) return false;
  char woken[16];
  pollfd ready = {g_wake_read, POLLIN, 0};
  while (poll(&ready, 1, 0) > 0 && read(g_wake_read, woken, sizeof(woken)) > 0) {
  }
  return true;
}

proofinfer_cancel *begin_operation() {
  proofinfer_cancel *cancel = g_cancel.load();
  // A signal before the reset is seen by the check after it; one behind the check stops the operation itself.
  proofinfer_cancel_reset(cancel);
  throw_if_interrupted();
  return cancel;
}

Progress::Progress(bool wanted, Describe describe) : describe_(std::move(describe)) {
  if (wanted && stderr_is_terminal()) thread_ = std::thread([this] { follow(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Progress::follow() {
  std::unique_lock<std::mutex> lock(mutex_);
  std::string drawn;
  std::chrono::milliseconds pause(300);
  while (!changed_.wait_for(lock, pause, [this] { return ended_; })) {
    uint64_t done = 0;
    uint64_t total = 0;
    proofinfer_cancel_progress(g_cancel.load(), &done, &total);
    const std::string line = total ? describe_(done, total) : drawn;
    if (line != drawn) print_error("\r" + line + "\033[K");
    drawn = line;
    pause = std::chrono::milliseconds(100);
  }
  if (!drawn.empty()) print_error("\r\033[K");
}

std::string number_text(double value, int decimals) {
  char text[64];
  snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

std::string bytes_text(double bytes) {
  const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  while (bytes >= 999.5 && unit < 6) bytes /= 1000, unit++;
  const int decimals = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  return number_text(bytes, decimals) + " " + units[unit];
}

std::string without_controls(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t at = 0; at < text.size(); at++) {
    const unsigned char byte = static_cast<unsigned char>(text[at]);
    const bool c0 = (byte < 32 && (byte < 9 || byte > 13)) || byte == 127;
    // U+0080 to U+009F are the bytes C2 80 to C2 9F.
    const bool c1 = byte == 0xC2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (c1) at++;
    if (!c0 && !c1) clean.push_back(text[at]);
  }
  return clean;
}

}  // namespace proofinfer::cli
