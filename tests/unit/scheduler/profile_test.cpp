#include "scheduler/trace/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::operation;
using testing::persistent;
using testing::profile_of;
using testing::temporary;

// x is made from the weights, rests during one operation, and is read again; then the weights change.
IterationProfile three_operations() {
  return profile_of({persistent("w", 10), temporary("x", 100), temporary("y", 40)},
                    {operation("make", 5, {0}, {1}), operation("use", 5, {1}, {2}),
                     operation("other", 5, {2}, {2}), operation("last", 5, {1}, {0})});
}

std::string complaint_about(const IterationProfile& profile) {
  return check_profile(profile).value_or("none");
}

TEST(ProfileTest, LifetimesAreFromFirstToLastTouch) {
  const IterationProfile profile = three_operations();
  EXPECT_EQ(profile.buffers[1].born, OperationId{0});
  EXPECT_EQ(profile.buffers[1].dies, OperationId{3});
  EXPECT_EQ(profile.buffers[2].born, OperationId{1});
  EXPECT_EQ(complaint_about(profile), "none");
}

TEST(ProfileTest, LiveBytesCountPersistentBuffersAlways) {
  EXPECT_THAT(live_bytes_by_operation(three_operations()), ElementsAre(110, 150, 150, 110));
  EXPECT_EQ(peak_bytes(three_operations()), 150);
  EXPECT_EQ(busy_ns(three_operations()), 20);
}

TEST(ProfileTest, IdleIntervalsWrapForPersistentBuffersOnly) {
  const std::vector<IdleInterval> intervals = idle_intervals(three_operations(), 1);
  EXPECT_THAT(intervals, ElementsAre(IdleInterval{{0}, {0}, {3}, false, true},
                                     IdleInterval{{1}, {1}, {3}, false, false}));
}

TEST(ProfileTest, AnIntervalThatEndsInAnOverwriteHasDeadContent) {
  IterationProfile profile = three_operations();
  profile.operations[3].reads.push_back({0});
  EXPECT_FALSE(idle_intervals(profile, 1)[0].content_dead);
}

TEST(ProfileTest, SmallAndUnmovableBuffersHaveNoIdleIntervals) {
  IterationProfile profile = three_operations();
  EXPECT_EQ(idle_intervals(profile, 50).size(), 1u);
  profile.buffers[1].movable = false;
  EXPECT_EQ(idle_intervals(profile, 50).size(), 0u);
}

TEST(ProfileTest, RefusesSizesThatAreNotPositiveOrTooLarge) {
  IterationProfile profile = three_operations();
  profile.buffers[1].size_bytes = -1;
  EXPECT_THAT(complaint_about(profile), HasSubstr("no positive size"));
  profile.buffers[1].size_bytes = kMostBytes;
  EXPECT_THAT(complaint_about(profile), HasSubstr("2^50"));
}

TEST(ProfileTest, RefusesLifetimesThatEndBeforeTheyBegin) {
  IterationProfile profile = three_operations();
  std::swap(profile.buffers[1].born, profile.buffers[1].dies);
  EXPECT_THAT(complaint_about(profile), HasSubstr("dies before it is born"));
  profile.buffers[1].dies = {4};
  EXPECT_THAT(complaint_about(profile), HasSubstr("does not exist"));
}

TEST(ProfileTest, RefusesTouchesOfUnknownOrDeadBuffersAndTouchesNamedTwice) {
  IterationProfile profile = three_operations();
  profile.operations[1].reads[0] = {3};
  EXPECT_THAT(complaint_about(profile), HasSubstr("does not exist"));
  profile = three_operations();
  profile.operations[3].reads.push_back({2});
  EXPECT_THAT(complaint_about(profile), HasSubstr("outside its lifetime"));
  profile = three_operations();
  profile.operations[1].reads.push_back({1});
  EXPECT_THAT(complaint_about(profile), HasSubstr("twice"));
}

TEST(ProfileTest, RefusesAReadOfWhatWasNeverWritten) {
  IterationProfile profile = three_operations();
  profile.operations[0].writes.clear();
  EXPECT_THAT(complaint_about(profile), HasSubstr("before it is written"));
}

TEST(ProfileTest, RefusesNegativeDurationsAndSumsThatOverflow) {
  IterationProfile profile = three_operations();
  profile.operations[0].duration_ns = -1;
  EXPECT_THAT(complaint_about(profile), HasSubstr("negative duration"));
  profile.operations[0].duration_ns = kMostNanos;
  EXPECT_THAT(complaint_about(profile), HasSubstr("2^55"));
  profile = three_operations();
  profile.operations[0].workspaces = {{"greedy", -8, 1}};
  EXPECT_THAT(complaint_about(profile), HasSubstr("impossible size"));
}

}  // namespace
}  // namespace spillway::scheduler
