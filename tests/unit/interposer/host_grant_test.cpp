// Host memory as granted, with a pool from which nothing is taken.
#include "interposer/execute/host_grant.h"

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

TEST_F(HostGrantTest, BeyondItThereIsRoomForWhatIsAwayAndTwoOfTheLargestOnTheirWay) {
  const StateLock lock(locks);
  grant.NoteLargest(kBlock);
  budget.Want(10 * kBlock - 1);  // of 8 blocks: 6 away, 2 on their way

  EXPECT_TRUE(grant.HasRoomFor(1));
  EXPECT_FALSE(grant.HasRoomFor(kBlock));
}

TEST_F(HostGrantTest, TheLimitIsNeverMoreThanTheLauncherAllows) {
  const StateLock lock(locks);
  grant.SetLimit(100 * kBlock);

  EXPECT_EQ(grant.MayHoldBytes(), 8 * kBlock);
}

TEST_F(HostGrantTest, ALimitThatCannotBeIsANumberThatCan) {
  HostGrant boundless(std::numeric_limits<size_t>::max(), {.locks = &locks,
                                                           .counters = &counters,
                                                           .calls = &calls,
                                                           .budget = &budget,
                                                           .pool = &pool,
                                                           .pointer_safety = &pointer_safety});
  const StateLock lock(locks);

  EXPECT_EQ(boundless.MayHoldBytes(), kMostBytes);
}

TEST_F(HostGrantTest, LacksWhatTheLauncherAllowsAndTheAgentDoesNot) {
  const StateLock lock(locks);
  grant.SetLimit(kBlock);
  budget.Want(4 * kBlock);

  EXPECT_TRUE(grant.Lacks(kBlock));
  EXPECT_FALSE(grant.Lacks(8 * kBlock));  // not even the launcher allows that
}

TEST_F(HostGrantTest, TheNeedIsWhatThereWouldBeWithoutABudget) {
  const StateLock lock(locks);
  grant.NoteLargest(2 * kBlock);
  budget.Want(3 * kBlock);
  grant.UpdateLimits();
  counters.wanted_bytes = 0;
  grant.UpdateLimits();

  EXPECT_EQ(grant.need_bytes(), 7 * kBlock);
}

TEST_F(HostGrantTest, AnAllocationWaitsInVainOnlyOnce) {
  {
    const StateLock lock(locks);
    grant.SetLimit(0);
    budget.Want(4 * kBlock);
  }

  grant.Await(kBlock);  // until its patience ends

  // Then what it wanted is known to the agent, and the next one does not wait
  const StateLock lock(locks);
  EXPECT_EQ(counters.wanted_peak_bytes, 5 * kBlock);
  EXPECT_TRUE(grant.Lacks(kBlock));
}

}  // namespace
}  // namespace spillway::interposer
