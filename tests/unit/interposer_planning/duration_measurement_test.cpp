#include "interposer/planning/duration_measurement.h"

#include <gtest/gtest.h>

#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::interposer {
namespace {

using scheduler::IterationPattern;
using scheduler::JobEvent;
using scheduler::JobTouch;

// Replays the iteration with other allocations. Only `left_out` has no sample.
class DurationMeasurementTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const IterationPattern> Pattern() {
    auto pattern = std::make_shared<IterationPattern>(SmallPattern());
    pattern->buffers[0].allocation = kWeights;
    return pattern;
  }
  // At its end the program reads a few bytes.
  static std::shared_ptr<const IterationPattern> PatternWithASmallCopy() {
    auto pattern = std::make_shared<IterationPattern>(*Pattern());
    pattern->events.push_back({.token = scheduler::TokenOf(JobEvent::Operation(kSmallCopy, {})),
                               .operation = 2 * kLayers});
    pattern->profile.operations.emplace_back().name = "small copy";
    return pattern;
  }
  void NoteIteration(DurationMeasurement* measurement, int left_out = -1) {
    const auto& pattern = *measurement->pattern();
    first_allocation_ += 100;
    for (const scheduler::PatternEvent& event : pattern.events) {
      if (event.kind == scheduler::JobEventKind::kAllocate) {
        measurement->Note(JobEvent::Allocate(AllocationOf(event.buffer), kActivationBytes), 0);
        continue;
      }
      std::vector<JobTouch> touches;
      for (const auto& touch : pattern.TouchesOf(event))
        touches.push_back({AllocationOf(touch.buffer), touch.writes});
      const int operation = event.operation;
      const std::uint64_t shape =
          operation == 2 * kLayers ? kSmallCopy
          : operation < kLayers    ? 100 + static_cast<std::uint64_t>(operation)
                                   : 200 + static_cast<std::uint64_t>(2 * kLayers - 1 - operation);
      measurement->Note(JobEvent::Operation(shape, touches),
                        operation == left_out ? 0 : 1 + operation);
    }
  }
  std::uint64_t AllocationOf(std::int32_t buffer) const {
    return buffer == 0 ? kWeights : first_allocation_ + static_cast<std::uint64_t>(buffer);
  }

  static constexpr std::uint64_t kSmallCopy = 999;
  std::uint64_t first_allocation_ = 0;
};

TEST_F(DurationMeasurementTest, IsCompleteWhenEveryOperationHasASample) {
  DurationMeasurement measurement(Pattern());

  NoteIteration(&measurement, 4);
  EXPECT_FALSE(measurement.AllAreTaken());
  NoteIteration(&measurement);

  EXPECT_TRUE(measurement.AllAreTaken());
  EXPECT_FALSE(measurement.IsDone());
}

// The copy waits behind other transfers, so it has no sample.
TEST_F(DurationMeasurementTest, SmallCopyIsTimedLikeALaunch) {
  DurationMeasurement measurement(PatternWithASmallCopy());

  NoteIteration(&measurement, 2 * kLayers);

  EXPECT_TRUE(measurement.AllAreTaken());
  EXPECT_EQ(measurement.DurationsNs().back(), 4'000);
}

TEST_F(DurationMeasurementTest, GivesUpWhenTheJobLeavesThePattern) {
  DurationMeasurement measurement(Pattern());
  const JobTouch foreign{99, true};

  for (int i = 0; i < 4 * measurement.pattern()->size(); ++i)
    measurement.Note(JobEvent::Operation(4711, {&foreign, 1}), 1);

  EXPECT_FALSE(measurement.AllAreTaken());
  EXPECT_TRUE(measurement.IsHopeless());
}

TEST_F(DurationMeasurementTest, IsRegularWhileFewEventsAreForeign) {
  DurationMeasurement measurement(Pattern());
  const JobTouch foreign{99, true};
  NoteIteration(&measurement);
  NoteIteration(&measurement);
  EXPECT_TRUE(measurement.IsRegular());

  measurement.Note(JobEvent::Operation(4711, {&foreign, 1}), 0);
  EXPECT_TRUE(measurement.IsRegular());
  for (int i = 0; i < measurement.pattern()->size(); ++i)
    measurement.Note(JobEvent::Operation(4711, {&foreign, 1}), 0);
  EXPECT_FALSE(measurement.IsRegular());
}

TEST_F(DurationMeasurementTest, EstimatesUnmeasuredOperationsByBytes) {
  const DurationMeasurement measurement(Pattern());

  const std::vector<std::int64_t> durations_ns = measurement.DurationsNs();

  ASSERT_EQ(durations_ns.size(), 2u * kLayers);
  EXPECT_GT(durations_ns[0], 4'000);
  EXPECT_GT(durations_ns[1], durations_ns[0]);  // the first touches one activation more
}

}  // namespace
}  // namespace spillway::interposer
