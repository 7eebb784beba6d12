#include "scheduler/plan/plan_explainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::ProfileOf;
using testing::Temporary;

TEST(PlanExplainerTest, ExplainsActionsWithReasonsAndFigures) {
  IterationProfile profile = ProfileOf(
      {Temporary("x", 4 << 20), Temporary("y", 1 << 20), Temporary("z", 1)},
      {MakeOperation("make x", 1'000, {}, {0}), MakeOperation("make y", 2'000'000, {0}, {1}),
       MakeOperation("long", 9'000'000, {}, {}), MakeOperation("use", 1'000, {0, 1}, {2})});
  profile.operations[2].workspaces = {{"slow", 0, 9'000'000}, {"fast", 3 << 20, 8'000'000}};
  Problem problem;
  problem.profile = &profile;
  problem.budget_bytes = 1 << 30;
  problem.device.to_host_bytes_per_second = problem.device.to_device_bytes_per_second = 4 << 20;
  problem.device.to_host_both_bytes_per_second = problem.device.to_device_both_bytes_per_second =
      4 << 20;
  Plan plan = PlanWithoutActions(profile);
  plan.steps[2].workspace = 1;
  plan.steps.insert(plan.steps.begin() + 3, Step{{1}, true, 0});
  plan.actions = {{ActionKind::kOffload, {0}, 0, Reason::kHidden},
                  {ActionKind::kPrefetch, {0}, 1, Reason::kHidden},
                  {ActionKind::kDrop, {1}, 1, Reason::kCheapestRelief}};

  Timeline timeline;
  ASSERT_TRUE(CostModel(problem).Predict(plan, &timeline).runs());
  std::vector<std::string> texts;
  for (const Explanation& explanation : ExplainPlan(problem, plan, timeline))
    texts.push_back(explanation.text);

  EXPECT_THAT(texts, ::testing::ElementsAre(
                         "offload 'x' (4.0 MiB) after 'make x', idle for 2000.0 ms until 'make y'; "
                         "copy takes 1000.0 ms, "
                         "its "
                         "copies fit behind computation",
                         "prefetch 'x' (4.0 MiB) with 'make y', which waits for it (waits 2000.0 "
                         "ms); copy takes 1000.0 ms, "
                         "its copies fit behind computation",
                         "drop 'y' (1.0 MiB) after 'make y', idle for 8.0 ms until 'make y'; it "
                         "relieves the peak most per "
                         "time lost",
                         "'long' uses fast with 3.0 MiB of workspace: 8.0 ms instead of 9.0 ms",
                         "run 'make y' again, 2.0 ms, for 'y' (1.0 MiB)"));
}

}  // namespace
}  // namespace spillway::scheduler
