#include "scheduler/trace/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

// x is made from the weights and is read again. Then the weights change.
IterationProfile ThreeOperations() {
  return ProfileOf({Persistent("w", 10), Temporary("x", 100), Temporary("y", 40)},
                   {MakeOperation("make", 5, {0}, {1}), MakeOperation("use", 5, {1}, {2}),
                    MakeOperation("other", 5, {2}, {2}), MakeOperation("last", 5, {1}, {0})});
}

std::string ComplaintAbout(const IterationProfile& profile) { return CheckProfile(profile).text(); }

TEST(ProfileTest, LifetimesAreFromFirstToLastTouch) {
  const IterationProfile profile = ThreeOperations();
  EXPECT_EQ(profile.buffers[1].born, OperationId{0});
  EXPECT_EQ(profile.buffers[1].dies, OperationId{3});
  EXPECT_EQ(profile.buffers[2].born, OperationId{1});
  EXPECT_EQ(ComplaintAbout(profile), "");
}

TEST(ProfileTest, LiveBytesAlwaysIncludePersistentBuffers) {
  EXPECT_THAT(LiveBytesByOperation(ThreeOperations()), ElementsAre(110, 150, 150, 110));
  EXPECT_EQ(PeakBytes(ThreeOperations()), 150);
  EXPECT_EQ(BusyNs(ThreeOperations()), 20);
}

TEST(ProfileTest, IdleIntervalsWrapForPersistentBuffersOnly) {
  const std::vector<IdleInterval> intervals = IdleIntervals(ThreeOperations(), 1);
  EXPECT_THAT(intervals, ElementsAre(IdleInterval{{0}, {0}, {3}, false, true},
                                     IdleInterval{{1}, {1}, {3}, false, false}));
}

TEST(ProfileTest, IntervalThatEndsInAnOverwriteHasDeadContent) {
  IterationProfile profile = ThreeOperations();
  profile.operations[3].reads.push_back({0});
  EXPECT_FALSE(IdleIntervals(profile, 1)[0].content_dead);
}

TEST(ProfileTest, LateFreedBufferIsIdleUntilItsFree) {
  // Given a buffer with its last touch by "other" and its free after "last", the profile's end
  IterationProfile profile = ThreeOperations();
  profile.buffers[2].dies = {3};
  // Then it has an interval up to the free, with dead content
  EXPECT_EQ(IdleIntervals(profile, 1).back(), (IdleInterval{{2}, {2}, {4}, false, true}));
  // But not where it continues into the next iteration
  profile.buffers[2].handed_on = true;
  EXPECT_EQ(IdleIntervals(profile, 1).back().buffer, BufferId{1});
}

TEST(ProfileTest, SmallAndUnmovableBuffersHaveNoIdleIntervals) {
  IterationProfile profile = ThreeOperations();
  EXPECT_EQ(IdleIntervals(profile, 50).size(), 1u);
  profile.buffers[1].movable = false;
  EXPECT_EQ(IdleIntervals(profile, 50).size(), 0u);
}

TEST(ProfileTest, RefusesSizesThatAreNotPositiveOrTooLarge) {
  IterationProfile profile = ThreeOperations();
  profile.buffers[1].size_bytes = -1;
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("no positive size"));
  profile.buffers[1].size_bytes = kMostBytes;
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("2^50"));
}

TEST(ProfileTest, RefusesLifetimesThatEndBeforeTheyBegin) {
  IterationProfile profile = ThreeOperations();
  std::swap(profile.buffers[1].born, profile.buffers[1].dies);
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("dies before it is born"));
  profile.buffers[1].dies = {4};
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("does not exist"));
}

TEST(ProfileTest, RefusesTouchesOfUnknownOrDeadBuffersAndDuplicateTouches) {
  IterationProfile profile = ThreeOperations();
  profile.operations[1].reads[0] = {3};
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("does not exist"));
  profile = ThreeOperations();
  profile.operations[3].reads.push_back({2});
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("outside its lifetime"));
  profile = ThreeOperations();
  profile.operations[1].reads.push_back({1});
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("twice"));
}

TEST(ProfileTest, RefusesReadsOfUnwrittenBuffers) {
  IterationProfile profile = ThreeOperations();
  profile.operations[0].writes.clear();
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("before it is written"));
}

TEST(ProfileTest, RefusesNegativeDurationsAndSumsThatOverflow) {
  IterationProfile profile = ThreeOperations();
  profile.operations[0].duration_ns = -1;
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("negative duration"));
  profile.operations[0].duration_ns = kMostNanos;
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("2^55"));
  profile = ThreeOperations();
  profile.operations[0].workspaces = {{"greedy", -8, 1}};
  EXPECT_THAT(ComplaintAbout(profile), HasSubstr("impossible size"));
}

}  // namespace
}  // namespace spillway::scheduler
