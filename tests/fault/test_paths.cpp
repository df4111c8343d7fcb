// Paths that name something else than a readable regular file, and a process that may not have more memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "support/files.h"
#include "support/sanitizer.h"
#include "support/small_world.h"

namespace proofinfer_test {

namespace fs = std::filesystem;

namespace {

class FaultPaths : public testing::Test {
 protected:
  FaultPaths() : folder_(fs::path(testing::TempDir()) / ("paths." + std::to_string(getpid()))) { fs::create_directories(folder_); }
  ~FaultPaths() override { fs::remove_all(folder_); }
  std::string path(const char *name) const { return folder_ / name; }

  // The answer of all three entry points that read a path; they must agree.
  Answer answer(const std::string &from) const {
    Answer model, tokenizer;
    open_model(from, nullptr, &model);
    open_tokenizer(from, 10, &tokenizer);
    const std::string to = path("converted.bin");
    const Answer convert =
        answer_of(proofinfer_convert, from.data(), from.size(), to.data(), to.size(), PROOFINFER_FORMAT_VERSION_1, 0, nullptr);
    EXPECT_EQ(tokenizer.status, model.status) << tokenizer;
    EXPECT_EQ(convert.status, model.status) << convert;
    EXPECT_EQ(convert.message, model.message);
    EXPECT_FALSE(fs::exists(to));
    return model;
  }

  fs::path folder_;
};

// Runs in a child of its own, which is killed after a minute: true if it says so.
bool holds_in_child(const std::function<bool()> &check) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(check() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#define EXPECT_SAYS(answer_expression, expected_status, text)                     \
  do {                                                                            \
    Answer answer_ = (answer_expression);                                         \
    EXPECT_EQ(answer_.status, (expected_status)) << answer_;                      \
    EXPECT_TRUE(answer_.says(text)) << "\"" << (text) << "\" not in " << answer_; \
  } while (false)

}  // namespace

TEST_F(FaultPaths, a_directory_a_fifo_a_device_and_a_socket_are_named_and_nothing_hangs) {
  EXPECT_SAYS(answer(folder_), PROOFINFER_E_IO, "is a directory; expected a regular file");
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_SAYS(answer(path("fifo")), PROOFINFER_E_IO, "is a FIFO; expected a regular file");
  EXPECT_SAYS(answer("/dev/zero"), PROOFINFER_E_IO, "is a device or socket; expected a regular file");
  EXPECT_SAYS(answer("/dev/null"), PROOFINFER_E_IO, "is a device or socket; expected a regular file");
  int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof(address.sun_path), "%s", path("socket").c_str());
  ASSERT_EQ(bind(descriptor, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
  EXPECT_SAYS(answer(path("socket")), PROOFINFER_E_IO, "cannot open: No such device or address");
  close(descriptor);
}

TEST_F(FaultPaths, absent_files_and_broken_links_and_loops_say_what_the_system_says) {
  EXPECT_SAYS(answer(path("absent")), PROOFINFER_E_IO, path("absent") + ": cannot open: No such file or directory");
  fs::create_symlink(path("absent"), path("broken"));
  EXPECT_SAYS(answer(path("broken")), PROOFINFER_E_IO, "No such file or directory");
  fs::create_symlink(path("loop"), path("loop"));
  EXPECT_SAYS(answer(path("loop")), PROOFINFER_E_IO, "Too many levels of symbolic links");
  EXPECT_SAYS(answer(path("absent") + "/below"), PROOFINFER_E_IO, "No such file or directory");
}

TEST_F(FaultPaths, an_unreadable_file_is_an_io_error) {
  ScratchFile file(small_checkpoint());
  ASSERT_EQ(chmod(file.path().c_str(), 0), 0);
  EXPECT_TRUE(holds_in_child([&] {
    // root reads everything: become someone else.
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return false;
    Answer found;
    open_model(file.path(), nullptr, &found);
    return found.status == PROOFINFER_E_IO && found.says("Permission denied");
  }));
}

TEST_F(FaultPaths, paths_that_no_system_takes_are_argument_errors) {
  EXPECT_SAYS(answer(""), PROOFINFER_E_ARGUMENT, "the path is empty");
  EXPECT_SAYS(answer(std::string("a\0b", 3)), PROOFINFER_E_ARGUMENT, "NUL byte among its 3 bytes");
  EXPECT_SAYS(answer(std::string(5000, 'x')), PROOFINFER_E_ARGUMENT, "the path has 5000 bytes");
  EXPECT_SAYS(answer(std::string(1 << 20, 'x')), PROOFINFER_E_ARGUMENT, "the path has 1048576 bytes");
}

TEST_F(FaultPaths, an_empty_file_is_empty_and_a_name_of_any_bytes_opens) {
  ScratchFile empty({});
  EXPECT_SAYS(answer(empty.path()), PROOFINFER_E_UNRECOGNIZED, "empty");
  const std::string odd = path("\xFF\xFE \n\xF0\x9F\xA6\x99.bin");
  ScratchFile good(small_checkpoint());
  fs::copy_file(good.path(), odd);
  EXPECT_TRUE(open_model(odd));
}

TEST_F(FaultPaths, a_new_file_may_have_the_longest_name_that_there_is) {
  ScratchFile from(small_checkpoint());
  const std::string to = path(std::string(255, 'n').c_str());
  const Answer convert =
      answer_of(proofinfer_convert, from.path().data(), from.path().size(), to.data(), to.size(), PROOFINFER_FORMAT_VERSION_1, 0, nullptr);
  EXPECT_TRUE(convert.ok()) << convert;
  EXPECT_TRUE(fs::exists(to));
}

TEST_F(FaultPaths, a_process_without_address_space_gets_a_memory_error_and_goes_on) {
#if defined(PROOFINFER_TEST_SANITIZED)
  PROOFINFER_SKIP("instrumented") << "sanitizers reserve terabytes of address space";
#else
  const std::vector<uint8_t> large = legacy_checkpoint({256, 512, 8, 4, 4, 4000, 8}, 1);
  EXPECT_TRUE(holds_in_child([&] {
    SmallWorld world;
    Session session = make_session(world.model);
    rlimit limit = {};
    if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
    limit.rlim_cur = 1;  // whatever is mapped stays; nothing more can be had from the system
    if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
    Answer opening;
    Model none = open_model(large, nullptr, &opening);
    bool refused = !none && opening.status == PROOFINFER_E_MEMORY && opening.says("weights");
    return refused && append(session, {1, 2, 3}, PROOFINFER_LOGITS_LAST).ok();
  }));
#endif
}

}  // namespace proofinfer_test
