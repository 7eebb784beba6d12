#include "scheduler/plan/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan_validator.h"
#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using ::testing::ElementsAre;
using testing::MakeOperation;
using ::testing::Pair;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

constexpr int64_t kGigabytePerSecond = 1'000'000'000;  // one byte per nanosecond

// One byte per nanosecond each way, independent engines, no fixed costs, single bytes as chunks.
DeviceModel SimpleDevice() {
  DeviceModel device;
  device.to_host_bytes_per_second = device.to_device_bytes_per_second = kGigabytePerSecond;
  device.to_host_both_bytes_per_second = device.to_device_both_bytes_per_second =
      kGigabytePerSecond;
  return device;
}

// x (100 bytes) is made, rests while y (60 bytes) lives, and is read: 10 + 300 + 10 ns.
IterationProfile OneGap() {
  return ProfileOf({Temporary("x", 100), Temporary("y", 60), Temporary("z", 1)},
                   {MakeOperation("make", 10, {}, {0}), MakeOperation("long", 300, {}, {1}),
                    MakeOperation("use", 10, {0}, {2})});
}

struct CostSetting {
  IterationProfile profile;
  Problem problem;

  CostSetting(IterationProfile the_profile, int64_t budget_bytes)
      : profile(std::move(the_profile)) {
    problem.profile = &profile;
    problem.device = SimpleDevice();
    problem.budget_bytes = budget_bytes;
    problem.min_movable_bytes = 1;
  }
  Plan MakePlan() const { return PlanWithoutActions(profile); }
  Prediction Predict(const Plan& plan, Timeline* timeline = nullptr) const {
    return CostModel(problem).Predict(plan, timeline);
  }
};

TEST(CostModelTest, WithoutActionsTimeIsTheSumOfOperationsAndPeakTheLiveBytes) {
  const CostSetting setting(OneGap(), 1000);
  const Prediction prediction = setting.Predict(setting.MakePlan());
  EXPECT_TRUE(prediction.runs());
  EXPECT_EQ(prediction.iteration_ns, 320);
  EXPECT_EQ(prediction.peak_bytes, 160);
  EXPECT_EQ(prediction.stalls, StallCauses{});
}

TEST(CostModelTest, StepThatDoesNotFitIsOverBudget) {
  const CostSetting setting(OneGap(), 159);
  const Prediction prediction = setting.Predict(setting.MakePlan());
  EXPECT_EQ(prediction.verdict, Verdict::kOverBudget);
  EXPECT_EQ(prediction.stuck_step, 1);
}

TEST(CostModelTest, DemandFetchIsAPrefetchAtTheReadingStep) {
  const CostSetting setting(OneGap(), 110);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}}, {ActionKind::kPrefetch, {0}, 2, {}}};
  EXPECT_EQ(setting.Predict(plan).iteration_ns, 520);
}

TEST(CostModelTest, BufferThatIsNeverRestoredIsADeadlock) {
  const CostSetting setting(OneGap(), 110);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}}};
  const Prediction prediction = setting.Predict(plan);
  EXPECT_EQ(prediction.verdict, Verdict::kDeadlock);
  EXPECT_EQ(prediction.stuck_step, 2);
}

TEST(CostModelTest, PrefetchWaitsForMemoryAndStepForItsPrefetch) {
  const CostSetting setting(OneGap(), 110);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}}, {ActionKind::kPrefetch, {0}, 1, {}}};

  Timeline timeline;
  const Prediction prediction = setting.Predict(plan, &timeline);

  // Then it starts when y is freed: 10 make, 100 copy out, 300 long, 100 copy in, 10 use.
  EXPECT_TRUE(prediction.runs());
  EXPECT_EQ(prediction.iteration_ns, 520);
  EXPECT_EQ(prediction.stalls, (StallCauses{100, 100, 0}));
  EXPECT_EQ(prediction.peak_bytes, 101);
  EXPECT_EQ(prediction.to_host_bytes, 100);
  EXPECT_EQ(prediction.to_device_bytes, 100);
  EXPECT_THAT(timeline.to_host, ElementsAre(CopyTime{{0}, 10, 110}));
  EXPECT_THAT(timeline.to_device, ElementsAre(CopyTime{{0}, 410, 510}));
  EXPECT_THAT(timeline.step_start_ns, ElementsAre(0, 110, 510));
}

