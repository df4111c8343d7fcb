// Sums and products of sizes at the limit, whichever operand is large. That they are right everywhere is proved (docs/proof.md).
#include "proved/checked.h"

#include <gtest/gtest.h>

namespace {

constexpr uint64_t kMost = PI_SIZE_MAX;

TEST(Checked, sums_end_at_the_limit) {
  uint64_t sum = 7;
  for (uint64_t a : {uint64_t(0), uint64_t(1), kMost / 2, kMost - 1, kMost}) {
    EXPECT_TRUE(pi_add_checked(a, kMost - a, &sum));
    EXPECT_EQ(sum, kMost);
    EXPECT_TRUE(pi_add_checked(a, 0, &sum));
    EXPECT_EQ(sum, a);
    for (uint64_t more : {uint64_t(1), uint64_t(2), kMost, UINT64_MAX - kMost})
      EXPECT_FALSE(pi_add_checked(a, kMost - a + more, &sum)) << a << " " << more;
  }
  for (uint64_t above : {kMost + 1, UINT64_MAX}) {
    EXPECT_FALSE(pi_add_checked(above, 0, &sum));
    EXPECT_FALSE(pi_add_checked(0, above, &sum));
    EXPECT_FALSE(pi_add_checked(above, above, &sum));
  }
}

TEST(Checked, products_end_at_the_limit) {
  uint64_t product = 7;
  for (uint64_t a : {uint64_t(1), uint64_t(2), uint64_t(3), uint64_t(1) << 31, uint64_t(1) << 32, kMost - 1, kMost}) {
    EXPECT_TRUE(pi_mul_checked(a, kMost / a, &product));
    EXPECT_EQ(product, a * (kMost / a));
    EXPECT_TRUE(pi_mul_checked(a, 0, &product));
    EXPECT_EQ(product, 0u);
    for (uint64_t more : {kMost / a + 1, kMost / a + 2, UINT64_MAX}) EXPECT_FALSE(pi_mul_checked(a, more, &product)) << a << " " << more;
  }
  EXPECT_TRUE(pi_mul_checked(0, UINT64_MAX, &product));
  EXPECT_EQ(product, 0u);
}

}  // namespace
