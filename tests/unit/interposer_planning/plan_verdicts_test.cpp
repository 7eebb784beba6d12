#include "interposer/planning/plan_verdicts.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr PlanVerdicts::Conditions kNow = {
    .iteration = 7, .budget_bytes = 1000, .link_permille = 1000};

TEST(PlanVerdictsTest, VerdictHoldsForItsConditionsOnly) {
  PlanVerdicts verdicts;
  verdicts.NoteWithout(kNow, 50);
  EXPECT_EQ(verdicts.WithoutNs(kNow), 50);
  EXPECT_EQ(verdicts.WithoutNs({7, 1040, 1000}), 50);
  EXPECT_EQ(verdicts.WithoutNs({7, 1100, 1000}), 0);
  EXPECT_EQ(verdicts.WithoutNs({7, 1000, 500}), 0);
  EXPECT_EQ(verdicts.WithoutNs({8, 1000, 1000}), 0);
}

TEST(PlanVerdictsTest, OnlyClearlyFasterPlansThanADroppedOneAreTried) {
  PlanVerdicts verdicts;
  EXPECT_TRUE(verdicts.IsWorthTrying(kNow, 100));
  verdicts.NoteDropped(kNow, 100);
  EXPECT_TRUE(verdicts.HasDropped(kNow));
  EXPECT_FALSE(verdicts.IsWorthTrying(kNow, 95));
  EXPECT_TRUE(verdicts.IsWorthTrying(kNow, 80));
}

TEST(PlanVerdictsTest, LastFewVerdictsAreRemembered) {
  PlanVerdicts verdicts;
  for (std::uint64_t i = 0; i < 100; ++i) verdicts.NoteWithout({i, 1000, 1000}, 5);
  EXPECT_EQ(verdicts.WithoutNs({0, 1000, 1000}), 0);
  EXPECT_EQ(verdicts.WithoutNs({99, 1000, 1000}), 5);
}

}  // namespace
}  // namespace spillway::interposer
