// Operations that touch more than the budget: what the planner leaves out of them.
#include "scheduler/plan/oversized_operations.h"

#include <gtest/gtest.h>

#include <utility>

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
  EXPECT_FALSE(WithinBudget(Within(profile, 24 * kMiB + kMiB / 2)));
}

TEST(OversizedOperationsTest, WhatOtherOperationsTouchTooIsLeftOutFirst) {
  const IterationProfile profile = Training();
  const auto less = WithinBudget(Within(profile, 24 * kMiB + kMiB / 2 - 1));
  ASSERT_TRUE(less);
  const Operation& update = less->operations[2];
  EXPECT_EQ(update.reads, (std::vector<BufferId>{kWeight, kMomentum, kSmall}));
  EXPECT_EQ(update.writes, (std::vector<BufferId>{kWeight, kMomentum}));
  EXPECT_FALSE(update.replayable);
  EXPECT_EQ(less->operations[1], profile.operations[1]);
  EXPECT_EQ(less->buffers[At(kGradient)].dies.index, 1) << "its last other touch";
  EXPECT_EQ(less->buffers[At(kWeight)], profile.buffers[At(kWeight)]);
}

TEST(OversizedOperationsTest, AsMuchIsLeftOutAsMustBe) {
  const IterationProfile profile = Training();
  const auto less = WithinBudget(Within(profile, 16 * kMiB));
  ASSERT_TRUE(less);
  const Operation& update = less->operations[2];
  EXPECT_EQ(update.reads, (std::vector<BufferId>{kMomentum, kSmall}));
  EXPECT_EQ(update.writes, (std::vector<BufferId>{kMomentum}));
  EXPECT_EQ(update.duration_ns, 100) << "it was measured so";
}

// The backward pass makes the gradient: without that touch it would have no content.
TEST(OversizedOperationsTest, FirstTouchOfAMadeBufferStays) {
  const IterationProfile profile = Training();
  const auto less = WithinBudget(Within(profile, 12 * kMiB));
  ASSERT_TRUE(less);
  EXPECT_EQ(less->operations[1].writes, (std::vector<BufferId>{kGradient}));
  EXPECT_TRUE(less->operations[1].reads.empty());
  EXPECT_FALSE(WithinBudget(Within(profile, 8 * kMiB))) << "with what may not move";
}

// A workspace is no touch (iteration_pattern.h, 6), but takes memory.
TEST(OversizedOperationsTest, WorkspaceTakesRoomToo) {
  IterationProfile profile = Training();
  profile.buffers.push_back(
      {.name = "workspace", .size_bytes = 8 * kMiB, .born = {2}, .dies = {2}});
  EXPECT_TRUE(WithinBudget(Within(profile, 24 * kMiB + kMiB / 2)))
      << "touches take all, and the workspace 8 MiB more";
  const auto less = WithinBudget(Within(profile, 20 * kMiB));
  ASSERT_TRUE(less);
  EXPECT_EQ(less->operations[2].reads, (std::vector<BufferId>{kMomentum, kSmall})) << "12 MiB";
}

// The gradient's content looks dead after the backward pass, but the update reads it. Dropped, it
// would be recomputed on demand, which the plan prices nowhere.
TEST(OversizedOperationsTest, WhatIsReadOverTheLinkIsNotDroppedBefore) {
  IterationProfile profile = Training();
  profile.buffers[At(kMomentum)].size_bytes = 16 * kMiB;
  const Problem whole = Within(profile, 17 * kMiB);
  const auto less = WithinBudget(whole);
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

}  // namespace
}  // namespace spillway::scheduler
