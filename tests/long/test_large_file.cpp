// A sparse legacy checkpoint of more than 5 GB loads, computes, and is refused when a byte is missing. Wants 6 GB of memory and no other test beside it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

TEST(LargeFile, more_than_four_gigabytes_load_and_compute) {
  const Shape shape = {4096, 11008, 6, 32, 32, 32000, 2048};
  const uint64_t bytes = uint64_t(checkpoint_bytes(Format::kLegacy, shape, 1));
  ASSERT_GT(bytes, uint64_t(5) << 30);
  ScratchFile file(checkpoint_header(Format::kLegacy, shape, 1));
  ASSERT_EQ(truncate(file.path().c_str(), off_t(bytes - 1)), 0);
  Answer answer;
  open_model(file.path(), nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED) << answer;
  EXPECT_TRUE(answer.says("tensor rope_tables") && answer.says(std::to_string(bytes))) << answer;

  ASSERT_EQ(truncate(file.path().c_str(), off_t(bytes)), 0);
  auto begin = std::chrono::steady_clock::now();
  Model model = open_model(file.path());
  ASSERT_TRUE(model);
  std::printf("%.1f GB in %.1f s\n", double(bytes) / 1e9, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_FILE_BYTES), int64_t(bytes));
  EXPECT_LT(model_i64(model, PROOFINFER_MODEL_MEMORY_BYTES), int64_t(bytes + (64u << 20)));  // no second copy
  Options options = make_options();
  set(options, "context_length", 4);
  Session session = make_session(model, options.get());
  ASSERT_TRUE(append(session, {31999}, PROOFINFER_LOGITS_LAST).ok());
  EXPECT_EQ(logits(session, 0), std::vector<float>(32000, 0.0f));  // all weights are zero
}

}  // namespace proofinfer_test
