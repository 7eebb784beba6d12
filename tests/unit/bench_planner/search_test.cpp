#include "tests/bench/planner/search.h"

#include <gtest/gtest.h>

namespace spillway::papers {
namespace {

TEST(LargestMultipleTest, IsTheLargestThatHolds) {
  // Given: values up to 999 hold.
  const auto holds = [](int64_t value) { return value <= 999; };
  // Then: in steps of one it is 999, in steps of 16 the multiple below, and never more than was
  // allowed.
  EXPECT_EQ(LargestMultiple(1, 4096, holds), 999);
  EXPECT_EQ(LargestMultiple(16, 4096, holds), 992);
  EXPECT_EQ(LargestMultiple(16, 500, holds), 496);
}

TEST(LargestMultipleTest, IsNothingWhereNotEvenTheFirstHolds) {
  EXPECT_EQ(LargestMultiple(16, 4096, [](int64_t value) { return value <= 15; }), 0);
}

TEST(LargestMultipleTest, WithAFinenessAsksLessAndIsNoFurtherOffThanThat) {
  // Given: values up to 999 hold; the questions are counted.
  int asked = 0;
  const auto holds = [&](int64_t value) {
    ++asked;
    return value <= 999;
  };
  // When: an eighth is fine enough.
  const int64_t found = LargestMultiple(1, 4096, holds, 8);
  // Then: it holds, is within an eighth, and took fewer questions than the exact answer.
  EXPECT_LE(found, 999);
  EXPECT_GE(found + found / 8, 999);
  const int asked_for_an_eighth = asked;
  asked = 0;
  LargestMultiple(1, 4096, holds);
  EXPECT_LT(asked_for_an_eighth, asked);
}

TEST(SmallestFromTest, IsTheSmallestStepThatHolds) {
  // Given: values from 42 on hold.
  const auto holds = [](int64_t value) { return value >= 42; };
  // Then: steps are counted from the least value.
  EXPECT_EQ(SmallestFrom(0, 100, 1, holds), 42);
  EXPECT_EQ(SmallestFrom(5, 100, 10, holds), 45);
  EXPECT_EQ(SmallestFrom(50, 100, 10, holds), 50);
}

TEST(SmallestFromTest, IsBeyondTheMostWhereNothingHolds) {
  EXPECT_EQ(SmallestFrom(0, 100, 7, [](int64_t) { return false; }), 101);
}

}  // namespace
}  // namespace spillway::papers