TEST(CostModelTest, HiddenSwapCostsNothing) {
  // Given a long operation in the middle of the gap, and memory enough to overlap the copies
  const CostSetting setting(
      ProfileOf({Temporary("x", 100), Temporary("y", 60), Temporary("z", 1)},
                {MakeOperation("make", 10, {}, {0}), MakeOperation("long", 300, {}, {2}),
                 MakeOperation("big", 1, {2}, {1}), MakeOperation("long", 300, {}, {}),
                 MakeOperation("use", 10, {0}, {2})}),
      120);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}}, {ActionKind::kPrefetch, {0}, 3, {}}};
  const Prediction prediction = setting.Predict(plan);
  EXPECT_TRUE(prediction.runs());
  EXPECT_EQ(prediction.iteration_ns, 621);
  EXPECT_EQ(prediction.stalls.total_ns(), 0);
}

TEST(CostModelTest, EnginesSlowDownWhileBothCopy) {
  // Given rates that halve while both directions copy, and a copy out that meets a copy in
  CostSetting setting(
      ProfileOf({Temporary("a", 100), Temporary("b", 100)},
                {MakeOperation("make a", 1, {}, {0}), MakeOperation("long", 99, {}, {}),
                 MakeOperation("make b", 1, {}, {1}), MakeOperation("long", 1000, {}, {}),
                 MakeOperation("use", 1, {0, 1}, {})}),
      1000);
  setting.problem.device.to_host_both_bytes_per_second = kGigabytePerSecond / 2;
  setting.problem.device.to_device_both_bytes_per_second = kGigabytePerSecond / 2;
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}},
                  {ActionKind::kPrefetch, {0}, 1, {}},
                  {ActionKind::kOffload, {1}, 2, {}},
                  {ActionKind::kPrefetch, {1}, 3, {}}};

  Timeline timeline;
  const Prediction prediction = setting.Predict(plan, &timeline);

  // Then each takes 200 ns; alone a copy takes 100.
  EXPECT_TRUE(prediction.runs());
  EXPECT_THAT(timeline.to_host, ElementsAre(CopyTime{{0}, 1, 101}, CopyTime{{1}, 101, 301}));
  EXPECT_THAT(timeline.to_device, ElementsAre(CopyTime{{0}, 101, 301}, CopyTime{{1}, 301, 401}));
}

TEST(CostModelTest, LinkShareSlowsCopiesAndLatencyCountsPerCopy) {
  CostSetting setting(OneGap(), 110);
  setting.problem.device.link_share_permille = 500;
  setting.problem.device.copy_latency_ns = 7;
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}}, {ActionKind::kPrefetch, {0}, 1, {}}};
  EXPECT_EQ(setting.Predict(plan).iteration_ns, 10 + 207 + 300 + 207 + 10);
}

TEST(CostModelTest, StepThatWaitedForMemoryPaysTheLaunch) {
  CostSetting setting(OneGap(), 110);
  setting.problem.device.launch_ns = 5;
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}}, {ActionKind::kPrefetch, {0}, 1, {}}};
  const Prediction prediction = setting.Predict(plan);
  EXPECT_EQ(prediction.iteration_ns, 525);
  EXPECT_EQ(prediction.stalls, (StallCauses{100, 100, 5}));
}

TEST(CostModelTest, MemoryCountsInChunksAndSmallBuffersInSlabUnits) {
  CostSetting setting(OneGap(), 1000);
  setting.problem.min_movable_bytes = 50;
  setting.problem.device.chunk_bytes = 64;
  setting.problem.device.slab_unit_bytes = 16;
  EXPECT_EQ(setting.Predict(setting.MakePlan()).peak_bytes, 128 + 64);
  EXPECT_EQ(CostModel(setting.problem).footprint_bytes({2}), 16);
}

