#include "scheduler/plan/live_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An allocation, an operation, an allocation, two operations.
std::shared_ptr<IterationPattern> SmallPattern() {
  auto pattern = std::make_shared<IterationPattern>();
  int32_t operations = 0;
  for (bool operates : {false, true, false, true, true}) {
    PatternEvent event;
    event.kind = operates ? JobEventKind::kOperation : JobEventKind::kAllocate;
    if (operates) event.operation = operations++;
    pattern->events.push_back(event);
  }
  pattern->buffers.resize(3);
  pattern->profile.buffers.resize(3);
  pattern->profile.operations.resize(3);
  return pattern;
}

Plan PlanFor(const IterationPattern& pattern, std::vector<Action> actions) {
  Plan plan = PlanWithoutActions(pattern.profile);
  plan.strategy = "test";
  plan.actions = std::move(actions);
  return plan;
}

TEST(LivePlanTest, ActionsStandAtTheirOperationsEventsInThePlansOrder) {
  const auto pattern = SmallPattern();
  const auto live = LivePlan::Make(pattern,
                                   PlanFor(*pattern, {{ActionKind::kOffload, {0}, 0},
                                                      {ActionKind::kPrefetch, {2}, 1},
                                                      {ActionKind::kDrop, {1}, 1},
                                                      {ActionKind::kPrefetch, {1}, 2},
                                                      {ActionKind::kPrefetch, {0}, 2}}),
                                   1234, 5 << 20);
  ASSERT_TRUE(live);
  EXPECT_THAT(live->After(1), ElementsAre(LiveAction{LiveActionKind::kOffload, 0}));
  EXPECT_THAT(live->Before(3), ElementsAre(LiveAction{LiveActionKind::kPrefetch, 2}));
  EXPECT_THAT(live->After(3), ElementsAre(LiveAction{LiveActionKind::kOffload, 1}));
  EXPECT_THAT(live->Before(4), ElementsAre(LiveAction{LiveActionKind::kPrefetch, 1},
                                           LiveAction{LiveActionKind::kPrefetch, 0}));
  for (int32_t event : {0, 1, 2}) EXPECT_THAT(live->Before(event), IsEmpty());
  for (int32_t event : {0, 2, 4}) EXPECT_THAT(live->After(event), IsEmpty());
  EXPECT_EQ(live->action_count(), 5);
  EXPECT_EQ(live->predicted_ns(), 1234);
  EXPECT_EQ(live->strategy(), "test");
}

TEST(LivePlanTest, RefusesPlansThatAreNotThePatterns) {
  const auto pattern = SmallPattern();
  const auto refuses = [&](const Plan& plan) { return !LivePlan::Make(pattern, plan, 1, 1); };
  EXPECT_FALSE(refuses(PlanFor(*pattern, {})));
  EXPECT_TRUE(refuses(PlanFor(*pattern, {{ActionKind::kOffload, {3}, 0}})));
  EXPECT_TRUE(refuses(PlanFor(*pattern, {{ActionKind::kOffload, {0}, 3}})));
  EXPECT_TRUE(refuses(PlanFor(*pattern, {{ActionKind::kOffload, {-1}, 0}})));
  Plan shorter = PlanFor(*pattern, {});
  shorter.steps.pop_back();
  EXPECT_TRUE(refuses(shorter));
  Plan recomputes = PlanFor(*pattern, {});
  recomputes.steps[1].recomputes = true;
  EXPECT_TRUE(refuses(recomputes));
}

TEST(IterationPatternTest, DurationsAreByOperation) {
  const auto pattern = SmallPattern();
  const std::vector<int64_t> durations = {5, 6};
  SetDurations(pattern.get(), durations);
  EXPECT_EQ(pattern->profile.operations[0].duration_ns, 5);
  EXPECT_EQ(pattern->profile.operations[1].duration_ns, 6);
  EXPECT_EQ(pattern->profile.operations[2].duration_ns, 0);
  EXPECT_THAT(OperationEvents(*pattern), ElementsAre(1, 3, 4));
}

}  // namespace
}  // namespace spillway::scheduler
