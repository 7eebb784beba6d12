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

TEST(LivePlanTest, ActionsFollowTheirOperationsEventsInPlanOrder) {
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
  EXPECT_THAT(live->After(3), ElementsAre(LiveAction{LiveActionKind::kDrop, 1}));
  EXPECT_THAT(live->Before(4), ElementsAre(LiveAction{LiveActionKind::kPrefetch, 1},
                                           LiveAction{LiveActionKind::kPrefetch, 0}));
  for (int32_t event : {0, 1, 2}) EXPECT_THAT(live->Before(event), IsEmpty());
  for (int32_t event : {0, 2, 4}) EXPECT_THAT(live->After(event), IsEmpty());
  EXPECT_EQ(live->action_count(), 5);
  EXPECT_EQ(live->predicted_ns(), 1234);
  EXPECT_EQ(live->strategy(), "test");
}

TEST(LivePlanTest, RefusesPlansThatDoNotMatchThePattern) {
  const auto pattern = SmallPattern();
  const auto refuses = [&](const Plan& plan) { return !LivePlan::Make(pattern, plan, 1, 1); };
  EXPECT_FALSE(refuses(PlanFor(*pattern, {})));
  EXPECT_TRUE(refuses(PlanFor(*pattern, {{ActionKind::kOffload, {3}, 0}})));
  EXPECT_TRUE(refuses(PlanFor(*pattern, {{ActionKind::kOffload, {0}, 3}})));
  EXPECT_TRUE(refuses(PlanFor(*pattern, {{ActionKind::kOffload, {-1}, 0}})));
  Plan shorter = PlanFor(*pattern, {});
  shorter.steps.pop_back();
  EXPECT_TRUE(refuses(shorter));
  // A replayed operation must have run before, write one buffer, and precede an operation.
  pattern->profile.operations[0].writes = {{0}};
  pattern->profile.operations[1].writes = {{1}, {2}};
  const auto with = [&](size_t at, int32_t operation) {
    Plan plan = PlanFor(*pattern, {});
    plan.steps.insert(plan.steps.begin() + static_cast<ptrdiff_t>(at), Step{{operation}, true, 0});
    return plan;
  };
  EXPECT_FALSE(refuses(with(2, 0)));
  EXPECT_TRUE(refuses(with(2, 1)));
  EXPECT_TRUE(refuses(with(0, 0)));
  EXPECT_TRUE(refuses(with(3, 0)));
}

TEST(LivePlanTest, ReplaysStandBetweenThePrefetchesOfTheNextOperation) {
  // Given three operations of which the first two make buffers 0 and 1
  const auto pattern = SmallPattern();
  pattern->profile.operations[0].writes = {{0}};
  pattern->profile.operations[1].writes = {{1}};
  pattern->buffers.push_back({});
  Plan plan = PlanFor(*pattern, {});

  // When both are replayed before the third (the first only for the second), with one prefetch for
  // the second and one during the third
  plan.steps = {{{0}}, {{1}}, {{0}, true}, {{1}, true}, {{2}}};
  plan.actions = {
      {ActionKind::kDrop, {0}, 1, {}},     {ActionKind::kDrop, {1}, 1, {}},
      {ActionKind::kPrefetch, {2}, 3, {}}, {ActionKind::kDrop, {0}, 3, Reason::kChainTemporary},
      {ActionKind::kPrefetch, {3}, 4, {}}, {ActionKind::kOffload, {2}, 4, {}}};
  const auto live = LivePlan::Make(pattern, plan, 1, 1);

  // Then all of that happens before the third operation's event
  ASSERT_TRUE(live);
  EXPECT_THAT(live->After(3), ElementsAre(LiveAction{LiveActionKind::kDrop, 0},
                                          LiveAction{LiveActionKind::kDrop, 1}));
  EXPECT_THAT(live->Before(4), ElementsAre(LiveAction{LiveActionKind::kPrefetch, 2},
                                           LiveAction{LiveActionKind::kRecompute, 0},
                                           LiveAction{LiveActionKind::kRecompute, 1},
                                           LiveAction{LiveActionKind::kDrop, 0},
                                           LiveAction{LiveActionKind::kPrefetch, 3}));
  EXPECT_THAT(live->After(4), ElementsAre(LiveAction{LiveActionKind::kOffload, 2}));
  // And both are recorded when they run for the first time.
  for (int32_t event : {1, 3}) EXPECT_TRUE(live->IsRerunLater(event));
  for (int32_t event : {0, 2, 4}) EXPECT_FALSE(live->IsRerunLater(event));
}

// Operation 0 overwrites buffer 0. 1 makes buffer 1 from 0. 2 adds 0 to 1. 3 overwrites 1 from a
// buffer of unknown role.
IterationPattern PatternWithRoles() {
  IterationPattern pattern;
  const auto add = [&](std::vector<PatternTouch> touches) {
    PatternEvent event;
    event.operation = static_cast<int32_t>(pattern.events.size());
    event.token = 100 + pattern.events.size();
    event.first_touch = static_cast<int32_t>(pattern.touches.size());
    event.touch_count = static_cast<int32_t>(touches.size());
    Operation operation;
    for (const PatternTouch& touch : touches)
      AddTouch(operation, {touch.buffer}, touch.reads, touch.writes, !pattern.events.empty());
    pattern.touches.insert(pattern.touches.end(), touches.begin(), touches.end());
    pattern.events.push_back(event);
    pattern.profile.operations.push_back(operation);
  };
  const bool yes = true, no = false;
  add({{.buffer = 0, .writes = yes, .reads = no}});
  add({{.buffer = 0, .writes = no, .reads = yes}, {.buffer = 1, .writes = yes, .reads = no}});
  add({{.buffer = 0, .writes = no, .reads = yes}, {.buffer = 1, .writes = yes, .reads = yes}});
  add({{.buffer = 1, .writes = yes, .reads = no}, {.buffer = 2, .writes = yes, .reads = yes}});
  return pattern;
}

TEST(IterationPatternTest, OnlyProvenOperationsThatOverwriteOneBufferAreReplayable) {
  IterationPattern pattern = PatternWithRoles();
  const auto replayable = [&] {
    std::vector<bool> may;
    for (const Operation& operation : pattern.profile.operations)
      may.push_back(operation.replayable);
    return may;
  };
  SetReplayable(&pattern, [](uint64_t) { return true; });
  EXPECT_THAT(replayable(), ElementsAre(true, true, false, false));
  EXPECT_EQ(ReplayableCount(pattern), 2);
  // When only another one is proven
  SetReplayable(&pattern, [](uint64_t token) { return token == 101; });
  EXPECT_THAT(replayable(), ElementsAre(false, true, false, false));
}

// The profile shows a first touch as a write, whatever the job reported.
TEST(IterationPatternTest, FirstTouchOfUnknownRoleIsNoOverwrite) {
  IterationPattern pattern = PatternWithRoles();
  pattern.touches[0].reads = true;
  SetReplayable(&pattern, [](uint64_t) { return true; });
  EXPECT_FALSE(pattern.profile.operations[0].replayable);
}

TEST(IterationPatternTest, DurationsAreIndexedByOperation) {
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
