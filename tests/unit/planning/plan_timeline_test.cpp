#include "agent/planning/plan_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/planning/plan_timelines.h"
#include "agent/planning/shown_plans.h"
#include "agent/planning/timeline_worker.h"
#include "tests/support/paths.h"
#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::agent {
namespace {

using scheduler::ActionKind;
using scheduler::BufferId;
using scheduler::StoredPlan;

// Leaves after its first touch, and comes back before its last one.
StoredPlan PlanThatMovesTheFirstActivation() {
  StoredPlan stored = interposer::SmallStoredPlan();
  const auto& buffers = stored.pattern.profile.buffers;
  const auto longest = std::find_if(buffers.begin(), buffers.end(), [](const auto& buffer) {
    return !buffer.persistent && buffer.dies.index > buffer.born.index + 4;
  });
  const BufferId buffer{static_cast<int32_t>(longest - buffers.begin())};
  stored.plan.actions = {{ActionKind::kOffload, buffer, longest->born.index + 1},
                         {ActionKind::kPrefetch, buffer, longest->dies.index}};
  return stored;
}

int64_t Most(const PlanTimeline& timeline, int64_t TimelinePart::*place) {
  int64_t most = 0;
  for (const TimelinePart& part : timeline.parts) most = std::max(most, part.*place);
  return most;
}

TEST(PlanTimelineTest, WithoutMovesAllThatTheProgramWantsIsResident) {
  const auto timeline = TimelineOf(interposer::SmallStoredPlan());
  ASSERT_TRUE(timeline) << timeline.text();
  EXPECT_EQ(timeline->parts.size(), kTimelineParts);
  EXPECT_EQ(Most(*timeline, &TimelinePart::wanted_bytes), interposer::kPeakBytes);
  for (const TimelinePart& part : timeline->parts)
    EXPECT_EQ(part.resident_bytes, part.wanted_bytes);
  EXPECT_EQ(timeline->to_host_bytes, 0);
}

TEST(PlanTimelineTest, AMoveTakesItsBytesAwayUntilItComesBack) {
  const StoredPlan stored = PlanThatMovesTheFirstActivation();
  const auto timeline = TimelineOf(stored);
  ASSERT_TRUE(timeline) << timeline.text();
  EXPECT_EQ(timeline->to_host_bytes, interposer::kActivationBytes);
  EXPECT_EQ(timeline->to_device_bytes, interposer::kActivationBytes);
  EXPECT_EQ(Most(*timeline, &TimelinePart::resident_bytes),
            interposer::kPeakBytes - interposer::kActivationBytes);
  ASSERT_EQ(timeline->largest.size(), 2u);
  EXPECT_EQ(timeline->largest[0].action.kind, ActionKind::kOffload);
  EXPECT_LT(timeline->largest[0].at_ns, timeline->largest[1].at_ns);
  EXPECT_EQ(timeline->largest[1].operation, stored.plan.actions[1].step);
}

// The codec checks the iteration; of the plan it checks enumerations only.
TEST(PlanTimelineTest, RefusesAPlanThatNamesWhatIsNotThere) {
  const StoredPlan right = PlanThatMovesTheFirstActivation();
  const auto refused = [&](auto change) {
    StoredPlan wrong = right;
    change(wrong.plan);
    return !TimelineOf(wrong);
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& plan) { plan.steps[0].operation.index = 1'000'000; }));
  EXPECT_TRUE(refused([](auto& plan) { plan.steps[0].operation.index = -1; }));
  EXPECT_TRUE(refused([](auto& plan) { plan.actions[0].step = 1'000'000; }));
  EXPECT_TRUE(refused([](auto& plan) { plan.actions[0].step = -1; }));
  EXPECT_TRUE(refused([](auto& plan) { plan.actions[0].buffer.index = 1'000'000; }));
  EXPECT_TRUE(refused([](auto& plan) { std::swap(plan.actions[0], plan.actions[1]); }));
}

ShownPlans::Plan Shown(uint64_t session, const std::string& job, std::string bytes,
                       uint32_t device = 0) {
  return {SessionId{session}, job, device, "made",
          std::make_shared<const std::string>(std::move(bytes))};
}

TEST(PlanTimelinesTest, AProcessWithoutRightsMakesThem) {
  const PlanTimelines timelines({test::BuildPath("bin/spillwayd"), kTimelineOption});
  const std::vector<std::byte> plan = scheduler::Encode(PlanThatMovesTheFirstActivation());
  const std::string bytes(reinterpret_cast<const char*>(plan.data()), plan.size());

  const auto page = nlohmann::json::parse(
      timelines.JsonOf({Shown(1, "a", bytes), Shown(2, "a", bytes.substr(1)), Shown(3, "a", "")}));
  ASSERT_EQ(page["plans"].size(), 3u);
  EXPECT_EQ(page["plans"][0]["error"], "no timeline: it is no plan");
  EXPECT_EQ(page["plans"][1]["error"], "no timeline: it is no plan");
  EXPECT_EQ(page["plans"][2]["to_host_bytes"], interposer::kActivationBytes);
  EXPECT_EQ(page["plans"][2]["at_ns"].size(), kTimelineParts);
  EXPECT_EQ(page["plans"][2]["largest"][0]["kind"], "leaves");
}

TEST(PlanTimelinesTest, AProcessThatMakesNoneIsAnError) {
  for (const char* program : {"/bin/true", "/bin/false", "/no/such/program"}) {
    const auto page = nlohmann::json::parse(PlanTimelines({program}).JsonOf({Shown(1, "a", "x")}));
    EXPECT_EQ(page["plans"][0]["error"],
              "no timeline: the process that makes it ended without one");
  }
}

TEST(ShownPlansTest, ASessionHasItsLastPlanOnEachDevice) {
  ShownPlans plans;
  plans.Keep(Shown(1, "a", "first"));
  plans.Keep(Shown(1, "a", "second"));
  plans.Keep(Shown(1, "a", "other device", 1));
  plans.Keep(Shown(2, "b", "other job"));
  ASSERT_EQ(plans.Of("a").size(), 2u);
  EXPECT_EQ(*plans.Of("a")[0].bytes, "second");

  plans.Forget(SessionId{1});
  EXPECT_TRUE(plans.Of("a").empty());
  EXPECT_EQ(plans.Of("b").size(), 1u);
}

TEST(ShownPlansTest, TakesABoundedAmountOfMemory) {
  ShownPlans plans;
  const std::string large(ShownPlans::kMostPlanBytes, 'x');
  const uint64_t fitting = ShownPlans::kMostBytes / large.size();
  for (uint64_t session = 1; session <= fitting + 1; ++session)
    plans.Keep(Shown(session, "a", large));
  ASSERT_EQ(plans.Of("a").size(), fitting);
  EXPECT_EQ(plans.Of("a")[0].session, SessionId{2});

  plans.Keep(Shown(2, "a", large + "x"));
  ASSERT_EQ(plans.Of("a").size(), fitting - 1) << "too large to be kept; the former one is no more";
  EXPECT_EQ(plans.Of("a")[0].session, SessionId{3});
}

}  // namespace
}  // namespace spillway::agent
