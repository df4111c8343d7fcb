// proofinfer_convert: the recorded version 2 files byte for byte, round trips, and failures that leave no file behind.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"
#include "support/sha256.h"

namespace proofinfer_test {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

class Convert : public testing::Test {
 protected:
  Convert() : folder_(fs::path(testing::TempDir()) / ("convert." + std::to_string(::getpid()))) { fs::create_directories(folder_); }
  ~Convert() override { fs::remove_all(folder_); }

  std::string path(const std::string &name) const { return (folder_ / name).string(); }
  std::string write(const std::string &name, const std::vector<uint8_t> &bytes) const {
    std::ofstream(path(name), std::ios::binary).write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
    return path(name);
  }
  Answer convert(const std::string &from, const std::string &to, int32_t format, int32_t group_size = 0,
                 proofinfer_cancel *cancel = nullptr) {
    return answer_of(proofinfer_convert, from.data(), from.size(), to.data(), to.size(), format, group_size, cancel);
  }
  size_t file_count() const { return size_t(std::distance(fs::directory_iterator(folder_), fs::directory_iterator())); }

  fs::path folder_;
};

Shape shape_of(const json &c) {
  const json &s = c["shape"];
  return {s["dim"], s["hidden_dim"], s["n_layers"], s["n_heads"], s["n_kv_heads"], s["vocab_size"], s["seq_len"]};
}

constexpr Shape kShape = {16, 24, 2, 4, 2, -30, 12};

}  // namespace

TEST_F(Convert, gives_the_recorded_version_2_files) {
  const json all = golden("runq_c_q80.json");
  ASSERT_EQ(all["cases"].size(), 5u);
  for (const json &c : all["cases"]) {
    std::string from = write("legacy.bin", legacy_checkpoint(shape_of(c), c["seed"]));
    Answer answer = convert(from, path("v2.bin"), PROOFINFER_FORMAT_VERSION_2, c["group_size"]);
    ASSERT_TRUE(answer.ok()) << answer;
    EXPECT_EQ(sha256_hex(*read_file(path("v2.bin"))), c["file_sha256"]) << c["name"];
  }
}

TEST_F(Convert, legacy_to_version_1_and_back_is_the_identity) {
  for (Shape shape :
       {kShape, Shape{16, 24, 2, 4, 2, 30, 12}, Shape{16, 24, 2, 4, 2, 30, 70000}}) {  // the last one has a megabyte of tables
    std::vector<uint8_t> legacy = legacy_checkpoint(shape, 5);
    std::string from = write("legacy.bin", legacy);
    ASSERT_TRUE(convert(from, path("v1.bin"), PROOFINFER_FORMAT_VERSION_1).ok());
    EXPECT_EQ(*read_file(path("v1.bin")), version1_checkpoint(shape, 5));
    ASSERT_TRUE(convert(path("v1.bin"), path("back.bin"), PROOFINFER_FORMAT_LEGACY).ok());
    EXPECT_EQ(*read_file(path("back.bin")), legacy);
  }
}

TEST_F(Convert, version_2_with_the_same_group_is_a_copy_and_with_another_goes_through_float) {
  std::vector<uint8_t> v2 = version2_checkpoint(kShape, 5, 8);
  std::string from = write("v2.bin", v2);
  ASSERT_TRUE(convert(from, path("copy.bin"), PROOFINFER_FORMAT_VERSION_2, 8).ok());
  EXPECT_EQ(*read_file(path("copy.bin")), v2);
  ASSERT_TRUE(convert(from, path("float.bin"), PROOFINFER_FORMAT_VERSION_1).ok());
  ASSERT_TRUE(convert(path("float.bin"), path("four.bin"), PROOFINFER_FORMAT_VERSION_2, 4).ok());
  ASSERT_TRUE(convert(from, path("direct.bin"), PROOFINFER_FORMAT_VERSION_2, 4).ok());
  EXPECT_EQ(*read_file(path("four.bin")), *read_file(path("direct.bin")));
}

