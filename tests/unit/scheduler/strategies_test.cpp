// All strategies on random iterations. Their plans are valid and within the budget where the model
// says so, and Spillway's own strategy is never slower.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/strategies/improvement.h"
#include "scheduler/plan/strategies/registry.h"
#include "scheduler/plan/strategies/relief.h"
#include "scheduler/plan/strategies/spillway.h"
#include "scheduler/plan/strategies/workbench.h"
#include "tests/unit/scheduler/random_problem.h"

namespace spillway::scheduler {
namespace {

using testing::Dice;

struct Tried {
  StrategyOutcome outcome;
  Prediction prediction;
};

Tried Try(const Strategy& strategy, const Problem& problem) {
  Tried tried{strategy.MakePlan(problem), {}};
  tried.prediction.verdict = Verdict::kMalformed;
  if (tried.outcome.plan) tried.prediction = CostModel(problem).Predict(*tried.outcome.plan);
  return tried;
}

// Forward and backward through a chain of layers, with every property that the papers' rules use.
IterationProfile Chain(Dice& dice, int32_t layers) {
  std::vector<Buffer> buffers{testing::Persistent("input", dice.Roll(50, 100), BufferKind::kInput)};
  std::vector<Operation> forward, backward;
  for (int32_t i = 0; i < layers; ++i) {
    const int32_t input = i == 0 ? 0 : 3 * i - 2, output = 3 * i + 1, weight = 3 * i + 2,
                  gradient = 3 * i + 3;
    buffers.push_back(testing::Temporary("y" + std::to_string(i), dice.Roll(20, 200)));
    buffers.push_back(testing::Persistent("w" + std::to_string(i), dice.Roll(1, 60)));
    buffers.push_back(
        testing::Temporary("d" + std::to_string(i), dice.Roll(20, 200), BufferKind::kGradient));
    const bool convolution = dice.Chance(50);
    Operation run = testing::MakeOperation("f" + std::to_string(i), dice.Roll(5, 100),
                                           {input, weight}, {output});
    run.type = convolution ? OperationType::kConvolution : OperationType::kActivation;
    if (convolution)
      run.workspaces = {{"none", 0, run.duration_ns}, {"fast", 40, run.duration_ns / 2}};
    forward.push_back(run);
    Operation back = testing::MakeOperation("b" + std::to_string(i), dice.Roll(5, 200),
                                            {input, output, weight}, {gradient}, false);
    if (i + 1 < layers) back.reads.push_back({3 * (i + 1) + 3});
    back.type = run.type;
    back.phase = Phase::kBackward;
    backward.insert(backward.begin(), back);
  }
  forward.insert(forward.end(), backward.begin(), backward.end());
  return testing::ProfileOf(std::move(buffers), std::move(forward));
}

// The same iteration as learned from a running job. For `silent_percent` of the operations the
// roles are unknown: all their buffers count as read and written, and they must not be replayed.
IterationProfile AsLearned(IterationProfile profile, Dice& dice, int silent_percent) {
  for (Buffer& buffer : profile.buffers) buffer.kind = BufferKind::kOther;
  std::vector<bool> touched(profile.buffers.size(), false);
  for (Operation& operation : profile.operations) {
    operation.type = OperationType::kOther;
    operation.phase = Phase::kForward;
    operation.workspaces.clear();
    if (!dice.Chance(silent_percent) && operation.writes.size() == 1) {
      for (BufferId id : operation.reads) touched[static_cast<size_t>(id.index)] = true;
      for (BufferId id : operation.writes) touched[static_cast<size_t>(id.index)] = true;
      continue;
    }
    operation.replayable = false;
    std::vector<BufferId> all = operation.reads;
    all.insert(all.end(), operation.writes.begin(), operation.writes.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    operation.reads.clear();
    for (BufferId id : all) {
      const auto at = static_cast<size_t>(id.index);
      if (touched[at] || profile.buffers[at].persistent) operation.reads.push_back(id);
      touched[at] = true;
    }
    operation.writes = std::move(all);
  }
  return profile;
}

void ExpectRightPlan(const Problem& problem, const Strategy& strategy, const Tried& tried) {
  if (!tried.outcome.plan) {
    EXPECT_FALSE(tried.outcome.plan.text().empty()) << strategy.name();
    return;
  }
  const auto offence = ValidatePlan(problem, *tried.outcome.plan);
  EXPECT_FALSE(offence.has_value()) << strategy.name() << ": " << (offence ? offence->what : "");
  EXPECT_NE(tried.prediction.verdict, Verdict::kMalformed) << strategy.name();
  if (!tried.prediction.runs()) return;
  EXPECT_LE(tried.prediction.peak_bytes, problem.budget_bytes) << strategy.name();
  Timeline timeline;
  CostModel(problem).Predict(*tried.outcome.plan, &timeline);
  const auto late = ValidateTimeline(problem, *tried.outcome.plan, timeline);
  EXPECT_FALSE(late.has_value()) << strategy.name() << ": " << (late ? late->what : "");
}

void ExpectAllRight(const Problem& problem) {
  const Tried own = Try(*FindStrategy(kDefaultStrategy), problem);
  ExpectRightPlan(problem, *FindStrategy(kDefaultStrategy), own);
  const LowerBound bound = FindTightBound(problem);
  if (own.prediction.runs()) {
    EXPECT_TRUE(bound.possible);
    EXPECT_GE(own.prediction.iteration_ns, bound.iteration_ns);
  }
  for (const Strategy* strategy : AllStrategies()) {
    if (strategy->name() == kDefaultStrategy) continue;
    const Tried other = Try(*strategy, problem);
    ExpectRightPlan(problem, *strategy, other);
    if (!other.prediction.runs()) continue;
    EXPECT_TRUE(own.prediction.runs()) << strategy->name() << " runs, Spillway's own does not";
    EXPECT_LE(own.prediction.iteration_ns, other.prediction.iteration_ns) << strategy->name();
  }
}

TEST(StrategiesTest, GiveValidPlansForRandomIterations) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Dice dice(seed);
    const IterationProfile profile = testing::RandomProfile(dice);
    Problem problem = testing::RandomProblem(dice, profile);
    problem.node_limit = 60;
    ExpectAllRight(problem);
    if (HasFailure()) return;
  }
}

TEST(StrategiesTest, GiveValidPlansForChainsOfLayers) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Dice dice(seed);
    const IterationProfile profile = Chain(dice, static_cast<int32_t>(dice.Roll(2, 14)));
    Problem problem = testing::RandomProblem(dice, profile);
    problem.min_movable_bytes = 1;
    problem.budget_bytes = PeakBytes(profile) * dice.Roll(30, 100) / 100;
    problem.node_limit = 60;
    ExpectAllRight(problem);
    if (HasFailure()) return;
  }
}

