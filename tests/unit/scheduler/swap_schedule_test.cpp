#include "scheduler/plan/swap_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/plan/load_tree.h"
#include "tests/unit/scheduler/make_profile.h"
#include "tests/unit/scheduler/random_problem.h"

namespace spillway::scheduler {
namespace {

// Six operations of 100 ns. `a` and `b` of 100 bytes are idle in the middle. The link moves one
// byte per nanosecond.
struct TwoIdle {
  TwoIdle() {
    profile = testing::ProfileOf(
        {testing::Temporary("a", 100), testing::Temporary("b", 100)},
        {testing::MakeOperation("0", 100, {}, {0}), testing::MakeOperation("1", 100, {}, {1}),
         testing::MakeOperation("2", 100, {}, {}), testing::MakeOperation("3", 100, {}, {}),
         testing::MakeOperation("4", 100, {}, {}), testing::MakeOperation("5", 100, {}, {}),
         testing::MakeOperation("6", 100, {1}, {}), testing::MakeOperation("7", 100, {0}, {})});
    problem.profile = &profile;
    problem.device.to_host_bytes_per_second = problem.device.to_device_bytes_per_second =
        1'000'000'000;
    problem.min_movable_bytes = 1;
    intervals = IdleIntervals(profile, 1);
    order = SwapOrder(intervals);
  }
  IterationProfile profile;
  Problem problem;
  std::vector<IdleInterval> intervals;
  SwapOrder order{{}};
};

TEST(SwapScheduleTest, BufferIsEvictedBetweenItsCopies) {
  TwoIdle two;
  const Timetable timetable(two.problem);
  SwapSchedule schedule(timetable, two.intervals, two.order);

  schedule.Arrange({true, false});

  // Offloaded during operation 1, prefetched during operation 6.
  EXPECT_EQ(schedule.EvictedRangeOf(0).begin, 2);
  EXPECT_EQ(schedule.EvictedRangeOf(0).end, 6);
  EXPECT_EQ(schedule.LoadBytes(), (std::vector<int64_t>{100, 200, 100, 100, 100, 100, 200, 100}));
}

TEST(SwapScheduleTest, CopiesFollowEachOther) {
  TwoIdle two;
  const Timetable timetable(two.problem);
  SwapSchedule schedule(timetable, two.intervals, two.order);

  schedule.Arrange({true, true});

  EXPECT_EQ(schedule.EvictedRangeOf(1).begin, 3);
  EXPECT_EQ(schedule.EvictedRangeOf(1).end, 5);
  EXPECT_EQ(schedule.LoadBytes(), (std::vector<int64_t>{100, 200, 100, 0, 0, 100, 200, 100}));
}

TEST(SwapScheduleTest, WhereComputationWaitsBuffersAreEvictedThroughout) {
  TwoIdle two;
  const Timetable timetable(two.problem);
  SwapSchedule schedule(timetable, two.intervals, two.order, SwapSchedule::Waits::kAsNeeded);

  schedule.Arrange({true, true});

  EXPECT_EQ(schedule.LoadBytes(), (std::vector<int64_t>{100, 100, 0, 0, 0, 0, 100, 100}));
}

TEST(SwapScheduleTest, BufferBeyondTheLinksCapacityIsNeverEvicted) {
  TwoIdle two;
  two.problem.device.to_host_bytes_per_second = 100'000'000;
  const Timetable timetable(two.problem);
  SwapSchedule schedule(timetable, two.intervals, two.order);

  schedule.Arrange({true, false});

  EXPECT_TRUE(schedule.EvictedRangeOf(0).empty());
  EXPECT_EQ(schedule.LoadBytes(), timetable.load_bytes());
}

TEST(LoadTreeTest, AgreesWithAPlainList) {
  testing::Dice dice(7);
  std::vector<int64_t> loads;
  for (int i = 0; i < 37; ++i) loads.push_back(dice.Roll(0, 50));
  LoadTree tree(loads);
  for (int round = 0; round < 500; ++round) {
    const auto begin = static_cast<int32_t>(dice.Roll(0, 73));
    const auto end = static_cast<int32_t>(dice.Roll(begin, std::min(begin + 36, 73)));
    const int64_t change = dice.Roll(-20, 20), limit = dice.Roll(0, 60);
    int64_t highest = INT64_MIN / 2;
    int32_t last_above = -1;
    for (int32_t k = begin; k < end; ++k) {
      int64_t& load = loads[static_cast<size_t>(k % 37)];
      load += change;
      highest = std::max(highest, load);
      if (load > limit) last_above = k;
    }
    tree.Add(begin, end, change);
    if (begin < end) {
      ASSERT_EQ(tree.Max(begin, end).load_bytes, highest);
    }
    ASSERT_EQ(tree.LastAbove(begin, end, limit), last_above);
    ASSERT_EQ(tree.Max().load_bytes, *std::max_element(loads.begin(), loads.end()));
  }
}

}  // namespace
}  // namespace spillway::scheduler
