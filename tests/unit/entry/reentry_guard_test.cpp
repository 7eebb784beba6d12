#include "interposer/entry/reentry_guard.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace spillway::entry {
namespace {

TEST(ReentryGuardTest, OnlyTheFirstOfNestedGuardsIsOutermost) {
  {
    const ReentryGuard outer;
    EXPECT_TRUE(outer.IsOutermost());
    {
      const ReentryGuard inner;
      EXPECT_FALSE(inner.IsOutermost());
    }
    const ReentryGuard after_inner;
    EXPECT_FALSE(after_inner.IsOutermost());
  }
  const ReentryGuard next_call;
  EXPECT_TRUE(next_call.IsOutermost());
}

TEST(ReentryGuardTest, ThreadsDoNotSeeEachOthersGuards) {
  const ReentryGuard here;
  bool outermost_there = false;
  std::thread([&] { outermost_there = ReentryGuard().IsOutermost(); }).join();
  EXPECT_TRUE(outermost_there);
}

TEST(ReentryGuardTest, NoGuardIsOutermostOnceEverythingIsForwarded) {
  const pid_t child = fork();  // in a child: ForwardEverything cannot be undone
  if (child == 0) {
    ForwardEverything();
    _exit(ReentryGuard().IsOutermost() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace spillway::entry
