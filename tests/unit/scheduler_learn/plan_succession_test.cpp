#include "scheduler/learn/plan_succession.h"

#include <gtest/gtest.h>

namespace spillway::scheduler {
namespace {

PlanSuccession::Answer AfterFour(int64_t former_ns, int64_t duration_ns) {
  PlanSuccession succession(former_ns);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(succession.Add(duration_ns), PlanSuccession::Answer::kGoOn);
  return succession.Add(duration_ns);
}

TEST(PlanSuccessionTest, SlowerPlanGoesBack) {
  EXPECT_EQ(AfterFour(91'000'000, 130'000'000), PlanSuccession::Answer::kGoesBack);
}

TEST(PlanSuccessionTest, PlanThatIsNotSlowerStays) {
  EXPECT_EQ(AfterFour(91'000'000, 80'000'000), PlanSuccession::Answer::kStays);
  EXPECT_EQ(AfterFour(91'000'000, 92'000'000), PlanSuccession::Answer::kStays);
}

// One slow iteration alone is no reason.
TEST(PlanSuccessionTest, MeanOfFourIterationsDecides) {
  PlanSuccession succession(100'000'000);
  for (int i = 0; i < 3; ++i) succession.Add(95'000'000);
  EXPECT_EQ(succession.Add(120'000'000), PlanSuccession::Answer::kStays);
}

}  // namespace
}  // namespace spillway::scheduler
