#include "scheduler/learn/drift_monitor.h"

#include <gtest/gtest.h>

namespace spillway::scheduler {
namespace {

DriftVerdict Last(DriftMonitor* monitor, int times, int64_t measured_ns, int64_t misses) {
  DriftVerdict verdict = DriftVerdict::kKeep;
  for (int i = 0; i < times; ++i) verdict = monitor->Add(measured_ns, misses);
  return verdict;
}

TEST(DriftMonitorTest, KeepsAPlanWithThePredictedTimes) {
  DriftMonitor monitor(1000, 1'000'000);
  EXPECT_EQ(Last(&monitor, 100, 1'090'000, 40), DriftVerdict::kKeep);
  EXPECT_EQ(Last(&monitor, 100, 910'000, 0), DriftVerdict::kKeep);
}

TEST(DriftMonitorTest, ReplansAfterEightIterationsOfAnotherDuration) {
  DriftMonitor slower(1000, 1'000'000), faster(1000, 1'000'000);
  EXPECT_EQ(Last(&slower, 7, 1'200'000, 0), DriftVerdict::kKeep);
  EXPECT_EQ(slower.Add(1'200'000, 0), DriftVerdict::kReplan);
  EXPECT_EQ(Last(&faster, 8, 800'000, 0), DriftVerdict::kReplan);
}

TEST(DriftMonitorTest, OneIterationAsPredictedResetsTheCount) {
  DriftMonitor monitor(1000, 1'000'000);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Last(&monitor, 7, 2'000'000, 0), DriftVerdict::kKeep);
    EXPECT_EQ(monitor.Add(1'000'000, 0), DriftVerdict::kKeep);
  }
}

TEST(DriftMonitorTest, RelearnsAfterThreeUnknownIterations) {
  DriftMonitor monitor(1000, 1'000'000);
  EXPECT_EQ(Last(&monitor, 2, 1'000'000, 51), DriftVerdict::kKeep);
  EXPECT_EQ(monitor.Add(1'000'000, 51), DriftVerdict::kRelearn);
}

TEST(DriftMonitorTest, IterationWithOtherEventsIsNotTimed) {
  // Given an evaluation among iterations that all take too long
  DriftMonitor monitor(1000, 1'000'000);
  EXPECT_EQ(Last(&monitor, 7, 1'200'000, 0), DriftVerdict::kKeep);
  EXPECT_EQ(monitor.Add(300'000, 600), DriftVerdict::kKeep);
  EXPECT_EQ(monitor.Add(1'200'000, 0), DriftVerdict::kReplan);
}

TEST(DriftMonitorTest, VerdictResetsTheMonitor) {
  DriftMonitor monitor(1000, 1'000'000);
  EXPECT_EQ(Last(&monitor, 8, 1'200'000, 0), DriftVerdict::kReplan);
  EXPECT_EQ(Last(&monitor, 7, 1'200'000, 0), DriftVerdict::kKeep);
}

}  // namespace
}  // namespace spillway::scheduler
