#include "base/mutex.h"

#include <gtest/gtest.h>

namespace spillway::base {
namespace {

TEST(MutexTest, LocksUpwardsInRank) {
  Mutex making(LockRank::kMaking), state(LockRank::kState);
  for (int round = 0; round < 2; ++round) {
    const MutexLock outer(making);
    const MutexLock inner(state);
  }
}

// Out of the analysis' sight: it would not compile with clang.
void LockDownwards(Mutex& making, Mutex& state)
    SPILLWAY_THREAD_ANNOTATION(no_thread_safety_analysis) {
  state.Lock();
  making.Lock();
}

TEST(MutexDeathTest, LockingDownwardsInRankEndsACheckedBuild) {
  Mutex making(LockRank::kMaking), state(LockRank::kState);
  EXPECT_DEATH(LockDownwards(making, state), "");
}

TEST(MutexTest, TryLockTakesAFreeOne) {
  Mutex mutex(LockRank::kState);
  const bool taken = mutex.TryLock();
  if (taken) mutex.Unlock();
  EXPECT_TRUE(taken);
}

}  // namespace
}  // namespace spillway::base
