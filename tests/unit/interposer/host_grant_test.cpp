// Granted host memory, with a pool from which nothing is taken.
#include "interposer/execute/residency/host_grant.h"

#include <gtest/gtest.h>

#include <limits>

namespace spillway::interposer {
namespace {

constexpr size_t kBlock = size_t{2} << 20;
constexpr size_t kMostBytes = size_t{1} << 50;

struct HostGrantTest : testing::Test {
  JobLocks locks;
  Counters counters;
  CallCounts calls;
  BudgetAccount budget{4 * kBlock, &locks, &counters, &calls};
  Timeline timeline;
  HostPool pool{0, 8 * kBlock, false, &timeline};
  PointerSafety pointer_safety{ParkChoice::kOff, false};
  HostGrant grant{8 * kBlock,
                  {.locks = &locks,
                   .counters = &counters,
                   .calls = &calls,
                   .budget = &budget,
                   .pool = &pool,
                   .pointer_safety = &pointer_safety}};
};

TEST_F(HostGrantTest, WithinTheBudgetNoHostMemoryIsNeeded) {
  const StateLock lock(locks);
  grant.SetLimit(0);
  budget.Want(3 * kBlock);

  EXPECT_TRUE(grant.HasRoomFor(kBlock));
  EXPECT_FALSE(grant.Lacks(kBlock));
}

TEST_F(HostGrantTest, BeyondTheBudgetItCoversEvictedMemoryAndTwoLargestInTransit) {
  const StateLock lock(locks);
  grant.NoteLargest(kBlock);
  budget.Want(10 * kBlock - 1);  // 8 blocks: 6 evicted, 2 in transit

  EXPECT_TRUE(grant.HasRoomFor(1));
  EXPECT_FALSE(grant.HasRoomFor(kBlock));
}

TEST_F(HostGrantTest, LimitNeverExceedsTheLaunchers) {
  const StateLock lock(locks);
  grant.SetLimit(100 * kBlock);

  EXPECT_EQ(grant.MayHoldBytes(), 8 * kBlock);
}

TEST_F(HostGrantTest, ImpossibleLimitIsClamped) {
  HostGrant boundless(std::numeric_limits<size_t>::max(), {.locks = &locks,
                                                           .counters = &counters,
                                                           .calls = &calls,
                                                           .budget = &budget,
                                                           .pool = &pool,
                                                           .pointer_safety = &pointer_safety});
  const StateLock lock(locks);

  EXPECT_EQ(boundless.MayHoldBytes(), kMostBytes);
}

TEST_F(HostGrantTest, LacksWhatOnlyTheLauncherAllows) {
  const StateLock lock(locks);
  grant.SetLimit(kBlock);
  budget.Want(4 * kBlock);

  EXPECT_TRUE(grant.Lacks(kBlock));
  EXPECT_FALSE(grant.Lacks(8 * kBlock));  // more than the launcher's limit
}

TEST_F(HostGrantTest, NeedIsComputedWithoutTheGrant) {
  const StateLock lock(locks);
  grant.NoteLargest(2 * kBlock);
  budget.Want(3 * kBlock);
  grant.UpdateLimits();
  counters.wanted_bytes = 0;
  grant.UpdateLimits();

  EXPECT_EQ(grant.need_bytes(), 7 * kBlock);
}

TEST_F(HostGrantTest, AJobThatMayHaveToLeaveAsksForSlabsForAllItsMemory) {
  HostSlabs& slabs = HostSlabs::Instance();
  const StateLock lock(locks);
  grant.NoteLargest(kBlock);
  budget.Want(3 * kBlock);
  grant.UpdateLimits();
  EXPECT_EQ(slabs.MissingBytes(0), 0u) << "all of it fits the budget";

  grant.ExpectAllToLeave(true);
  EXPECT_EQ(slabs.MissingBytes(0), 5 * kBlock);
  grant.SetLimit(2 * kBlock);
  grant.UpdateLimits();
  EXPECT_EQ(slabs.MissingBytes(0), 2 * kBlock) << "no more than is granted";
  grant.ExpectAllToLeave(false);
  EXPECT_EQ(slabs.MissingBytes(0), 0u);
}

TEST_F(HostGrantTest, OnlyTheFirstAllocationWaitsInVain) {
  {
    const StateLock lock(locks);
    grant.SetLimit(0);
    budget.Want(4 * kBlock);
  }

  grant.Await(kBlock);  // until it times out

  // Then the agent knows the wanted memory, and the next allocation does not wait
  const StateLock lock(locks);
  EXPECT_EQ(counters.wanted_peak_bytes, 5 * kBlock);
  EXPECT_TRUE(grant.Lacks(kBlock));
}

}  // namespace
}  // namespace spillway::interposer
