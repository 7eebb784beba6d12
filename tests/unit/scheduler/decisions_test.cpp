#include "scheduler/plan/decisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan_validator.h"
#include "tests/unit/scheduler/random_problem.h"

namespace spillway::scheduler {
namespace {

using ::testing::ElementsAre;
using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

// Forward a -> b -> c; backward reads c, then b, then a.
IterationProfile ChainOfThree() {
  return ProfileOf(
      {Persistent("w", 10), Temporary("a", 100), Temporary("b", 100), Temporary("c", 100),
       Temporary("g", 10)},
      {MakeOperation("fa", 10, {0}, {1}), MakeOperation("fb", 20, {1}, {2}),
       MakeOperation("fc", 30, {2}, {3}), MakeOperation("loss", 10, {}, {4}, false),
       MakeOperation("bc", 10, {3, 4}, {4}, false), MakeOperation("bb", 10, {2, 4}, {4}, false),
       MakeOperation("ba", 10, {1, 4}, {4}, false)});
}

struct DecisionSetting {
  IterationProfile profile = ChainOfThree();
  Problem problem;
  RecomputeChains chains{profile};
  std::vector<IdleInterval> intervals;

  DecisionSetting() {
    problem.profile = &profile;
    problem.min_movable_bytes = 50;
    problem.budget_bytes = 10'000;
    problem.device.to_host_bytes_per_second = problem.device.to_device_bytes_per_second =
        1'000'000'000;
    problem.device.to_host_both_bytes_per_second = problem.device.to_device_both_bytes_per_second =
        1'000'000'000;
    intervals = IdleIntervals(profile, 50);  // a: fb..ba, b: fc..bb, c: fc..bc
  }
  Lowering Lower(std::vector<Decision> decisions) const {
    return LowerDecisions(problem, chains, intervals, decisions, {});
  }
};

std::vector<int32_t> OperationsOf(const Plan& plan) {
  std::vector<int32_t> result;
  for (const Step& step : plan.steps) result.push_back(step.operation.index);
  return result;
}

TEST(RecomputeChainsTest, ReachBackToResidentBuffers) {
  const DecisionSetting setting;
  const auto nothing = [&](BufferId id) { return id == BufferId{0}; };
  EXPECT_THAT(setting.chains.Find({{3}}, {4}, nothing),
              ElementsAre(OperationId{0}, OperationId{1}, OperationId{2}));
  const auto b_is_there = [&](BufferId id) { return id == BufferId{0} || id == BufferId{2}; };
  EXPECT_THAT(setting.chains.Find({{3}}, {4}, b_is_there), ElementsAre(OperationId{2}));
  EXPECT_THAT(setting.chains.Find({{2}}, {4}, b_is_there), ElementsAre());
}

TEST(RecomputeChainsTest, EndAtOperationsThatMustNotBeReplayed) {
  DecisionSetting setting;
  setting.profile.operations[1].replayable = false;
  const RecomputeChains chains(setting.profile);
  EXPECT_TRUE(chains.Find({{3}}, {4}, [](BufferId id) { return id == BufferId{0}; }).empty());
  EXPECT_FALSE(chains.Find({{3}}, {4}, [](BufferId id) { return id == BufferId{2}; }).empty());
}

TEST(DecisionsTest, SwapBecomesAnOffloadAndTheLatestPossiblePrefetch) {
  const DecisionSetting setting;
  // a rests from fb to ba: 30 + 10 + 10 + 10 ns. Its copy takes 100, so it must start at once.
  const Lowering lowering = setting.Lower({{0, Treatment::kSwap, {}, true, Reason::kHidden}});
  EXPECT_THAT(lowering.plan.actions,
              ElementsAre(Action{ActionKind::kOffload, {1}, 1, Reason::kHidden},
                          Action{ActionKind::kPrefetch, {1}, 2, Reason::kHidden}));
}

TEST(DecisionsTest, LateTriggersLeaveTimeForTheCopyOnly) {
  DecisionSetting setting;
  setting.problem.device.to_device_bytes_per_second = 10'000'000'000;  // 10 ns per buffer
  const Lowering lowering =
      setting.Lower({{0, Treatment::kSwap, {}, true, {}}, {1, Treatment::kSwap, {}, true, {}}});
  // Each copy starts 10 ns before its reader: with bc and with bb.
  EXPECT_EQ(lowering.plan.actions[2], (Action{ActionKind::kPrefetch, {2}, 4, {}}));
  EXPECT_EQ(lowering.plan.actions[3], (Action{ActionKind::kPrefetch, {1}, 5, {}}));
}

TEST(DecisionsTest, RecomputedBufferIsDroppedAndReplayedRightBeforeItsUse) {
  const DecisionSetting setting;
  const Lowering lowering = setting.Lower({{2, Treatment::kRecompute, {}, true, {}}});
  EXPECT_THAT(OperationsOf(lowering.plan), ElementsAre(0, 1, 2, 3, 2, 4, 5, 6));
  EXPECT_TRUE(lowering.plan.steps[4].recomputes);
  EXPECT_THAT(lowering.plan.actions, ElementsAre(Action{ActionKind::kDrop, {3}, 2, {}}));
}

TEST(DecisionsTest, ChainsIntermediateResultIsKeptIfItsDecisionSaysSo) {
  // Given a and b dropped, so b's chain recomputes a on its way
  const DecisionSetting setting;
  const Lowering kept = setting.Lower(
      {{0, Treatment::kRecompute, {}, true, {}}, {1, Treatment::kRecompute, {}, true, {}}});
  EXPECT_THAT(OperationsOf(kept.plan), ElementsAre(0, 1, 2, 3, 4, 0, 1, 5, 6));
  const Lowering dropped = setting.Lower(
      {{0, Treatment::kRecompute, {}, false, {}}, {1, Treatment::kRecompute, {}, true, {}}});
  EXPECT_THAT(OperationsOf(dropped.plan), ElementsAre(0, 1, 2, 3, 4, 0, 1, 5, 0, 6));
  EXPECT_THAT(
      dropped.plan.actions,
      ElementsAre(Action{ActionKind::kDrop, {1}, 1, {}}, Action{ActionKind::kDrop, {2}, 2, {}},
                  Action{ActionKind::kDrop, {1}, 6, Reason::kChainTemporary}));
}

TEST(DecisionsTest, LateFreedBufferIsDroppedAndInALiveJobOffloadedUnlessRecomputable) {
  // Given c, whose last read is by bc, and which is freed after ba
  DecisionSetting setting;
  setting.profile.buffers[3].dies = {6};
  setting.intervals = IdleIntervals(setting.profile, 50);
  const auto late = static_cast<int32_t>(setting.intervals.size()) - 1;
  ASSERT_EQ(setting.intervals.back(), (IdleInterval{{3}, {4}, {7}, false, true}));
  EXPECT_THAT(setting.Lower({{late, Treatment::kSwap, {}, true, {}}}).plan.actions,
              ElementsAre(Action{ActionKind::kDrop, {3}, 4, {}}));
  // A live job's program may still read it. It is offloaded, because its input is freed earlier
  setting.problem.is_live = true;
  const auto lower = [&] {
    return LowerDecisions(setting.problem, RecomputeChains(setting.problem), setting.intervals,
                          {{late, Treatment::kSwap, {}, true, {}}}, {})
        .plan;
  };
  Plan plan = lower();
  EXPECT_THAT(plan.actions, ElementsAre(Action{ActionKind::kOffload, {3}, 4, {}}));
  EXPECT_FALSE(ValidatePlan(setting.problem, plan));
  plan.actions[0].kind = ActionKind::kDrop;
  EXPECT_EQ(ValidatePlan(setting.problem, plan)->fault, PlanFault::kDropsForGood);

  // When b lives as long, c can be recomputed at any moment.
  setting.profile.buffers[2].dies = {6};
  plan = lower();
  EXPECT_THAT(plan.actions, ElementsAre(Action{ActionKind::kDrop, {3}, 4, {}}));
  EXPECT_FALSE(ValidatePlan(setting.problem, plan));
  // But not where its operation is unproven, nor where b changes.
  setting.profile.operations[2].replayable = false;
  EXPECT_THAT(lower().actions, ElementsAre(Action{ActionKind::kOffload, {3}, 4, {}}));
  EXPECT_EQ(ValidatePlan(setting.problem, plan)->fault, PlanFault::kDropsForGood);
  setting.profile.operations[2].replayable = true;
  setting.profile.operations[6].writes.push_back({2});
  EXPECT_THAT(lower().actions, ElementsAre(Action{ActionKind::kOffload, {3}, 4, {}}));
  EXPECT_EQ(ValidatePlan(setting.problem, plan)->fault, PlanFault::kDropsForGood);
}

TEST(DecisionsTest, UnrecomputableBufferStaysAndIsReported) {
  DecisionSetting setting;
  setting.profile.operations[2].replayable = false;
  const RecomputeChains chains(setting.profile);
  const Lowering lowering = LowerDecisions(setting.problem, chains, setting.intervals,
                                           {{2, Treatment::kRecompute, {}, true, {}}}, {});
  EXPECT_THAT(lowering.refused, ElementsAre(2));
  EXPECT_TRUE(lowering.plan.actions.empty());
}

TEST(DecisionsPropertyTest, RandomDecisionsGiveValidPlansAndPossibleTimelines) {
  int ran = 0;
  for (uint64_t seed = 1; seed <= 10'000; ++seed) {
    testing::Dice dice(seed);
    const IterationProfile profile = testing::RandomProfile(dice);
    ASSERT_EQ(CheckProfile(profile).text(), "") << "seed " << seed;
    const Problem problem = testing::RandomProblem(dice, profile);
    const std::vector<IdleInterval> intervals = IdleIntervals(profile, problem.min_movable_bytes);
    const std::vector<Decision> decisions = testing::RandomDecisions(dice, intervals);
    const Plan plan =
        LowerDecisions(problem, RecomputeChains(profile), intervals, decisions, {}).plan;
    const std::optional<PlanOffence> offence = ValidatePlan(problem, plan);
    ASSERT_FALSE(offence.has_value()) << "seed " << seed << ": " << offence->what;
    Timeline timeline;
    const Prediction prediction = CostModel(problem).Predict(plan, &timeline);
    ASSERT_NE(prediction.verdict, Verdict::kMalformed) << "seed " << seed;
    if (!prediction.runs()) continue;
    ++ran;
    EXPECT_LE(prediction.peak_bytes, problem.budget_bytes) << "seed " << seed;
    const std::optional<PlanOffence> impossible = ValidateTimeline(problem, plan, timeline);
    ASSERT_FALSE(impossible.has_value()) << "seed " << seed << ": " << impossible->what;
  }
  EXPECT_GT(ran, 3'000);
}

}  // namespace
}  // namespace spillway::scheduler
