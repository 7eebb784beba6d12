#include "scheduler/plan/job_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/strategies/registry.h"
#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::interposer {
namespace {

using scheduler::PlanAnswer;
using scheduler::PlanRequest;
using ::testing::HasSubstr;

PlanRequest RequestFor(std::int64_t budget_bytes,
                       std::string_view strategy = scheduler::kDefaultStrategy) {
  return {.pattern = std::make_shared<const scheduler::IterationPattern>(SmallPattern()),
          .device = kSmallDevice,
          .budget_bytes = budget_bytes,
          .strategy = scheduler::FindStrategy(strategy)};
}

TEST(JobPlannerTest, PlansAnIterationAtHalfItsPeak) {
  const PlanAnswer answer = PlanFor(RequestFor(kPeakBytes / 2));

  ASSERT_TRUE(answer.live) << answer.status.text();
  EXPECT_GT(answer.live->action_count(), 0);
  EXPECT_GE(answer.live->predicted_ns(), 2 * kLayers * kOperationNs);
  EXPECT_EQ(answer.live->budget_bytes(), kPeakBytes / 2);
}

TEST(JobPlannerTest, IterationThatFitsNeedsNoActions) {
  const PlanAnswer answer = PlanFor(RequestFor(kPeakBytes));

  ASSERT_TRUE(answer.live) << answer.status.text();
  EXPECT_EQ(answer.live->action_count(), 0);
  EXPECT_EQ(answer.live->predicted_ns(), 2 * kLayers * kOperationNs);
}

TEST(JobPlannerTest, PlanBeyondTheBudgetIsRefused) {
  const PlanAnswer answer =
      Accept(RequestFor(kPeakBytes / 2), scheduler::PlanWithoutActions(SmallPattern().profile));

  EXPECT_FALSE(answer.live);
  EXPECT_FALSE(answer.is_invalid);
  EXPECT_THAT(answer.status.text(), HasSubstr("budget"));
}

TEST(JobPlannerTest, InvalidPlanIsRefusedAndReported) {
  scheduler::Plan plan = scheduler::PlanWithoutActions(SmallPattern().profile);
  plan.actions.push_back({.kind = scheduler::ActionKind::kOffload, .buffer = {1}, .step = 2});

  const PlanAnswer answer = Accept(RequestFor(kPeakBytes), plan);

  EXPECT_FALSE(answer.live);
  EXPECT_TRUE(answer.is_invalid);
  EXPECT_NE(answer.status.text(), "");
}

TEST(JobPlannerTest, UnreachableBudgetIsAReason) {
  const PlanAnswer answer = PlanFor(RequestFor(kActivationBytes / 2));

  EXPECT_FALSE(answer.live);
  EXPECT_THAT(answer.status.text(), HasSubstr("one operation touches"));
}

}  // namespace
}  // namespace spillway::interposer
