#include "scheduler/plan/lower_bound.h"

#include <gtest/gtest.h>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/price_bound.h"
#include "tests/unit/scheduler/random_problem.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

// x (1000 bytes) rests for 500 + 500 ns around a moment in which y (1000 bytes) also lives.
struct BoundSetting {
  IterationProfile profile =
      ProfileOf({Temporary("x", 1000), Temporary("y", 1000), Temporary("z", 1)},
                {MakeOperation("make x", 300, {}, {0}), MakeOperation("before", 500, {}, {}),
                 MakeOperation("y", 1, {}, {1}), MakeOperation("after", 500, {}, {}),
                 MakeOperation("use x", 100, {0}, {2}, false)});
  Problem problem;

  explicit BoundSetting(int64_t budget_bytes) {
    problem.profile = &profile;
    problem.min_movable_bytes = 10;
    problem.budget_bytes = budget_bytes;
    problem.device.to_host_bytes_per_second = problem.device.to_device_bytes_per_second =
        1'000'000'000;
    problem.device.to_host_both_bytes_per_second = problem.device.to_device_both_bytes_per_second =
        1'000'000'000;
  }
};

TEST(LowerBoundTest, IterationThatFitsTakesTheSumOfItsOperations) {
  const BoundSetting setting(2000);
  const LowerBound bound = FindLowerBound(setting.problem);
  EXPECT_TRUE(bound.possible);
  EXPECT_EQ(bound.iteration_ns, 1401);
  EXPECT_EQ(bound.time_at.index, -1);
}

TEST(LowerBoundTest, MemoryIsAtLeastTheLargestWorkingSet) {
  const BoundSetting setting(1001);
  const LowerBound bound = FindLowerBound(setting.problem);
  EXPECT_EQ(bound.memory_bytes, 1001);
  EXPECT_EQ(bound.memory_at, OperationId{4});
  EXPECT_TRUE(bound.possible);
  EXPECT_FALSE(FindLowerBound(BoundSetting(1000).problem).possible);
}

TEST(LowerBoundTest, UnmovableAndSmallBuffersAndWorkspacesAlwaysCount) {
  BoundSetting setting(5000);
  setting.profile.buffers[0].movable = false;
  setting.profile.operations[2].workspaces = {{"least", 70, 1}, {"more", 700, 1}};
  EXPECT_EQ(FindLowerBound(setting.problem).memory_bytes, 2070);
}

TEST(LowerBoundTest, ExcessIsSwappedUpToTheLinksRateElseRecomputed) {
  // Half of x moves within 500 ns each way: 500 of the 501 excess bytes cost nothing
  EXPECT_EQ(FindLowerBound(BoundSetting(1500).problem).iteration_ns, 1401);
  // All of x: the missing 499 bytes before and after, or 300 ns to recompute x. Half of that
  // overlaps the wait, so 150 ns recompute half of x: the cheapest mix.
  const LowerBound bound = FindLowerBound(BoundSetting(1001).problem);
  EXPECT_GT(bound.iteration_ns, 1401 + 100);
  EXPECT_LE(bound.iteration_ns, 1401 + 150);
  EXPECT_EQ(bound.time_at, OperationId{2});
}

// Two iterations of a job, learned as one: each peak has its own price.
TEST(LowerBoundTest, PricesOfSuccessivePeaksAddUp) {
  BoundSetting once(1001), twice(1001);
  IterationProfile& profile = twice.profile;
  for (const char* name : {"x again", "y again", "z again"})
    profile.buffers.push_back(Temporary(name, name[0] == 'z' ? 1 : 1000));
  for (const Operation& operation : std::vector<Operation>(profile.operations)) {
    profile.operations.push_back(operation);
    for (BufferId& id : profile.operations.back().reads) id.index += 3;
    for (BufferId& id : profile.operations.back().writes) id.index += 3;
  }
  for (size_t i = 3; i < 6; ++i) {
    profile.buffers[i].born = {profile.buffers[i - 3].born.index + 5};
    profile.buffers[i].dies = {profile.buffers[i - 3].dies.index + 5};
  }
  const int64_t extra_ns = FindLowerBound(once.problem).iteration_ns - 1401;
  ASSERT_GT(extra_ns, 100);
  EXPECT_EQ(FindLowerBound(twice.problem).iteration_ns, 2 * (1401 + extra_ns));
}

