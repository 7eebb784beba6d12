// Operations that touch more than the budget: what the planner leaves out of them.
#include "scheduler/plan/oversized_operations.h"

#include <gtest/gtest.h>

#include <utility>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/recompute_chain.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::scheduler {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr BufferId kWeight{0}, kMomentum{1}, kGradient{2}, kSmall{3};

// The forward and backward pass touch the weight; the last operation updates it.
IterationProfile Training() {
  IterationProfile profile;
  const auto add = [&](const char* name, int64_t bytes, bool persistent) {
    profile.buffers.push_back(
        {.name = name, .size_bytes = bytes, .born = {1}, .dies = {2}, .persistent = persistent});
  };
  add("weight", 8 * kMiB, true);
  add("momentum", 8 * kMiB, true);
  add("gradient", 8 * kMiB, false);
  add("small", kMiB / 2, true);
  const auto runs = [&](const char* name, std::vector<BufferId> reads,
                        std::vector<BufferId> writes) {
    Operation operation;
    operation.name = name;
    operation.reads = std::move(reads);
    operation.writes = std::move(writes);
    operation.duration_ns = 100;
    operation.replayable = true;
    profile.operations.push_back(operation);
  };
  runs("forward", {kWeight}, {});
  runs("backward", {kWeight}, {kGradient});
  runs("update", {kGradient, kWeight, kMomentum, kSmall}, {kWeight, kMomentum});
  return profile;
}

Problem Within(const IterationProfile& profile, int64_t budget_bytes) {
  DeviceModel device;
  device.to_device_bytes_per_second = 8'000 * kMiB;
  device.to_host_bytes_per_second = 4'000 * kMiB;
  device.chunk_bytes = kMiB / 2;
  device.slab_unit_bytes = kMiB / 2;
  return {.profile = &profile, .device = device, .budget_bytes = budget_bytes, .is_live = true};
}

TEST(OversizedOperationsTest, NothingIsLeftOutOfWhatFits) {
  const IterationProfile profile = Training();
  EXPECT_FALSE(WithoutExcess(Within(profile, 24 * kMiB + kMiB / 2)));
}

TEST(OversizedOperationsTest, WhatOtherOperationsTouchTooIsLeftOutFirst) {
  // Given an update that exceeds the budget by a byte
  const IterationProfile profile = Training();
  const auto less = WithoutExcess(Within(profile, 24 * kMiB + kMiB / 2 - 1));
  // Then it leaves out the gradient, and pays for its way over the link
  ASSERT_TRUE(less);
  const Operation& update = less->operations[2];
  EXPECT_EQ(update.reads, (std::vector<BufferId>{kWeight, kMomentum, kSmall}));
  EXPECT_EQ(update.writes, (std::vector<BufferId>{kWeight, kMomentum}));
  EXPECT_EQ(update.duration_ns, 100 + 1'000'000);
  EXPECT_FALSE(update.replayable);
  EXPECT_EQ(less->operations[1], profile.operations[1]);
  EXPECT_EQ(less->buffers, profile.buffers);
}

TEST(OversizedOperationsTest, AsMuchIsLeftOutAsMustBe) {
  const IterationProfile profile = Training();
  const auto less = WithoutExcess(Within(profile, 16 * kMiB));
  ASSERT_TRUE(less);
  const Operation& update = less->operations[2];
  EXPECT_EQ(update.reads, (std::vector<BufferId>{kMomentum, kSmall}));
  EXPECT_EQ(update.writes, (std::vector<BufferId>{kMomentum}));
  EXPECT_EQ(update.duration_ns, 100 + 2 * 1'000'000 + 2'000'000) << "the weight also goes back";
}

// The backward pass makes the gradient: without that touch it would have no content.
TEST(OversizedOperationsTest, FirstTouchOfAMadeBufferStays) {
  const IterationProfile profile = Training();
  const auto less = WithoutExcess(Within(profile, 12 * kMiB));
  ASSERT_TRUE(less);
  EXPECT_EQ(less->operations[1].writes, (std::vector<BufferId>{kGradient}));
  EXPECT_TRUE(less->operations[1].reads.empty());
  EXPECT_FALSE(WithoutExcess(Within(profile, 8 * kMiB))) << "with what may not move";
}

