// The three loops that choose: argmax, the walk along the cumulative sum, the length of the nucleus.
#include "proved/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace proofinfer_test {

TEST(Sampling, argmax_is_the_lowest_index_of_the_largest) {
  std::vector<float> x = {-3, 7, 2, 7, -std::numeric_limits<float>::infinity(), 7};
  EXPECT_EQ(pi_argmax_f32(x.data(), x.size()), 1u);
  EXPECT_EQ(pi_argmax_f32(x.data(), 1), 0u);
  EXPECT_EQ(pi_argmax_f32(x.data() + 2, 3), 1u);
  std::vector<float> zeros = {-0.0f, 0.0f};  // equal
  EXPECT_EQ(pi_argmax_f32(zeros.data(), 2), 0u);
}

TEST(Sampling, argmax_of_negative_values_needs_no_positive_one) {
  float lowest = std::numeric_limits<float>::lowest();
  std::vector<float> x = {lowest, lowest, std::nextafterf(lowest, 0.0f)};
  EXPECT_EQ(pi_argmax_f32(x.data(), x.size()), 2u);
}

TEST(Sampling, walk_stops_where_the_sum_first_exceeds_the_coin) {
  std::vector<float> p = {0.25f, 0.0f, 0.25f, 0.5f};
  EXPECT_EQ(pi_walk_f32(p.data(), p.size(), 0.0f), 0u);
  EXPECT_EQ(pi_walk_f32(p.data(), p.size(), std::nextafterf(0.25f, 0.0f)), 0u);
  EXPECT_EQ(pi_walk_f32(p.data(), p.size(), 0.25f), 2u) << "equal is not above, and an element of 0 is never taken";
  EXPECT_EQ(pi_walk_f32(p.data(), p.size(), 0.5f), 3u);
  EXPECT_EQ(pi_walk_f32(p.data(), p.size(), std::nextafterf(1.0f, 0.0f)), 3u);
}

TEST(Sampling, walk_takes_the_last_when_rounding_leaves_none) {
  std::vector<float> p = {0.25f, 0.25f, 0.25f};
  EXPECT_EQ(pi_walk_f32(p.data(), p.size(), 0.75f), 2u);
  EXPECT_EQ(pi_walk_f32(p.data(), 1, 0.9f), 0u);
}

TEST(Sampling, walk_adds_in_index_order_in_float32) {
  // 2^24 + 1 is no float32: ones added after it are lost, ones added before it are not.
  std::vector<float> large_first = {16777216.0f, 1.0f, 1.0f, 1.0f};
  std::vector<float> large_last = {1.0f, 1.0f, 1.0f, 16777216.0f};
  EXPECT_EQ(pi_walk_f32(large_first.data(), 4, 16777216.0f), 3u);
  float total = 0;
  EXPECT_EQ(pi_nucleus_count_f32(large_first.data(), 4, 1e9f, &total), 4u);
  EXPECT_EQ(total, 16777216.0f);
  EXPECT_EQ(pi_nucleus_count_f32(large_last.data(), 4, 1e9f, &total), 4u);
  EXPECT_EQ(total, 16777220.0f);
}

TEST(Sampling, nucleus_includes_the_element_that_exceeds_top_p) {
  std::vector<float> p = {0.5f, 0.25f, 0.125f, 0.125f};
  float total = -1;
  EXPECT_EQ(pi_nucleus_count_f32(p.data(), p.size(), 0.49f, &total), 1u);
  EXPECT_EQ(total, 0.5f);
  EXPECT_EQ(pi_nucleus_count_f32(p.data(), p.size(), 0.5f, &total), 2u) << "reaching top_p is not exceeding it";
  EXPECT_EQ(total, 0.75f);
  EXPECT_EQ(pi_nucleus_count_f32(p.data(), p.size(), 0.99f, &total), 4u);
  EXPECT_EQ(total, 1.0f);
}

TEST(Sampling, nucleus_of_everything_when_the_sum_stays_below) {
  std::vector<float> p = {0.25f, 0.25f};
  float total = -1;
  EXPECT_EQ(pi_nucleus_count_f32(p.data(), p.size(), 0.9f, &total), 2u);
  EXPECT_EQ(total, 0.5f);
}

}  // namespace proofinfer_test
