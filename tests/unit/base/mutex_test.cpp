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

// Excluded from clang's thread-safety analysis, which would refuse to compile it.
void LockDownwards(Mutex& making, Mutex& state)
    SPILLWAY_THREAD_ANNOTATION(no_thread_safety_analysis) {
  state.Lock();
  making.Lock();
}

TEST(MutexDeathTest, LockingDownwardsInRankEndsACheckedBuild) {
  Mutex making(LockRank::kMaking), state(LockRank::kState);
  EXPECT_DEATH(LockDownwards(making, state), "");
}

TEST(MutexTest, TryLockTakesAFreeMutex) {
  Mutex mutex(LockRank::kState);
  const bool taken = mutex.TryLock();
  if (taken) mutex.Unlock();
  EXPECT_TRUE(taken);
}

}  // namespace
}  // namespace spillway::base