TEST(StrategiesTest, GiveValidPlansForLearnedIterations) {
  int moved = 0, ran_again = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Dice dice(seed);
    const IterationProfile profile = AsLearned(Chain(dice, static_cast<int32_t>(dice.Roll(2, 12))),
                                               dice, seed % 2 == 0 ? 100 : 30);
    ASSERT_EQ(CheckProfile(profile).text(), "");
    Problem problem = testing::RandomProblem(dice, profile);
    problem.is_live = true;
    problem.min_movable_bytes = 1;
    problem.budget_bytes = PeakBytes(profile) * dice.Roll(40, 100) / 100;
    problem.node_limit = 60;
    ExpectAllRight(problem);
    const auto plan = FindStrategy(kDefaultStrategy)->MakePlan(problem).plan;
    moved += plan && !plan->actions.empty() ? 1 : 0;
    ran_again += plan && plan->steps.size() > profile.operations.size() ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(moved, 45);
  EXPECT_GT(ran_again, 10);
}

void ExpectRunnable(const Problem& problem) {
  const LowerBound bound = FindLowerBound(problem);
  for (const Strategy* strategy : AllStrategies()) {
    const StrategyOutcome pure = strategy->MakePlan(problem);
    const StrategyOutcome repaired = strategy->MakeRunnablePlan(problem);
    EXPECT_EQ(repaired.plan.ok(), bound.possible) << strategy->name();
    if (!repaired.plan) continue;
    Tried tried{repaired, CostModel(problem).Predict(*repaired.plan)};
    ExpectRightPlan(problem, *strategy, tried);
    EXPECT_TRUE(tried.prediction.runs()) << strategy->name();
    const bool ran = pure.plan && CostModel(problem).Predict(*pure.plan).runs();
    EXPECT_TRUE(!ran || *pure.plan == *repaired.plan) << strategy->name();
  }
}