TEST(LowerBoundTest, WithoutRecomputationTheLinkDecides) {
  BoundSetting setting(1001);
  setting.profile.operations[0].replayable = false;
  const LowerBound bound = FindLowerBound(setting.problem);
  EXPECT_NEAR(static_cast<double>(bound.iteration_ns), 1401 + 2 * 499, 8);
}

TEST(LowerBoundTest, DistanceIsInHundredthsOfAPercent) {
  LowerBound bound;
  bound.iteration_ns = 1000;
  EXPECT_EQ(DistancePermyriad(1050, bound), 500);
}

// x rests for 500 ns before and after an operation, which a workspace makes 900 ns faster. Then x
// must be evicted, which takes 1000 ns each way. So a plan waits for 500 + 500 ns or takes the slow
// algorithm. The relaxation mixes: two thirds of the workspace fit beside x.
TEST(LowerBoundTest, PricesIncludeTheCostOfAFastAlgorithmToOthers) {
  BoundSetting setting(2000);
  setting.profile.operations[0].replayable = false;
  setting.profile.operations[2] = MakeOperation("choose", 1000, {}, {}, false);
  setting.profile.operations[2].workspaces = {{"slow", 0, 1000}, {"fast", 1500, 100}};
  SetLifetimesToTouches(setting.profile);

  EXPECT_EQ(FindLowerBound(setting.problem).iteration_ns, 300 + 500 + 100 + 500 + 100);
  const int64_t tight_ns = FindTightBound(setting.problem).iteration_ns;
  EXPECT_GT(tight_ns, 1500 + 200);
  EXPECT_LE(tight_ns, 1500 + 300);
}

TEST(LowerBoundPropertyTest, NoRandomPlanIsBelowTheBound) {
  int compared = 0, binding = 0;
  for (uint64_t seed = 1; seed <= 10'000; ++seed) {
    testing::Dice dice(seed);
    const IterationProfile profile = testing::RandomProfile(dice);
    const Problem problem = testing::RandomProblem(dice, profile);
    const std::vector<IdleInterval> intervals = IdleIntervals(profile, problem.min_movable_bytes);
    const std::vector<Decision> decisions = testing::RandomDecisions(dice, intervals);
    std::vector<int32_t> workspaces;
    for (const Operation& it : profile.operations)
      workspaces.push_back(it.workspaces.empty() ? 0 : static_cast<int32_t>(dice.Roll(0, 1)));
    const Plan plan =
        LowerDecisions(problem, RecomputeChains(profile), intervals, decisions, workspaces).plan;
    const Prediction prediction = CostModel(problem).Predict(plan);
    if (!prediction.runs()) continue;
    const LowerBound bound = FindLowerBound(problem);
    EXPECT_TRUE(bound.possible) << "seed " << seed;
    EXPECT_GE(prediction.peak_bytes, bound.memory_bytes) << "seed " << seed;
    EXPECT_GE(prediction.iteration_ns, bound.iteration_ns) << "seed " << seed;
    if (seed % 4 == 0) {
      EXPECT_GE(prediction.iteration_ns,
                BoundByPrices(
                    problem, {.most_checks = static_cast<int32_t>(dice.Roll(1, 32)), .rounds = 40}))
          << "seed " << seed;
    }
    ++compared;
    binding += bound.time_at.index >= 0 ? 1 : 0;
  }
  EXPECT_GT(compared, 3'000);
  EXPECT_GT(binding, 40);
}

}  // namespace
}  // namespace spillway::scheduler
