#include "scheduler/plan/prefetch_times.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::ProfileOf;
using testing::Temporary;

// x and y are made and rest while w is resident; then both are read.
class PrefetchTimesTest : public ::testing::Test {
 protected:
  IterationProfile profile_ =
      ProfileOf({Temporary("x", 100), Temporary("y", 100), Temporary("w", 50), Temporary("z", 1)},
                {MakeOperation("make x", 10, {}, {0}), MakeOperation("make y", 10, {}, {1}),
                 MakeOperation("long", 300, {}, {2}), MakeOperation("longer", 500, {2}, {3}),
                 MakeOperation("use", 10, {0, 1}, {3})});

  Plan Timed(int64_t budget_bytes, std::vector<Action> actions) {
    Problem problem;
    problem.profile = &profile_;
    problem.device.to_host_bytes_per_second = problem.device.to_device_bytes_per_second =
        1'000'000'000;
    problem.device.to_host_both_bytes_per_second = problem.device.to_device_both_bytes_per_second =
        1'000'000'000;
    problem.budget_bytes = budget_bytes;
    problem.min_movable_bytes = 1;
    Plan plan = PlanWithoutActions(profile_);
    plan.actions = std::move(actions);
    Timeline timeline;
    EXPECT_TRUE(CostModel(problem).Predict(plan, &timeline).runs());
    return WithTimedPrefetches(profile_, plan, timeline);
  }
};

TEST_F(PrefetchTimesTest, PrefetchIsIssuedWhereItHasMemory) {
  // Given memory for w and one other buffer. y gets memory when w dies at the end of step 3, and
  // step 4 waits for y
  const Plan plan = Timed(201, {{ActionKind::kOffload, {0}, 0, {}},
                                {ActionKind::kOffload, {1}, 1, {}},
                                {ActionKind::kPrefetch, {0}, 2, {}},
                                {ActionKind::kPrefetch, {1}, 2, {}}});
  ASSERT_EQ(plan.actions.size(), 4u);
  EXPECT_EQ(plan.actions[2], (Action{ActionKind::kPrefetch, {0}, 2, {}}));
  EXPECT_EQ(plan.actions[3], (Action{ActionKind::kPrefetch, {1}, 3, {}}));
}

TEST_F(PrefetchTimesTest, PrefetchBehindAnotherIsIssuedWhereTheEngineIsFree) {
  // Given memory for all, and an engine that copies x in during step 2 and y during step 3
  profile_.buffers[0].size_bytes = 200;
  const Plan plan = Timed(1000, {{ActionKind::kOffload, {0}, 0, {}},
                                 {ActionKind::kOffload, {1}, 1, {}},
                                 {ActionKind::kPrefetch, {0}, 2, {}},
                                 {ActionKind::kPrefetch, {1}, 2, {}}});
  EXPECT_EQ(plan.actions[2].step, 2);
  EXPECT_EQ(plan.actions[3].step, 3);
}

TEST_F(PrefetchTimesTest, DemandFetchStaysAtTheReadingStep) {
  const Plan plan =
      Timed(1000, {{ActionKind::kOffload, {0}, 0, {}}, {ActionKind::kPrefetch, {0}, 4, {}}});
  EXPECT_EQ(plan.actions[1], (Action{ActionKind::kPrefetch, {0}, 4, {}}));
}

}  // namespace
}  // namespace spillway::scheduler