// As the header says: "then those that are only read". A written one crosses the link twice.
TEST(OversizedOperationsTest, WhatIsOnlyReadIsLeftOutBeforeALargerWrittenOne) {
  IterationProfile profile = Training();
  profile.buffers[At(kWeight)].size_bytes = 9 * kMiB;
  const auto less = WithoutExcess(Within(profile, 25 * kMiB + kMiB / 2 - 1));
  ASSERT_TRUE(less);
  EXPECT_EQ(less->operations[2].reads, (std::vector<BufferId>{kWeight, kMomentum, kSmall}));
}

// A workspace (a buffer that lives for one operation) is no touch (iteration_pattern.h, 6), but
// takes memory.
TEST(OversizedOperationsTest, WorkspaceTakesRoomToo) {
  IterationProfile profile = Training();
  profile.buffers.push_back(
      {.name = "workspace", .size_bytes = 8 * kMiB, .born = {2}, .dies = {2}});
  EXPECT_TRUE(WithoutExcess(Within(profile, 24 * kMiB + kMiB / 2)))
      << "touches take all, and the workspace 8 MiB more";
  const Problem whole = Within(profile, 20 * kMiB);
  const auto less = WithoutExcess(whole);
  ASSERT_TRUE(less);
  Problem problem = whole;
  problem.profile = &*less;
  EXPECT_TRUE(FindStrategy(kDefaultStrategy)->MakeRunnablePlan(problem).plan) << "12 MiB fit";
}

// The gradient's last touch is left out, so its content looks dead after the backward pass. But the
// update reads it: dropped, it would have to be recomputed on demand, which the plan prices nowhere.
TEST(OversizedOperationsTest, WhatIsReadOverTheLinkIsNotDroppedBefore) {
  IterationProfile profile = Training();
  profile.buffers[At(kMomentum)].size_bytes = 16 * kMiB;
  const Problem whole = Within(profile, 17 * kMiB);
  const auto less = WithoutExcess(whole);
  ASSERT_TRUE(less);
  Problem problem = whole;
  problem.profile = &*less;
  for (const IdleInterval& interval : IdleIntervals(*less, kMiB)) {
    if (interval.buffer != kGradient) continue;
    EXPECT_FALSE(RecomputeChains(problem).IsRecomputableUntilFree(interval));
  }
  for (const Strategy* strategy : AllStrategies()) {
    const auto made = strategy->MakeRunnablePlan(problem);
    if (!made.plan) continue;
    for (const Action& action : made.plan->actions)
      EXPECT_FALSE(action.kind == ActionKind::kDrop && action.buffer == kGradient)
          << strategy->name() << " after step " << action.step;
  }
}

// The operation itself keeps the link busy: no prefetch hides behind that time.
TEST(OversizedOperationsTest, LinkDoesNotCarryTwiceItsRate) {
  constexpr BufferId kFirst{0}, kBoth{1};
  IterationProfile profile;
  for (const int64_t mib : {32, 40, 8}) {
    profile.buffers.emplace_back().size_bytes = mib * kMiB;
    profile.buffers.back().persistent = true;
  }
  for (const std::vector<BufferId>& reads :
       {std::vector<BufferId>{kFirst}, {kBoth}, {kBoth, BufferId{2}}}) {
    profile.operations.emplace_back().reads = reads;
    profile.operations.back().duration_ns = 100;
  }
  const Problem whole = Within(profile, 41 * kMiB);
  const auto less = WithoutExcess(whole);
  ASSERT_TRUE(less);
  ASSERT_EQ(less->operations[2].reads, std::vector<BufferId>{BufferId{2}}) << "40 MiB over the link";
  Problem problem = whole;
  problem.profile = &*less;
  const auto made = FindStrategy(kDefaultStrategy)->MakeRunnablePlan(problem);
  ASSERT_TRUE(made.plan) << made.plan.text();
  const Prediction prediction = CostModel(problem).Predict(*made.plan);
  const int64_t over_link_mib = prediction.to_device_bytes / kMiB + 40;
  EXPECT_GE(prediction.iteration_ns, over_link_mib * 1'000'000 / 8) << over_link_mib;
}

}  // namespace
}  // namespace spillway::scheduler