TEST_F(Convert, chooses_the_largest_power_of_two_that_divides_both) {
  std::string from = write("legacy.bin", legacy_checkpoint(kShape, 5));  // dim 16, hidden_dim 24: 8
  ASSERT_TRUE(convert(from, path("v2.bin"), PROOFINFER_FORMAT_VERSION_2).ok());
  EXPECT_EQ(*read_file(path("v2.bin")), version2_checkpoint(kShape, 5, 8));
}

TEST_F(Convert, refuses_group_sizes_and_formats_by_name_and_number_and_writes_nothing) {
  std::string from = write("legacy.bin", legacy_checkpoint(kShape, 5));
  Answer answer = convert(from, path("out.bin"), PROOFINFER_FORMAT_VERSION_2, 16);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  EXPECT_TRUE(answer.says("group_size is 16") && answer.says("dim, which is 16") && answer.says("hidden_dim, which is 24")) << answer;
  for (int32_t group_size : {-1, INT32_MIN, 65537, INT32_MAX})
    EXPECT_EQ(convert(from, path("out.bin"), PROOFINFER_FORMAT_VERSION_2, group_size).status, PROOFINFER_E_ARGUMENT) << group_size;
  EXPECT_EQ(convert(from, path("out.bin"), PROOFINFER_FORMAT_VERSION_1, 8).status, PROOFINFER_E_ARGUMENT);
  for (int32_t format : {-1, 4, INT32_MAX}) EXPECT_EQ(convert(from, path("out.bin"), format).status, PROOFINFER_E_ARGUMENT) << format;
  EXPECT_EQ(convert(from, path("no/such/folder.bin"), PROOFINFER_FORMAT_VERSION_1).status, PROOFINFER_E_IO);
  EXPECT_EQ(convert(path("absent.bin"), path("out.bin"), PROOFINFER_FORMAT_VERSION_1).status, PROOFINFER_E_IO);
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Convert, names_tensor_and_row_of_a_weight_that_cannot_be_quantized) {
  std::vector<uint8_t> bytes = legacy_checkpoint(kShape, 5);
  for (const TensorPlace &place : legacy_places(kShape)) {
    if (place.name != "layers.1.w2") continue;
    std::vector<uint8_t> nan;
    put_u32(&nan, 0x7fc00000u);
    std::copy(nan.begin(), nan.end(), bytes.begin() + std::ptrdiff_t(place.offset + 4 * (3 * 24 + 5)));
  }
  std::string from = write("legacy.bin", bytes);
  Answer answer = convert(from, path("out.bin"), PROOFINFER_FORMAT_VERSION_2, 8);
  EXPECT_EQ(answer.status, PROOFINFER_E_NOT_FINITE);
  EXPECT_TRUE(answer.says("row 3 of tensor layers.1.w2")) << answer;
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Convert, cancelled_leaves_the_old_file_as_it_was) {
  std::string from = write("legacy.bin", legacy_checkpoint(kShape, 5));
  std::string to = write("out.bin", {1, 2, 3});
  proofinfer_cancel *made = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_cancel_create, &made).ok());
  Cancel cancel(made);
  proofinfer_cancel_request(cancel.get());
  EXPECT_EQ(convert(from, to, PROOFINFER_FORMAT_VERSION_1, 0, cancel.get()).status, PROOFINFER_E_CANCELLED);
  EXPECT_EQ(*read_file(to), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(Convert, tells_how_far_it_is_up_to_the_last_byte) {
  std::string from = write("legacy.bin", legacy_checkpoint(kShape, 5));
  proofinfer_cancel *made = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_cancel_create, &made).ok());
  Cancel cancel(made);
  ASSERT_TRUE(convert(from, path("v1.bin"), PROOFINFER_FORMAT_VERSION_1, 0, cancel.get()).ok());
  uint64_t done = 0, total = 0;
  proofinfer_cancel_progress(cancel.get(), &done, &total);
  EXPECT_EQ(done, fs::file_size(path("v1.bin")));
  EXPECT_EQ(total, done);
}

