#include "scheduler/plan/plan_validator.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

// Weights w, activations x and y, a scratch buffer.
struct ValidatorSetting {
  IterationProfile profile = ProfileOf(
      {Persistent("w", 50), Temporary("x", 100), Temporary("y", 80), Temporary("scratch", 120),
       Temporary("g", 50)},
      {MakeOperation("make x", 10, {0}, {1}), MakeOperation("make y", 10, {1}, {2}),
       MakeOperation("work", 300, {}, {3}), MakeOperation("use y", 10, {2}, {4}),
       MakeOperation("use x", 10, {1, 4}, {4}), MakeOperation("update", 10, {0, 4}, {0}, false)});
  Problem problem;

  ValidatorSetting() {
    problem.profile = &profile;
    problem.device.to_host_bytes_per_second = problem.device.to_device_bytes_per_second =
        1'000'000'000;
    problem.device.to_host_both_bytes_per_second = problem.device.to_device_both_bytes_per_second =
        500'000'000;
    problem.device.copy_latency_ns = 3;
    problem.budget_bytes = 1000;
    problem.min_movable_bytes = 1;
  }

  // x is offloaded and restored; y is dropped and recomputed from x.
  Plan MakePlan() const {
    Plan plan = PlanWithoutActions(profile);
    plan.steps.insert(plan.steps.begin() + 3, Step{{1}, true, 0});
    plan.actions = {{ActionKind::kOffload, {1}, 1, {}},
                    {ActionKind::kDrop, {2}, 1, {}},
                    {ActionKind::kPrefetch, {1}, 2, {}}};
    return plan;
  }

  std::optional<PlanFault> FaultOf(const Plan& plan) const {
    const std::optional<PlanOffence> offence = ValidatePlan(problem, plan);
    return offence ? std::optional(offence->fault) : std::nullopt;
  }

  Timeline TimelineOf(const Plan& plan) const {
    Timeline timeline;
    EXPECT_TRUE(CostModel(problem).Predict(plan, &timeline).runs());
    return timeline;
  }

  std::optional<PlanFault> FaultOf(const Plan& plan, const Timeline& timeline) const {
    const std::optional<PlanOffence> offence = ValidateTimeline(problem, plan, timeline);
    return offence ? std::optional(offence->fault) : std::nullopt;
  }
};

TEST(PlanValidatorTest, AcceptsOffloadsDropsAndRecomputations) {
  const ValidatorSetting setting;
  EXPECT_EQ(setting.FaultOf(setting.MakePlan()), std::nullopt);
  EXPECT_EQ(setting.FaultOf(PlanWithoutActions(setting.profile)), std::nullopt);
}

TEST(PlanValidatorTest, RejectsIdsThatDoNotExist) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  plan.actions[0].buffer = {5};
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kUnknownId);
  plan = setting.MakePlan();
  plan.actions[2].step = 7;
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kUnknownId);
  plan = setting.MakePlan();
  plan.steps[0].workspace = 1;
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kUnknownId);
}

TEST(PlanValidatorTest, RejectsMissingOrDisorderedSteps) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  plan.steps.pop_back();
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kStepsIncomplete);
  plan = setting.MakePlan();
  std::swap(plan.steps[0], plan.steps[1]);
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kStepsIncomplete);
}

TEST(PlanValidatorTest, RejectsActionsOutOfOrder) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  std::swap(plan.actions[0], plan.actions[2]);
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kActionsOutOfOrder);
}

TEST(PlanValidatorTest, RejectsMovesOfTheUnmovable) {
  ValidatorSetting setting;
  setting.profile.buffers[1].movable = false;
  EXPECT_EQ(setting.FaultOf(setting.MakePlan()), PlanFault::kMovesTheUnmovable);
}

TEST(PlanValidatorTest, RejectsReadsOfEvictedBuffers) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  plan.actions.pop_back();
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kReadsEvicted);
}

TEST(PlanValidatorTest, RejectsReadsOfDroppedBuffers) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  plan.steps.erase(plan.steps.begin() + 3);
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kReadsLost);
}

TEST(PlanValidatorTest, RejectsReplaysOfUnreplayableOperations) {
  ValidatorSetting setting;
  setting.profile.operations[1].replayable = false;
  EXPECT_EQ(setting.FaultOf(setting.MakePlan()), PlanFault::kRecomputesForbidden);
}

