// Operations that touch more than the budget: what the planner leaves out of them.
#include "scheduler/plan/oversized_operations.h"

#include <gtest/gtest.h>

#include <utility>

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

}  // namespace
}  // namespace spillway::scheduler
