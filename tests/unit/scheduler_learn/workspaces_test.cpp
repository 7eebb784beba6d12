// A library's workspaces in what is learned of an iteration, and in its plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/plan/decisions.h"
#include "scheduler/plan/live_plan.h"
#include "scheduler/plan/plan_validator.h"
#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

constexpr bool kNo = false;

// Four operations: the first and the last use buffer 0 as scratch memory, or as `last` says.
IterationPattern PatternWith(PatternTouch last = {0, kNo, kNo}) {
  IterationPattern pattern;
  pattern.profile =
      ProfileOf({Persistent("workspace", 100, BufferKind::kOther),
                 Temporary("activation", 50, BufferKind::kOther)},
                {MakeOperation("convolve", 9, {}, {0, 1}), MakeOperation("scale", 9, {1}, {1}),
                 MakeOperation("shift", 9, {1}, {1}), MakeOperation("derive", 9, {1}, {0})});
  pattern.buffers.resize(2);
  pattern.buffers[0].persistent = true;
  pattern.touches = {{0, kNo, kNo}, {1, true, kNo}, {1}, {1}, last, {1, kNo, true}};
  const int32_t begins[] = {0, 2, 3, 4, 6};
  for (int32_t i = 0; i < 4; ++i) {
    PatternEvent event;
    event.operation = i;
    event.first_touch = begins[i];
    event.touch_count = begins[i + 1] - begins[i];
    pattern.events.push_back(event);
  }
  SetUses(&pattern);
  return pattern;
}

TEST(LearnedWorkspacesTest, BufferUsedAsScratchMemoryAloneIsAWorkspace) {
  const IterationPattern pattern = PatternWith();
  EXPECT_EQ(pattern.profile.buffers[0].kind, BufferKind::kWorkspace);
  EXPECT_EQ(pattern.profile.buffers[1].kind, BufferKind::kOther);
  // Each use needs its memory, and none its content.
  EXPECT_THAT(pattern.profile.operations[3].writes, ElementsAre(BufferId{0}));
  EXPECT_THAT(pattern.profile.operations[3].reads, ElementsAre(BufferId{1}));
}

TEST(LearnedWorkspacesTest, BufferWithAnotherUseIsNone) {
  for (const PatternTouch& last : {PatternTouch{0, kNo, true}, {0, true, kNo}, {0, true, true}})
    EXPECT_EQ(PatternWith(last).profile.buffers[0].kind, BufferKind::kOther);
}

TEST(LearnedWorkspacesTest, LivePlansDropThemWithoutACopyAndWithoutARecord) {
  const IterationPattern pattern = PatternWith();
  Problem problem{.profile = &pattern.profile, .device = {}, .budget_bytes = 150};
  problem.min_movable_bytes = 1;
  problem.is_live = true;
  problem.device.to_host_bytes_per_second = problem.device.to_device_bytes_per_second =
      1'000'000'000;
  const std::vector<IdleInterval> intervals = IdleIntervals(pattern.profile, 60);
  ASSERT_EQ(intervals.size(), 1u);

  Plan plan = LowerDecisions(problem, RecomputeChains(problem), intervals,
                             {{0, Treatment::kSwap, {}, true, {}}}, {})
                  .plan;

  EXPECT_THAT(plan.actions, ElementsAre(Action{ActionKind::kDrop, {0}, 0, {}}));
  EXPECT_FALSE(ValidatePlan(problem, plan));
  EXPECT_THAT(OperationsToRerun(pattern.profile, plan), IsEmpty());
  // Any other buffer's old bytes may still be read, by a call that no plan expects.
  IterationPattern other = pattern;
  other.profile.buffers[0].kind = BufferKind::kOther;
  problem.profile = &other.profile;
  EXPECT_EQ(ValidatePlan(problem, plan)->fault, PlanFault::kDropsForGood);
}

}  // namespace
}  // namespace spillway::scheduler
