#include "interposer/planning/lent_budget.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kPatience = LentBudget::kPatienceNs;
constexpr std::uint64_t kNewUntil = 1 + kPatience;  // a job with its first budget at 1

TEST(LentBudgetTest, AnActiveJobExpectsMoreOnlyWhileItIsNew) {
  LentBudget lent;
  EXPECT_EQ(lent.Granted(100, false, 1), kNewUntil);
  EXPECT_EQ(lent.Granted(50, false, 2), kNewUntil);
  EXPECT_EQ(lent.Woke(3), std::nullopt);
  EXPECT_EQ(lent.AgentLost(3), std::nullopt);
}

TEST(LentBudgetTest, WhatAnIdleJobLendsIsExpectedUntilItIsWhole) {
  LentBudget lent;
  lent.Granted(100, false, 1);
  EXPECT_EQ(lent.Granted(20, true, 2), LentBudget::kEver);
  EXPECT_EQ(lent.Granted(10, true, 3), LentBudget::kEver);
  EXPECT_EQ(lent.Woke(1000), 1000 + kPatience);
  EXPECT_EQ(lent.Woke(1001), std::nullopt) << "once";
  EXPECT_EQ(lent.Granted(60, false, 2000), 2000 + kPatience) << "a part";
  EXPECT_EQ(lent.Granted(60, false, 2500), std::nullopt) << "no news";
  EXPECT_EQ(lent.Granted(100, false, 3000), kNewUntil);
  EXPECT_EQ(lent.Granted(60, false, 4000), kNewUntil) << "not lent";
}

TEST(LentBudgetTest, AJobThatFallsAsleepBetweenPartsLendsAgain) {
  LentBudget lent;
  lent.Granted(100, false, 1);
  lent.Granted(20, true, 2);
  lent.Woke(3);
  lent.Granted(60, false, 4);
  EXPECT_EQ(lent.Granted(20, true, 5), LentBudget::kEver);
  EXPECT_EQ(lent.Granted(100, false, 6), kNewUntil);
}

TEST(LentBudgetTest, WithoutAnAgentTheWaitEnds) {
  LentBudget lent;
  lent.Granted(100, false, 1);
  lent.Granted(20, true, 2);
  EXPECT_EQ(lent.AgentLost(500), 500 + kPatience);
  EXPECT_EQ(lent.Woke(600), std::nullopt);
}

}  // namespace
}  // namespace spillway::interposer