TEST(CostModelTest, CleanBufferIsEvictedWithoutACopy) {
  const CostSetting setting(
      ProfileOf({Persistent("w", 100)},
                {MakeOperation("one", 500, {0}, {}), MakeOperation("two", 500, {}, {}),
                 MakeOperation("three", 500, {0}, {}), MakeOperation("four", 500, {}, {})}),
      100);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}},
                  {ActionKind::kPrefetch, {0}, 1, {}},
                  {ActionKind::kOffload, {0}, 2, {}},
                  {ActionKind::kPrefetch, {0}, 3, {}}};

  const Prediction prediction = setting.Predict(plan);

  EXPECT_TRUE(prediction.runs());
  EXPECT_EQ(prediction.to_host_bytes, 0);
  EXPECT_EQ(prediction.to_device_bytes, 200);
}

TEST(CostModelTest, OffloadedDeadContentIsCopiedOutButNotBack) {
  // Given scratch memory that each iteration overwrites
  CostSetting setting(
      ProfileOf({Persistent("s", 100)},
                {MakeOperation("fill", 10, {}, {0}), MakeOperation("use", 10, {0}, {}),
                 MakeOperation("rest", 500, {}, {}), MakeOperation("again", 10, {}, {0})}),
      100);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kDrop, {0}, 1, {}}};
  EXPECT_EQ(setting.Predict(plan).to_host_bytes, 0);

  // When it is offloaded instead, as in a live job that cannot know that the content is dead
  setting.problem.is_live = true;
  plan.actions[0].kind = ActionKind::kOffload;
  Timeline timeline;
  const Prediction prediction = setting.Predict(plan, &timeline);

  EXPECT_TRUE(prediction.runs());
  EXPECT_EQ(prediction.to_host_bytes, 100);
  EXPECT_EQ(prediction.to_device_bytes, 0);
  EXPECT_FALSE(ValidatePlan(setting.problem, plan));
  EXPECT_FALSE(ValidateTimeline(setting.problem, plan, timeline));
}

TEST(CostModelTest, WrappingIntervalIsSteadyState) {
  // Given weights that change at the iteration's end and are needed at its beginning
  const CostSetting setting(
      ProfileOf({Persistent("w", 100), Temporary("t", 90)},
                {MakeOperation("use", 10, {0}, {}), MakeOperation("rest", 200, {}, {1}),
                 MakeOperation("update", 10, {0}, {0})}),
      1000);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kPrefetch, {0}, 0, {}}, {ActionKind::kOffload, {0}, 2, {}}};

  const Prediction prediction = setting.Predict(plan);

  // Then each iteration waits for both copies.
  EXPECT_TRUE(prediction.runs());
  EXPECT_EQ(prediction.iteration_ns, 220 + 200);
  EXPECT_EQ(prediction.to_host_bytes, 100);
}

TEST(CostModelTest, RecomputingStepsTakeTimeAndRestoreDroppedBuffers) {
  const CostSetting setting(OneGap(), 110);
  Plan plan = setting.MakePlan();
  plan.steps.insert(plan.steps.begin() + 2, Step{{0}, true, 0});
  plan.actions = {{ActionKind::kDrop, {0}, 0, {}}};
  const Prediction prediction = setting.Predict(plan);
  EXPECT_TRUE(prediction.runs());
  EXPECT_EQ(prediction.iteration_ns, 330);
  EXPECT_EQ(prediction.recompute_ns, 10);
  EXPECT_EQ(prediction.peak_bytes, 101);
}

TEST(CostModelTest, ReadOfADroppedBufferIsMalformed) {
  const CostSetting setting(OneGap(), 1000);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kDrop, {0}, 0, {}}};
  EXPECT_EQ(setting.Predict(plan).verdict, Verdict::kMalformed);
}

TEST(CostModelTest, WorkspaceCountsDuringItsStepAndDecidesTheDuration) {
  CostSetting setting(OneGap(), 1000);
  setting.profile.operations[1].workspaces = {{"small", 0, 300}, {"large", 500, 100}};
  Plan plan = setting.MakePlan();
  plan.steps[1].workspace = 1;
  const Prediction prediction = setting.Predict(plan);
  EXPECT_EQ(prediction.iteration_ns, 120);
  EXPECT_EQ(prediction.peak_bytes, 660);
}

TEST(CostModelTest, PlanWithUnknownIdsIsMalformed) {
  const CostSetting setting(OneGap(), 1000);
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kDrop, {7}, 0, {}}};
  EXPECT_EQ(setting.Predict(plan).verdict, Verdict::kMalformed);
  plan.actions = {{ActionKind::kDrop, {0}, 9, {}}};
  EXPECT_EQ(setting.Predict(plan).verdict, Verdict::kMalformed);
  plan.actions.clear();
  plan.steps.pop_back();
  EXPECT_EQ(setting.Predict(plan).verdict, Verdict::kMalformed);
}