TEST(StrategiesTest, RepairedPlansRunWhereverSwapAllRuns) {
  int repaired = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Dice dice(seed);
    const IterationProfile profile = Chain(dice, static_cast<int32_t>(dice.Roll(2, 10)));
    Problem problem = testing::RandomProblem(dice, profile);
    problem.min_movable_bytes = 1;
    problem.node_limit = 20;
    problem.budget_bytes = std::max(FindLowerBound(problem).memory_bytes,
                                    PeakBytes(profile) * dice.Roll(30, 90) / 100);
    ExpectRunnable(problem);
    const auto plan = FindStrategy("vdnn-conv")->MakeRunnablePlan(problem).plan;
    repaired += std::any_of(plan->actions.begin(), plan->actions.end(),
                            [](const Action& action) { return action.reason == Reason::kRepair; })
                    ? 1
                    : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(repaired, 10);
}

TEST(StrategiesTest, EqualProblemsGiveEqualPlans) {
  Dice dice(5);
  const IterationProfile profile = Chain(dice, 12);
  Problem problem = testing::RandomProblem(dice, profile);
  problem.budget_bytes = PeakBytes(profile) * 6 / 10;
  for (const Strategy* strategy : AllStrategies()) {
    const StrategyOutcome first = strategy->MakePlan(problem), again = strategy->MakePlan(problem);
    ASSERT_EQ(first.plan.ok(), again.plan.ok()) << strategy->name();
    EXPECT_TRUE(!first.plan || *first.plan == *again.plan) << strategy->name();
  }
}

TEST(StrategiesTest, HaveUniqueNames) {
  std::set<std::string_view> names;
  for (const Strategy* strategy : AllStrategies()) {
    EXPECT_TRUE(names.insert(strategy->name()).second) << strategy->name();
    EXPECT_EQ(FindStrategy(strategy->name()), strategy);
    EXPECT_FALSE(strategy->summary().empty());
  }
  EXPECT_EQ(FindStrategy("none such"), nullptr);
  EXPECT_NE(FindStrategy(kDefaultStrategy), nullptr);
}

// Searches end after a fixed amount of work, so no job waits long for its plan.
TEST(StrategiesTest, OwnSearchEndsAtItsWorkLimit) {
  constexpr int64_t kLastLooks =
      kMostWork / 8;  // work beyond the limit: pricing proposals, one round
  int spent = 0;
  for (const bool learned : {false, true}) {
    Dice dice(9);
    const IterationProfile modelled = Chain(dice, 1500);
    const IterationProfile profile = learned ? AsLearned(modelled, dice, 100) : modelled;
    Problem problem = testing::RandomProblem(dice, profile);
    problem.min_movable_bytes = 1;
    problem.budget_bytes = std::max(FindLowerBound(problem).memory_bytes, PeakBytes(profile) / 5);
    Workbench bench(problem);

    const auto choices = SpillwayStrategy().Choose(bench);

    EXPECT_LE(bench.work(), kMostWork + kLastLooks) << learned;
    EXPECT_TRUE(choices.has_value()) << learned;
    spent += bench.is_spent() ? 1 : 0;
  }
  EXPECT_GT(spent, 0);
}

TEST(StrategiesTest, MoveNothingWhereAllFits) {
  Dice dice(3);
  const IterationProfile profile = Chain(dice, 6);
  Problem problem = testing::RandomProblem(dice, profile);
  problem.budget_bytes = 2 * PeakBytes(profile) + 10'000;

  const StrategyOutcome outcome = FindStrategy(kDefaultStrategy)->MakePlan(problem);

  ASSERT_TRUE(outcome.plan) << outcome.plan.text();
  EXPECT_TRUE(outcome.plan->actions.empty());
  for (const Step& step : outcome.plan->steps)
    EXPECT_EQ(step.workspace, profile.at(step.operation).workspaces.empty() ? 0 : 1);
}

