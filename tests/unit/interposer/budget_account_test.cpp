// A job's budget, with counters only.
#include "interposer/execute/state/budget_account.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/clock.h"

namespace spillway::interposer {
namespace {

constexpr size_t kGranule = size_t{2} << 20;

struct BudgetAccountTest : testing::Test {
  JobLocks locks;
  Counters counters;
  CallCounts calls;
  BudgetAccount budget{4 * kGranule + 1, &locks, &counters, &calls};
};

TEST_F(BudgetAccountTest, IsRoundedToGranules) { EXPECT_EQ(budget.bytes(), 4 * kGranule); }

TEST_F(BudgetAccountTest, EqualBudgetCountsAsNoChange) {
  const StateLock lock(locks);
  budget.Set(2 * kGranule, 0);
  budget.Set(2 * kGranule + 5, 0);

  EXPECT_EQ(budget.bytes(), 2 * kGranule);
  EXPECT_EQ(counters.budget_changes, 1u);
}

TEST_F(BudgetAccountTest, TracksThePeakOfWantedMemory) {
  const StateLock lock(locks);
  budget.Want(300);
  counters.wanted_bytes -= 200;
  budget.Want(50);

  EXPECT_EQ(counters.wanted_bytes, 150u);
  EXPECT_EQ(counters.wanted_peak_bytes, 300u);
}

TEST_F(BudgetAccountTest, FixedBudgetIsNotAwaited) {
  bool is_asked = false;

  budget.Await([&] { return is_asked = true; });

  EXPECT_FALSE(is_asked);
  EXPECT_EQ(counters.stall_ns, 0u);
}

TEST_F(BudgetAccountTest, HeldBudgetIsAwaitedUntilItFits) {
  // Given a budget that is held for ever
  {
    const StateLock lock(locks);
    budget.Set(kGranule, std::numeric_limits<std::uint64_t>::max());
  }
  EXPECT_TRUE(budget.IsHeld());

  // When a thread waits for more, which is there at the third query
  int asked = 0;
  int seen_waiting = 0;
  budget.Await([&] {
    seen_waiting = calls.for_memory.load();
    return ++asked == 3;
  });

  // Then it counts as a stall for new memory, and as a call in progress meanwhile
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(seen_waiting, 1);
  EXPECT_EQ(calls.for_memory.load(), 0);
  EXPECT_GT(counters.stall_ns_by_cause[static_cast<size_t>(StallCause::kNoMemory)], 0u);
}

TEST_F(BudgetAccountTest, HoldEndsByItself) {
  {
    const StateLock lock(locks);
    budget.Set(kGranule, base::MonotonicNs() + 1'000'000);
  }

  budget.Await([] { return false; });

  EXPECT_FALSE(budget.IsHeld());
}

}  // namespace
}  // namespace spillway::interposer
