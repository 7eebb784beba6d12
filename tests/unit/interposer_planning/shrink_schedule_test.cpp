#include "interposer/planning/shrink_schedule.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000, kNow = 100 * kSecondNs;

TEST(ShrinkScheduleTest, NothingIsDueBeforeTheFirstBudget) {
  EXPECT_FALSE(ShrinkSchedule().IsDue(kNow));
}

TEST(ShrinkScheduleTest, NewBudgetIsDueAtOnceAndOnce) {
  ShrinkSchedule schedule;
  schedule.Changed();
  EXPECT_TRUE(schedule.IsDue(0));

  schedule.Begin();
  EXPECT_FALSE(schedule.IsDue(kNow)) << "somebody is at it";
  schedule.End(true, kNow);

  EXPECT_FALSE(schedule.IsDue(kNow + 3600 * kSecondNs));
}

TEST(ShrinkScheduleTest, UnmetBudgetIsRetriedWithBackoff) {
  ShrinkSchedule schedule;
  schedule.Changed();
  std::uint64_t now_ns = kNow;

  for (const std::uint64_t pause_s : {1, 2, 4, 8, 16, 32, 32, 32}) {
    schedule.Begin();
    schedule.End(false, now_ns);
    EXPECT_FALSE(schedule.IsDue(now_ns + pause_s * kSecondNs - 1)) << pause_s;
    now_ns += pause_s * kSecondNs;
    EXPECT_TRUE(schedule.IsDue(now_ns)) << pause_s;
  }
  schedule.Begin();
  schedule.End(true, now_ns);
  EXPECT_FALSE(schedule.IsDue(now_ns + 3600 * kSecondNs));
}

TEST(ShrinkScheduleTest, NewBudgetResetsTheBackoff) {
  ShrinkSchedule schedule;
  schedule.Changed();
  for (int i = 0; i < 5; ++i) {
    schedule.Begin();
    schedule.End(false, kNow);
  }

  schedule.Changed();

  EXPECT_TRUE(schedule.IsDue(kNow));
  schedule.Begin();
  schedule.End(false, kNow);
  EXPECT_TRUE(schedule.IsDue(kNow + kSecondNs));
}

TEST(ShrinkScheduleTest, BudgetThatArrivesDuringATurnGetsItsOwnTurn) {
  for (const bool is_met : {false, true}) {
    ShrinkSchedule schedule;
    schedule.Changed();
    schedule.Begin();

    schedule.Changed();
    schedule.End(is_met, kNow);

    EXPECT_TRUE(schedule.IsDue(kNow)) << is_met;
  }
}

}  // namespace
}  // namespace spillway::interposer
