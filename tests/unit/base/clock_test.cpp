#include "base/clock.h"

#include <gtest/gtest.h>

namespace spillway::base {
namespace {

TEST(ClockTest, CountsNanoseconds) {
  EXPECT_EQ(NanosOf({.tv_sec = 3, .tv_nsec = 7}), 3'000'000'007);
  EXPECT_EQ(NanosOf({.tv_sec = 9'000'000'000, .tv_nsec = 0}), 9'000'000'000'000'000'000);
}

TEST(ClockTest, NeverRunsBackwards) {
  const std::uint64_t before = MonotonicNs();
  EXPECT_LE(before, MonotonicNs());
}

TEST(ClockTest, ReportsTheTimeSince1970) { EXPECT_EQ(RealtimeNs() / 1'000'000'000'000'000'000, 1); }

}  // namespace
}  // namespace spillway::base
