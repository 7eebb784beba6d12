// What presumed reads mean for recomputation (scheduler/plan/presumed_reads.h).
#include "scheduler/plan/presumed_reads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/recompute_chain.h"
#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::ProfileOf;
using testing::Temporary;

constexpr BufferId kInput{0}, kOutput{1};
constexpr OperationId kMake{1};
constexpr int32_t kOperations = 12;

// The norm's output is used by the next operation, and by the last but one. Operation `presumed`
// only seems to read the input.
IterationProfile NormAndPresumedRead(int32_t presumed) {
  std::vector<Operation> operations = {MakeOperation("input", 10, {}, {0}, false),
                                       MakeOperation("norm", 10, {0}, {1}),
                                       MakeOperation("use", 10, {1}, {2})};
  while (operations.size() < kOperations - 2)
    operations.push_back(MakeOperation("work", 10, {2}, {2}, false));
  operations.push_back(MakeOperation("use again", 10, {1, 2}, {2}, false));
  operations.push_back(MakeOperation("end", 10, {0, 2}, {2}, false));
  Operation& reader = operations[static_cast<size_t>(presumed)];
  reader.reads.push_back(kInput);
  reader.presumed_reads.push_back(kInput);
  return ProfileOf({Temporary("x", 100), Temporary("y", 100), Temporary("work", 10)}, operations);
}

std::vector<OperationId> ChainAt(const IterationProfile& profile, int32_t before) {
  const auto present = [](BufferId id) { return id != kOutput; };
  return RecomputeChains(profile).Find({kOutput}, {before}, present);
}

bool ReadsOutput(const IterationProfile& profile, int32_t operation) {
  const auto& reads = profile.operations[static_cast<size_t>(operation)].reads;
  return std::find(reads.begin(), reads.end(), kOutput) != reads.end();
}

TEST(PresumedReadsTest, NothingIsMadeAgainBehindOne) {
  const IterationProfile profile = NormAndPresumedRead(6);
  EXPECT_EQ(ChainAt(profile, 6), std::vector<OperationId>{kMake});
  EXPECT_EQ(ChainAt(profile, 7), std::vector<OperationId>{});
}

TEST(PresumedReadsTest, WhatIsOnTheDeviceMeanwhileStaysRepeatable) {
  IterationProfile profile = NormAndPresumedRead(4);
  KeepOutputsAtPresumedReads(&profile);
  EXPECT_TRUE(ReadsOutput(profile, 4));
  EXPECT_EQ(ChainAt(profile, 10), std::vector<OperationId>{kMake});
}

TEST(PresumedReadsTest, AnOutputIsNotKeptForALargePartOfItsIdleTime) {
  IterationProfile profile = NormAndPresumedRead(6);
  const IterationProfile before = profile;
  KeepOutputsAtPresumedReads(&profile);
  EXPECT_EQ(profile, before);
}

TEST(PresumedReadsTest, ReadsThatAreDocumentedChangeNothing) {
  IterationProfile profile = NormAndPresumedRead(4);
  profile.operations[4].presumed_reads.clear();
  const IterationProfile before = profile;
  KeepOutputsAtPresumedReads(&profile);
  EXPECT_EQ(profile, before);
  EXPECT_EQ(ChainAt(profile, 10), std::vector<OperationId>{kMake});
}

// Drops y behind `dropped`, and runs the norm again before its last use.
std::optional<PlanFault> FaultOfDroppingBehind(int32_t dropped, int32_t presumed) {
  const IterationProfile profile = NormAndPresumedRead(presumed);
  Problem problem;
  problem.profile = &profile;
  problem.min_movable_bytes = 1;
  problem.budget_bytes = 1000;
  Plan plan = PlanWithoutActions(profile);
  plan.steps.insert(plan.steps.end() - 2, Step{kMake, true, 0});
  plan.actions = {{ActionKind::kDrop, kOutput, dropped, {}}};
  const std::optional<PlanOffence> offence = ValidatePlan(problem, plan);
  return offence ? std::optional(offence->fault) : std::nullopt;
}

TEST(PresumedReadsTest, ThePlansCheckKnowsThem) {
  EXPECT_EQ(FaultOfDroppingBehind(2, 4), PlanFault::kRecomputesForbidden);
  EXPECT_EQ(FaultOfDroppingBehind(4, 4), std::nullopt);
  EXPECT_EQ(FaultOfDroppingBehind(5, 4), std::nullopt);
}

}  // namespace
}  // namespace spillway::scheduler
