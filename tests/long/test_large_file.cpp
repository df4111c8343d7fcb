// A sparse legacy checkpoint of 5.5 GB: the few weights that are not zero stand before and behind 2^32, and must arrive where they belong. Wants
// 6 GB of memory and no other test beside it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

constexpr Shape kShape = {4096, 11008, 5, 32, 32, -44000, 2048};
constexpr uint64_t kRowBytes = 4096 * sizeof(float);
constexpr int32_t kToken = 43999;
constexpr int32_t kLogitsAt[] = {0, 1, 15, 16, 12345, 43983, 43999};  // ids whose logit is not zero

void write_floats(int file, int64_t offset, const std::vector<float> &values) {
  std::vector<uint8_t> bytes;
  for (float value : values) put_f32(&bytes, value);
  ASSERT_EQ(pwrite(file, bytes.data(), bytes.size(), off_t(offset)), ssize_t(bytes.size()));
}

Answer opening(const std::string &path, uint64_t bytes) {
  EXPECT_EQ(truncate(path.c_str(), off_t(bytes)), 0);
  Answer answer;
  open_model(path, nullptr, &answer);
  return answer;
}

}  // namespace

TEST(LargeFile, more_than_four_gigabytes_are_refused_a_byte_short_or_long) {
  const uint64_t bytes = uint64_t(checkpoint_bytes(Format::kLegacy, kShape, 1));
  ASSERT_GT(bytes, uint64_t(5) << 30);
  ScratchFile file(checkpoint_header(Format::kLegacy, kShape, 1));
  Answer answer = opening(file.path(), bytes - 1);
  EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED);
  EXPECT_TRUE(answer.says("tensor classifier") && answer.says(std::to_string(bytes))) << answer;
  answer = opening(file.path(), bytes + 1);
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT);
  EXPECT_TRUE(answer.says(std::to_string(bytes + 1))) << answer;
  answer = opening(file.path(), bytes - (uint64_t(1) << 32));  // right for who counts in 32 bits
  EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED);
  EXPECT_TRUE(answer.says(std::to_string(bytes - (uint64_t(1) << 32)))) << answer;
}

TEST(LargeFile, more_than_four_gigabytes_load_and_compute) {
  const uint64_t bytes = uint64_t(checkpoint_bytes(Format::kLegacy, kShape, 1));
  const uint64_t vocab = uint64_t(kShape.vocab());
  int64_t final_norm = 0, classifier = 0;
  for (const TensorPlace &place : legacy_places(kShape)) {
    if (place.name == "final_norm") final_norm = int64_t(place.offset);
    if (place.name == "classifier") classifier = int64_t(place.offset);
  }
  ASSERT_GT(final_norm, int64_t(1) << 32);
  ScratchFile file(checkpoint_header(Format::kLegacy, kShape, 1));
  ASSERT_EQ(truncate(file.path().c_str(), off_t(bytes)), 0);
  // The token's embedding is ones, every layer adds zeros, the last norm doubles, and the classifier picks an element.
  const int to = open(file.path().c_str(), O_WRONLY);
  ASSERT_GE(to, 0);
  write_floats(to, 28 + int64_t(kToken) * int64_t(kRowBytes), std::vector<float>(4096, 1.0f));
  write_floats(to, final_norm, std::vector<float>(4096, 2.0f));
  for (int32_t id : kLogitsAt) write_floats(to, classifier + id * int64_t(kRowBytes) + id % 4096 * 4, {float(id + 1)});
  close(to);

  auto begin = std::chrono::steady_clock::now();
  Model model = open_model(file.path());
  ASSERT_TRUE(model);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_FILE_BYTES), int64_t(bytes));
  EXPECT_LT(model_i64(model, PROOFINFER_MODEL_MEMORY_BYTES), int64_t(bytes + (64u << 20)));  // no second copy
  Options options = make_options();
  set(options, "context_length", 4);
  Session session = make_session(model, options.get());
  ASSERT_TRUE(append(session, {kToken}, PROOFINFER_LOGITS_LAST).ok());
  std::vector<float> expected(vocab, 0.0f);
  const float scale = 1.0f / std::sqrt(1.0f + 1e-5f);
  for (int32_t id : kLogitsAt) expected[size_t(id)] = float(id + 1) * (2.0f * scale);
  EXPECT_EQ(logits(session, 0), expected);

  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%.1f GB in %.1f s, at most %.1f GB of memory\n", double(bytes) / 1e9, seconds, double(usage.ru_maxrss) * 1024 / 1e9);
  EXPECT_LT(uint64_t(usage.ru_maxrss) * 1024, bytes + (uint64_t(512) << 20));
}

}  // namespace proofinfer_test
