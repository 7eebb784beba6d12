#include "tests/bench/planner/search.h"

#include <gtest/gtest.h>

namespace spillway::papers {
namespace {

TEST(LargestMultipleTest, FindsTheLargestValueThatHolds) {
  const auto holds = [](int64_t value) { return value <= 999; };
  EXPECT_EQ(LargestMultiple(1, 4096, holds), 999);
  EXPECT_EQ(LargestMultiple(16, 4096, holds), 992);
  EXPECT_EQ(LargestMultiple(16, 500, holds), 496);
}

TEST(LargestMultipleTest, FindsNothingWhereTheFirstFails) {
  EXPECT_EQ(LargestMultiple(16, 4096, [](int64_t value) { return value <= 15; }), 0);
}

TEST(LargestMultipleTest, CoarserSearchAsksLessAndStaysWithinItsError) {
  int asked = 0;
  const auto holds = [&](int64_t value) {
    ++asked;
    return value <= 999;
  };
  const int64_t found = LargestMultiple(1, 4096, holds, 8);
  EXPECT_LE(found, 999);
  EXPECT_GE(found + found / 8, 999);
  const int asked_for_an_eighth = asked;
  asked = 0;
  LargestMultiple(1, 4096, holds);
  EXPECT_LT(asked_for_an_eighth, asked);
}

TEST(SmallestFromTest, FindsTheSmallestStepThatHolds) {
  const auto holds = [](int64_t value) { return value >= 42; };
  EXPECT_EQ(SmallestFrom(0, 100, 1, holds), 42);
  EXPECT_EQ(SmallestFrom(5, 100, 10, holds), 45);
  EXPECT_EQ(SmallestFrom(50, 100, 10, holds), 50);
}

TEST(SmallestFromTest, ReturnsBeyondTheMaximumWhereNothingHolds) {
  EXPECT_EQ(SmallestFrom(0, 100, 7, [](int64_t) { return false; }), 101);
}

}  // namespace
}  // namespace spillway::papers