// One row is more than a part of the conversion usually is.
TEST_F(Convert, takes_rows_of_any_width) {
  const Shape wide = {2, (1 << 18) + 4, 1, 1, 1, 3, 2};
  std::string from = write("legacy.bin", legacy_checkpoint(wide, 5));
  ASSERT_TRUE(convert(from, path("v1.bin"), PROOFINFER_FORMAT_VERSION_1).ok());
  EXPECT_EQ(*read_file(path("v1.bin")), version1_checkpoint(wide, 5));
}

TEST_F(Convert, can_replace_its_own_input) {
  std::vector<uint8_t> legacy = legacy_checkpoint(kShape, 5);
  std::string file = write("model.bin", legacy);
  ASSERT_TRUE(convert(file, file, PROOFINFER_FORMAT_VERSION_1).ok());
  EXPECT_EQ(*read_file(file), version1_checkpoint(kShape, 5));
}

TEST_F(Convert, replaces_regular_files_only_and_keeps_their_permissions) {
  const std::string from = write("from.bin", legacy_checkpoint(kShape, 1)), regular = write("to.bin", {1, 2, 3});
  ASSERT_EQ(chmod(regular.c_str(), 0600), 0);
  ASSERT_TRUE(convert(from, regular, PROOFINFER_FORMAT_VERSION_1).ok());
  struct stat found = {};
  ASSERT_EQ(stat(regular.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_GT(found.st_size, 3);

  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  fs::create_symlink(regular, path("link"));
  fs::create_directory(path("folder"));
  for (const std::string &to : {path("fifo"), path("link"), path("folder"), std::string("/dev/null")}) {
    const fs::file_type kind = fs::symlink_status(to).type();
    Answer answer = convert(from, to, PROOFINFER_FORMAT_VERSION_1);
    EXPECT_EQ(answer.status, PROOFINFER_E_IO) << answer;
    EXPECT_TRUE(answer.says(to + ": is a link, a device, a pipe or a directory; expected a regular file to replace, or nothing")) << answer;
    EXPECT_EQ(fs::symlink_status(to).type(), kind) << to;
  }
  EXPECT_EQ(file_count(), 5u);
}

// A killed process leaves its temporary file; a process of the same number, or the next conversion of this one, must not stumble over it.
TEST_F(Convert, passes_over_what_a_killed_process_left) {
  const std::string from = write("from.bin", legacy_checkpoint(kShape, 1));
  for (int number = 0; number < 3; number++)
    write(".proofinfer-" + std::to_string(::getpid()) + "-" + std::to_string(number) + ".partial", {1});
  const std::string to = path("to.bin");
  ASSERT_TRUE(convert(from, to, PROOFINFER_FORMAT_VERSION_1).ok());
  EXPECT_EQ(*read_file(to), version1_checkpoint(kShape, 1));
  EXPECT_EQ(file_count(), 5u);
}

// The legacy format has two tables of the context's length, which this library writes as zeros: gigabytes if a header of 256 bytes says so.
TEST_F(Convert, writing_the_tables_of_a_long_context_can_be_cancelled) {
  Shape shape = kShape;
  shape.seq_len = 1 << 26;
  const std::vector<uint8_t> bytes = version1_checkpoint(shape, 1);
  const std::string from = write("from.bin", bytes);
  proofinfer_cancel *made = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_cancel_create, &made).ok());
  Cancel cancel(made);
  std::thread canceller([&] {
    for (uint64_t done = 0, total = 0; done < 2 * bytes.size(); std::this_thread::yield())
      proofinfer_cancel_progress(cancel.get(), &done, &total);
    proofinfer_cancel_request(cancel.get());
  });
  Answer answer = convert(from, path("to.bin"), PROOFINFER_FORMAT_LEGACY, 0, cancel.get());
  canceller.join();
  EXPECT_EQ(answer.status, PROOFINFER_E_CANCELLED) << answer;
  EXPECT_EQ(file_count(), 1u);
}

}  // namespace proofinfer_test
