// Relief of long iterations (bulk_relief.h), on short ones whose best choices are plain to see.
#include "scheduler/plan/strategies/bulk_relief.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/units.h"
#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan_validator.h"
#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kMib = base::kMebibyte;

// Activations of `layers` layers of 10 MiB each, used again in reverse. A copy takes 1 ms each way.
IterationProfile Chain(int32_t layers, int64_t operation_ns, bool can_repeat) {
  std::vector<Buffer> buffers{Persistent("w", 10)};
  std::vector<Operation> operations;
  for (int32_t i = 0; i < layers; ++i) {
    buffers.push_back(Temporary("y" + std::to_string(i), 10 * kMib));
    operations.push_back(
        MakeOperation("f" + std::to_string(i), operation_ns, {0}, {i + 1}, can_repeat));
  }
  for (int32_t i = layers; i-- > 0;)
    operations.push_back(MakeOperation("b" + std::to_string(i), operation_ns, {i + 1}, {}, false));
  return ProfileOf(std::move(buffers), std::move(operations));
}

Problem ProblemOf(const IterationProfile& profile, int64_t budget_bytes) {
  constexpr int64_t kRate = 10 * kMib * 1000;
  return {.profile = &profile,
          .device = {.to_host_bytes_per_second = kRate,
                     .to_device_bytes_per_second = kRate,
                     .to_host_both_bytes_per_second = kRate,
                     .to_device_both_bytes_per_second = kRate},
          .budget_bytes = budget_bytes,
          .min_movable_bytes = kMib};
}

struct Relieved {
  Prediction prediction;
  int swaps = 0, recomputations = 0;
};

Relieved Relieve(const Problem& problem, int64_t copy_discount = 64) {
  Workbench bench(problem);
  const auto choices =
      RelieveInBulk(bench, {.target_bytes = problem.budget_bytes, .copy_discount = copy_discount},
                    bench.NoChoices());
  Relieved relieved;
  relieved.prediction.verdict = Verdict::kMalformed;
  if (!choices) return relieved;
  for (const Decision& decision : choices->decisions) {
    relieved.swaps += decision.treatment == Treatment::kSwap ? 1 : 0;
    relieved.recomputations += decision.treatment == Treatment::kRecompute ? 1 : 0;
  }
  const Plan plan = bench.Lower(*choices);
  EXPECT_FALSE(ValidatePlan(problem, plan));
  relieved.prediction = bench.Price(plan);
  return relieved;
}

TEST(BulkReliefTest, SwapsHideBehindLongOperations) {
  const IterationProfile profile = Chain(40, 3 * kMs, false);

  const Relieved relieved = Relieve(ProblemOf(profile, PeakBytes(profile) / 2));

  ASSERT_TRUE(relieved.prediction.runs());
  EXPECT_EQ(relieved.prediction.iteration_ns, BusyNs(profile));
  EXPECT_GT(relieved.swaps, 0);
}

// The link has time for a third of them: a round that forgot that would swap them all.
TEST(BulkReliefTest, WhatTheLinkHasNoTimeForIsRecomputed) {
  const IterationProfile profile = Chain(60, kMs / 3, true);

  const Relieved relieved = Relieve(ProblemOf(profile, PeakBytes(profile) / 4));

  ASSERT_TRUE(relieved.prediction.runs());
  EXPECT_GT(relieved.swaps, 0);
  EXPECT_GT(relieved.recomputations, 0);
  EXPECT_LT(relieved.prediction.iteration_ns, BusyNs(profile) / 2 * 3);
}

TEST(BulkReliefTest, ComputationWaitsWhereNothingElseIsPossible) {
  const IterationProfile profile = Chain(60, kMs / 10, false);

  const Relieved relieved = Relieve(ProblemOf(profile, PeakBytes(profile) / 4));

  ASSERT_TRUE(relieved.prediction.runs());
  EXPECT_EQ(relieved.recomputations, 0);
  EXPECT_GT(relieved.prediction.stalls.total_ns(), 0);
}

// Chains need no link, so that a dear link leaves all to them.
TEST(BulkReliefTest, TheCheaperOfChainAndCopyIsChosen) {
  const IterationProfile cheap = Chain(40, kMs / 100, true), dear = Chain(40, 100 * kMs, true);
  const auto relieve = [](const IterationProfile& profile) {
    return Relieve(ProblemOf(profile, PeakBytes(profile) / 2), 1);
  };
  EXPECT_EQ(relieve(cheap).swaps, 0);
  EXPECT_EQ(relieve(dear).recomputations, 0);
}

TEST(BulkReliefTest, MovesNothingWhereAllFits) {
  const IterationProfile profile = Chain(10, kMs, true);

  const Relieved relieved = Relieve(ProblemOf(profile, PeakBytes(profile)));

  EXPECT_EQ(relieved.swaps + relieved.recomputations, 0);
}

TEST(BulkReliefTest, GivesUpWhereOneOperationAloneIsTooLarge) {
  const IterationProfile profile = Chain(10, kMs, true);

  EXPECT_FALSE(Relieve(ProblemOf(profile, 5 * kMib)).prediction.runs());
}

// The small buffer is the cheapest to take, but not enough. With the large one it is superfluous.
TEST(BulkReliefTest, NoChoiceIsSuperfluous) {
  const IterationProfile profile =
      ProfileOf({Persistent("w", 10), Temporary("large", 10 * kMib), Temporary("small", 5 * kMib),
                 Temporary("peak", 20 * kMib)},
                {MakeOperation("make large", 5 * kMs, {0}, {1}, false),
                 MakeOperation("make small", 1'000, {0}, {2}, true),
                 MakeOperation("between", 5 * kMs, {0}, {}, false),
                 MakeOperation("peak", 5 * kMs, {0}, {3}, false),
                 MakeOperation("after", 5 * kMs, {0}, {}, false),
                 MakeOperation("use", 5 * kMs, {1, 2}, {}, false)});

  const Relieved relieved = Relieve(ProblemOf(profile, PeakBytes(profile) - 10 * kMib));

  ASSERT_TRUE(relieved.prediction.runs());
  EXPECT_EQ(relieved.swaps, 1);
  EXPECT_EQ(relieved.recomputations, 0);
}

// Prefetches that ignored this came too early, and deadlocked long plans.
TEST(BulkReliefTest, LoadsIncludeSwapsThatAChainReadsEarly) {
  const IterationProfile profile = ProfileOf(
      {Persistent("w", 10), Temporary("input", 10 * kMib), Temporary("output", 10 * kMib)},
      {MakeOperation("make input", kMs, {0}, {1}, false),
       MakeOperation("make output", kMs, {1}, {2}, true),
       MakeOperation("between", kMs, {0}, {}, false),
       MakeOperation("use output", kMs, {2}, {}, false),
       MakeOperation("after", kMs, {0}, {}, false),
       MakeOperation("use input", kMs, {1}, {}, false)});
  const Problem problem = ProblemOf(profile, PeakBytes(profile));
  const Workbench bench(problem);
  Choices choices = bench.NoChoices();
  for (Decision& decision : choices.decisions) {
    const int32_t buffer = bench.interval(decision.interval).buffer.index;
    decision.treatment = buffer == 1 ? Treatment::kSwap : Treatment::kRecompute;
  }

  const std::vector<int64_t> loads = LoadsOnDemand(bench, choices);

  EXPECT_LT(loads[2], 10 * kMib);
  EXPECT_GE(loads[4], 10 * kMib);
}

}  // namespace
}  // namespace spillway::scheduler