TEST(PlanValidatorTest, RejectsReplaysOfInPlaceChanges) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  plan.steps.insert(plan.steps.begin() + 6, Step{{4}, true, 0});
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kRecomputesForbidden);
}

TEST(PlanValidatorTest, RejectsReplaysBeforeTheFirstRun) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  plan.steps.insert(plan.steps.begin() + 1, Step{{1}, true, 0});
  for (Action& action : plan.actions) ++action.step;
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kRecomputesForbidden);
}

TEST(PlanValidatorTest, RejectsReplaysFromChangedInputs) {
  ValidatorSetting setting;
  setting.profile.operations[2].reads.push_back({0});
  setting.profile.operations[2].writes.push_back({0});
  Plan plan = PlanWithoutActions(setting.profile);
  plan.steps.insert(plan.steps.begin() + 3, Step{{0}, true, 0});
  plan.actions = {{ActionKind::kDrop, {1}, 1, {}}};
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kRecomputesFromChanged);
}

TEST(PlanValidatorTest, RejectsReplaysOverChangedOutputs) {
  ValidatorSetting setting;
  setting.profile.operations[2].reads.push_back({2});
  setting.profile.operations[2].writes.push_back({2});
  Plan plan = PlanWithoutActions(setting.profile);
  plan.steps.insert(plan.steps.begin() + 3, Step{{1}, true, 0});
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kRecomputesIntoChanged);
}

TEST(PlanValidatorTest, RejectsEvictionsOfBuffersThatAreNotResident) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  plan.actions.insert(plan.actions.begin() + 1, {ActionKind::kOffload, {1}, 1, {}});
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kEvictsNonResident);
}

TEST(PlanValidatorTest, RejectsPrefetchesWithoutAHostCopy) {
  const ValidatorSetting setting;
  Plan plan = setting.MakePlan();
  plan.actions[0].kind = ActionKind::kDrop;
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kPrefetchesNothing);
}

TEST(PlanValidatorTest, RejectsLeftoverBuffers) {
  const ValidatorSetting setting;
  Plan plan = PlanWithoutActions(setting.profile);
  plan.steps.insert(plan.steps.begin() + 4, Step{{1}, true, 0});
  EXPECT_EQ(setting.FaultOf(plan), PlanFault::kNeverDropped);
  plan.actions = {{ActionKind::kDrop, {2}, 4, {}}};
  EXPECT_EQ(setting.FaultOf(plan), std::nullopt);
}

TEST(TimelineValidatorTest, AcceptsTheModelsPrediction) {
  const ValidatorSetting setting;
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), setting.TimelineOf(setting.MakePlan())),
            std::nullopt);
}

TEST(TimelineValidatorTest, RejectsStepsOtherThanThePlans) {
  const ValidatorSetting setting;
  Timeline timeline = setting.TimelineOf(setting.MakePlan());
  timeline.step_start_ns.pop_back();
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kTimelineShape);
}

TEST(TimelineValidatorTest, RejectsStepsThatAreTooShortOrOverlap) {
  const ValidatorSetting setting;
  Timeline timeline = setting.TimelineOf(setting.MakePlan());
  --timeline.step_end_ns[2];
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kStepTooShort);
  timeline = setting.TimelineOf(setting.MakePlan());
  --timeline.step_start_ns[2];
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kStepsOverlap);
}

TEST(TimelineValidatorTest, RejectsTouchesBeforeTheRestoreHasEnded) {
  const ValidatorSetting setting;
  Timeline timeline = setting.TimelineOf(setting.MakePlan());
  timeline.to_device[0].end_ns += 1000;
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kTouchesNonResident);
}

TEST(TimelineValidatorTest, RejectsCopiesFasterThanTheLink) {
  const ValidatorSetting setting;
  Timeline timeline = setting.TimelineOf(setting.MakePlan());
  timeline.to_host[0].end_ns -= 5;
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kCopyTooFast);
}

