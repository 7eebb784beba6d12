#include "scheduler/plan/placing.h"

#include <gtest/gtest.h>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/unit/scheduler/random_problem.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

// x is evicted for y and restored; w stays across the iteration's end.
struct PlacingSetting {
  IterationProfile profile =
      ProfileOf({Persistent("w", 100), Temporary("x", 1000), Temporary("y", 900)},
                {MakeOperation("make x", 10, {0}, {1}), MakeOperation("rest", 3000, {}, {}),
                 MakeOperation("y", 10, {}, {2}), MakeOperation("rest", 3000, {}, {}),
                 MakeOperation("use x", 10, {0, 1}, {}, false)});
  Problem problem;
  Plan plan = PlanWithoutActions(profile);
  Timeline timeline;

  PlacingSetting() {
    problem.profile = &profile;
    problem.min_movable_bytes = 10;
    problem.budget_bytes = 1200;
    DeviceModel& device = problem.device;
    device.to_host_bytes_per_second = device.to_device_bytes_per_second = 1'000'000'000;
    device.to_host_both_bytes_per_second = device.to_device_both_bytes_per_second = 1'000'000'000;
    plan.actions = {{ActionKind::kOffload, {1}, 0, Reason::kHidden},
                    {ActionKind::kPrefetch, {1}, 3, Reason::kHidden}};
  }

  void Place() {
    ASSERT_TRUE(CostModel(problem).Predict(plan, &timeline).runs());
    PlaceBuffers(problem, timeline, 1000, plan);
  }
};

TEST(PlacingTest, BuffersNeverResidentTogetherShareAddresses) {
  PlacingSetting setting;
  setting.Place();

  EXPECT_EQ(setting.plan.arena_bytes, 1100);
  EXPECT_EQ(ValidatePlacements(setting.problem, setting.plan, setting.timeline), std::nullopt);
}

TEST(PlacingTest, ValidatorDetectsMissingAndOverlappingPlaces) {
  PlacingSetting setting;
  setting.Place();
  const auto fault = [&](const Plan& plan) {
    return ValidatePlacements(setting.problem, plan, setting.timeline)->fault;
  };

  Plan missing = setting.plan;
  missing.placements.pop_back();
  EXPECT_EQ(fault(missing), PlanFault::kNotPlaced);

  Plan shared = setting.plan;
  for (Placement& it : shared.placements) it.offset_bytes = 0;
  EXPECT_EQ(fault(shared), PlanFault::kPlacementsOverlap);

  Plan outside = setting.plan;
  outside.arena_bytes = 1000;
  EXPECT_EQ(fault(outside), PlanFault::kOutsideTheArena);

  Plan late = setting.plan;  // starts the copy back before
  for (Placement& it : late.placements) {
    if (it.buffer == BufferId{1} && it.from_step > 0) it.from_step = 4;
  }
  EXPECT_EQ(fault(late), PlanFault::kNotPlaced);
}

TEST(PlacingPropertyTest, PlansOfRandomIterationsArePlacedCorrectly) {
  int placed = 0, low = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    testing::Dice dice(seed);
    const IterationProfile profile = testing::RandomProfile(dice);
    Problem problem = testing::RandomProblem(dice, profile);
    problem.node_limit = 20;
    base::Result<Plan> plan = FindStrategy(kDefaultStrategy)->MakePlan(problem).plan;
    if (!plan) continue;
    Timeline timeline;
    const Prediction prediction = CostModel(problem).Predict(*plan, &timeline);
    if (!prediction.runs()) continue;
    PlaceBuffers(problem, timeline, 200, *plan);
    const auto offence = ValidatePlacements(problem, *plan, timeline);
    ASSERT_FALSE(offence.has_value())
        << "seed " << seed << ": " << offence->what << " at step " << offence->step;
    ++placed;
    low += plan->arena_bytes <= prediction.peak_bytes ? 1 : 0;
  }
  EXPECT_GT(placed, 250);
  EXPECT_GT(low, placed / 2);
}

}  // namespace
}  // namespace spillway::scheduler