// By their copies, two buffers of half the memory are cheaper. By mapping calls, the single large
// buffer is cheaper.
TEST(StrategiesTest, ReliefIsChosenByTheAssumedCostOfSwaps) {
  const IterationProfile profile =
      testing::ProfileOf({testing::Temporary("whole", 2'000), testing::Temporary("half", 500),
                          testing::Temporary("other half", 500), testing::Temporary("peak", 2'000),
                          testing::Persistent("w", 10)},
                         {testing::MakeOperation("make", 100'000, {4}, {0, 1, 2}, false),
                          testing::MakeOperation("between", 100'000, {4}, {}, false),
                          testing::MakeOperation("peak", 100'000, {4}, {3}, false),
                          testing::MakeOperation("after", 100'000, {4}, {}, false),
                          testing::MakeOperation("use", 100'000, {0, 1, 2}, {4}, false)});
  const Problem problem{
      .profile = &profile,
      .device = {.to_host_bytes_per_second = 1'000'000'000,
                 .to_device_bytes_per_second = 1'000'000'000,
                 .to_host_both_bytes_per_second = 1'000'000'000,
                 .to_device_both_bytes_per_second = 1'000'000'000,
                 .chunk_bytes = 1'000,
                 .mapping = {.map_ns = 0, .set_access_ns = 5'000, .unmap_ns = 5'000}},
      .budget_bytes = 4'010,
      .min_movable_bytes = 100};
  const Workbench bench(problem);
  const auto swapped = [&](SwapCosts costs) {
    std::set<std::string> names;
    const auto choices = Relieve(
        bench, {.target_bytes = problem.budget_bytes, .copy_discount = 1, .swap_costs = costs},
        bench.NoChoices());
    for (const Decision& decision : choices.value_or(bench.NoChoices()).decisions) {
      if (decision.treatment != Treatment::kSwap) continue;
      names.insert(profile.at(bench.interval(decision.interval).buffer).name);
    }
    return names;
  };

  EXPECT_EQ(swapped(SwapCosts::kCopies), (std::set<std::string>{"half", "other half"}));
  EXPECT_EQ(swapped(SwapCosts::kCopiesAndCalls), (std::set<std::string>{"whole"}));
}

// Of a live job that fits, the choice to move a buffer of the second operation, which is freed only
// after the fourth.
class UselessCopyTest : public ::testing::Test {
 protected:
  void SetUp() override { profile_.buffers[0].dies = {3}; }
  void Choose() {
    bench_.emplace(problem_);
    ASSERT_EQ(bench_->interval_count(), 1);
    choices_ = bench_->NoChoices();
    choices_.decisions[0].treatment = Treatment::kSwap;
    moves_ = bench_->Price(bench_->Lower(choices_));
    ASSERT_EQ(moves_.to_host_bytes, 1'000);
  }
  Prediction Improved() { return Improve(*bench_, {choices_, moves_}, 100).prediction; }

  IterationProfile profile_ =
      testing::ProfileOf({testing::Temporary("late", 1'000), testing::Persistent("w", 10)},
                         {testing::MakeOperation("make", 10'000, {1}, {0}),
                          testing::MakeOperation("use", 10'000, {0}, {1}),
                          testing::MakeOperation("more", 10'000, {1}, {1}),
                          testing::MakeOperation("last", 10'000, {1}, {1})});
  const Problem problem_{.profile = &profile_,
                         .device = {.to_host_bytes_per_second = 1'000'000'000,
                                    .to_device_bytes_per_second = 1'000'000'000,
                                    .to_host_both_bytes_per_second = 1'000'000'000,
                                    .to_device_both_bytes_per_second = 1'000'000'000},
                         .budget_bytes = 10'000,
                         .min_movable_bytes = 100,
                         .is_live = true};
  std::optional<Workbench> bench_;
  Choices choices_;
  Prediction moves_;
};

// The job's own copies would wait behind useless ones.
TEST_F(UselessCopyTest, FastestPlanMovesNoMoreThanNecessary) {
  ASSERT_NO_FATAL_FAILURE(Choose());
  ASSERT_EQ(moves_.iteration_ns, bench_->fastest_ns());

  const Prediction improved = Improved();

  EXPECT_EQ(improved.iteration_ns, bench_->fastest_ns());
  EXPECT_EQ(improved.to_host_bytes, 0);
}

// Whoever is given the memory of a buffer that is freed meanwhile waits for the copy.
TEST_F(UselessCopyTest, DeadContentIsNotCopiedWhereThatSavesNothing) {
  profile_.operations[2].workspaces = {{"slow", 0, 10'000}, {"does not fit", 100'000, 5'000}};
  ASSERT_NO_FATAL_FAILURE(Choose());
  ASSERT_GT(moves_.iteration_ns, bench_->fastest_ns());

  EXPECT_EQ(Improved().to_host_bytes, 0);
}

}  // namespace
}  // namespace spillway::scheduler