TEST(CostModelTest, TimelineShowsMemoryUseOverTime) {
  const CostSetting setting(OneGap(), 1000);
  Timeline timeline;
  setting.Predict(setting.MakePlan(), &timeline);
  EXPECT_THAT(timeline.used_bytes, ElementsAre(Pair(0, 100), Pair(10, 160), Pair(310, 100),
                                               Pair(310, 101), Pair(320, 1), Pair(320, 0)));
}

// 21 ns to map a piece, 7 to unmap it. A buffer of 100 bytes has two pieces, a smaller one has one.
constexpr MappingPrices kPrices{
    .map_ns = 1, .set_access_ns = 20, .unmap_ns = 7, .piece_bytes = 100};

TEST(CostModelTest, MappingIsHiddenUnlessTheHostWaitedForTheMemory) {
  // Given memory for x and y: both stay mapped
  CostSetting setting(OneGap(), 1000);
  setting.problem.device.mapping = kPrices;
  Timeline timeline;
  EXPECT_EQ(setting.Predict(setting.MakePlan(), &timeline).iteration_ns, 320);
  EXPECT_EQ(timeline.step_start_ns[0], 42);

  // Given x's memory for y: it is free at 110, then unmapped and mapped again
  setting.problem.budget_bytes = 110;
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}}, {ActionKind::kPrefetch, {0}, 2, {}}};
  const Prediction prediction = setting.Predict(plan, &timeline);
  const size_t last = timeline.last_iteration_step();
  EXPECT_EQ(timeline.step_start_ns[last + 1], timeline.to_host.back().end_ns + 14 + 21);
  EXPECT_EQ(timeline.to_device.back().start_ns, timeline.step_end_ns[last + 1] + 7 + 42);
  EXPECT_GT(prediction.stalls.launch_ns, 0);
  EXPECT_FALSE(ValidateTimeline(setting.problem, plan, timeline));
}

TEST(CostModelTest, BuffersEvictedDuringAWaitAreUnmappedMeanwhile) {
  // Given y, which needs the memory of x and z, evicted one after the other
  CostSetting setting(
      ProfileOf({Temporary("x", 50), Temporary("z", 50), Temporary("y", 100)},
                {MakeOperation("make", 10, {}, {0, 1}), MakeOperation("between", 10, {}, {2}),
                 MakeOperation("use", 10, {0, 1}, {})}),
      100);
  setting.problem.device.mapping = kPrices;
  Plan plan = setting.MakePlan();
  plan.actions = {{ActionKind::kOffload, {0}, 0, {}},
                  {ActionKind::kOffload, {1}, 0, {}},
                  {ActionKind::kPrefetch, {0}, 2, {}},
                  {ActionKind::kPrefetch, {1}, 2, {}}};
  Timeline timeline;
  ASSERT_TRUE(setting.Predict(plan, &timeline).runs());

  // Then only the last one's unmapping lies between its end and y's beginning
  const size_t last = timeline.last_iteration_step();
  EXPECT_EQ(timeline.step_start_ns[last + 1], timeline.to_host.back().end_ns + 7 + 42);
  EXPECT_FALSE(ValidateTimeline(setting.problem, plan, timeline));
}

TEST(CostModelTest, DeadBuffersMappingServesTheNextOfItsSize) {
  // Given two buffers that never live together, and memory for one. The second needs a new mapping
  // only where its size differs
  const auto iteration_ns = [](int64_t second_bytes) {
    CostSetting setting(
        ProfileOf({Temporary("x", 100), Temporary("y", second_bytes)},
                  {MakeOperation("one", 10, {}, {0}), MakeOperation("two", 10, {}, {1})}),
        100);
    setting.problem.device.mapping = kPrices;
    return setting.Predict(setting.MakePlan()).iteration_ns;
  };
  EXPECT_EQ(iteration_ns(100), 20);
  EXPECT_EQ(iteration_ns(90), 20 + 14 + 21 + 7 + 42);
}

}  // namespace
}  // namespace spillway::scheduler