TEST(TimelineValidatorTest, RejectsConcurrentCopiesAtFullRate) {
  const ValidatorSetting setting;
  Plan plan = PlanWithoutActions(setting.profile);
  plan.actions = {{ActionKind::kOffload, {1}, 1, {}},
                  {ActionKind::kPrefetch, {1}, 2, {}},
                  {ActionKind::kOffload, {2}, 1, {}},
                  {ActionKind::kPrefetch, {2}, 3, {}}};
  std::stable_sort(plan.actions.begin(), plan.actions.end(),
                   [](const Action& a, const Action& b) { return a.step < b.step; });
  Timeline timeline = setting.TimelineOf(plan);
  ASSERT_EQ(setting.FaultOf(plan, timeline), std::nullopt);
  ASSERT_GT(timeline.to_host[1].end_ns, timeline.to_device[0].start_ns);
  timeline.to_host[1].end_ns = timeline.to_host[1].start_ns + 83;
  EXPECT_EQ(setting.FaultOf(plan, timeline), PlanFault::kCopyTooFast);
}

TEST(TimelineValidatorTest, RejectsCopiesThatOverlapOnOneEngine) {
  const ValidatorSetting setting;
  Timeline timeline = setting.TimelineOf(setting.MakePlan());
  timeline.to_host.push_back(timeline.to_host[0]);
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kCopiesOverlap);
}

TEST(TimelineValidatorTest, RejectsCopiesThatStartTooEarly) {
  const ValidatorSetting setting;
  Timeline timeline = setting.TimelineOf(setting.MakePlan());
  timeline.to_host[0].start_ns -= 5;
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kCopyTooEarly);
  timeline = setting.TimelineOf(setting.MakePlan());
  timeline.to_device[0].start_ns = timeline.to_host[0].end_ns - 1;
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kCopyTooEarly);
}

TEST(TimelineValidatorTest, RejectsMemoryUsedBeforeItCanBeMapped) {
  ValidatorSetting setting;
  const Timeline free_of_charge = setting.TimelineOf(setting.MakePlan());
  setting.problem.device.mapping = {
      .map_ns = 1, .set_access_ns = 5, .unmap_ns = 1, .piece_bytes = 100};
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), free_of_charge), PlanFault::kMapsTooFast);
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), setting.TimelineOf(setting.MakePlan())),
            std::nullopt);
}

TEST(TimelineValidatorTest, RejectsMappingBeforeTheMemoryIsFree) {
  // Given memory for one of two buffers: it is free when the first has left
  ValidatorSetting setting;
  setting.profile = testing::ProfileOf(
      {testing::Temporary("x", 100), testing::Temporary("y", 90)},
      {testing::MakeOperation("long", 500, {}, {0}), testing::MakeOperation("two", 10, {}, {1})});
  setting.problem.budget_bytes = 100;
  setting.problem.device.mapping = {
      .map_ns = 1, .set_access_ns = 50, .unmap_ns = 1, .piece_bytes = 100};
  const Plan plan = PlanWithoutActions(setting.profile);
  Timeline timeline = setting.TimelineOf(plan);
  ASSERT_EQ(setting.FaultOf(plan, timeline), std::nullopt);
  const int64_t too_early_ns = 5;
  timeline.step_start_ns[1] -= too_early_ns;
  EXPECT_EQ(setting.FaultOf(plan, timeline), PlanFault::kOverBudget);
}

TEST(TimelineValidatorTest, RejectsUnplannedCopies) {
  const ValidatorSetting setting;
  Timeline timeline = setting.TimelineOf(setting.MakePlan());
  timeline.to_host.push_back({{0}, 5000, 9000});
  EXPECT_EQ(setting.FaultOf(setting.MakePlan(), timeline), PlanFault::kCopyUnplanned);
}

TEST(TimelineValidatorTest, RejectsUseBeyondTheBudget) {
  ValidatorSetting setting;
  const Plan plan = setting.MakePlan();
  const Timeline timeline = setting.TimelineOf(plan);
  const int64_t peak_bytes = CostModel(setting.problem).Predict(plan).peak_bytes;
  setting.problem.budget_bytes = peak_bytes;
  EXPECT_EQ(setting.FaultOf(plan, timeline), std::nullopt);
  setting.problem.budget_bytes = peak_bytes - 1;
  EXPECT_EQ(setting.FaultOf(plan, timeline), PlanFault::kOverBudget);
}

}  // namespace
}  // namespace spillway::scheduler
