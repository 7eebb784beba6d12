// The modelled device: its link, its processor and its memory, by arithmetic that fits a line.
#include "tests/bench/seats/device.h"

#include <gtest/gtest.h>

namespace spillway::seats {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// 100 bytes of memory; 10 bytes a second each way alone, 8 where both ways are busy.
constexpr LinkRates kRates = {10, 10, 8, 8};

Job Batch(int64_t need_bytes, int64_t resident_bytes) {
  Job job;
  job.kind = {.need_bytes = need_bytes, .step_ns = kSecond};
  job.resident_bytes = job.budget_bytes = resident_bytes;
  job.may_compute = true;
  return job;
}

TEST(SeatsDeviceTest, MemoryComesAsOthersLeaves) {
  Job leaving = Batch(100, 100);
  leaving.may_compute = false;
  leaving.budget_bytes = 40;
  Job coming = Batch(60, 0);
  coming.budget_bytes = 60;
  constexpr LinkRates slow_out = {10, 10, 8, 4};
  Device waiting(100, slow_out, {leaving, coming});
  waiting.Pass(kSecond, {});
  EXPECT_EQ(waiting.jobs()[1].resident_bytes, 4) << "no more than has left";

  Device device(100, kRates, {leaving, coming});
  for (int i = 1; i <= 7; ++i) {
    device.Pass(kSecond, {});
    EXPECT_EQ(device.jobs()[1].resident_bytes, 8 * i) << "both ways at once: 8 bytes a second";
    EXPECT_GE(device.FreeBytes(), 0);
  }
  EXPECT_EQ(device.jobs()[1].steps, 0) << "not yet whole";
  device.Pass(kSecond, {});
  EXPECT_EQ(device.jobs()[1].resident_bytes, 60);
  EXPECT_EQ(device.jobs()[1].steps, 1);
  EXPECT_EQ(device.moved_bytes(), 120);
}

TEST(SeatsDeviceTest, AJobThatDoesNotStreamNeedsAllItsMemory) {
  Device device(100, kRates, {Batch(56, 40)});
  device.Pass(10 * kSecond, {});
  EXPECT_EQ(device.jobs()[0].steps, 0);
}

TEST(SeatsDeviceTest, JobsShareTheProcessor) {
  Device device(100, kRates, {Batch(50, 50), Batch(50, 50)});
  device.Pass(10 * kSecond, {});
  EXPECT_EQ(device.jobs()[0].steps, 5);
  EXPECT_EQ(device.jobs()[1].steps, 5);
}

TEST(SeatsDeviceTest, StreamingIsBoundByTheLinkOrByComputing) {
  Job job = Batch(56, 40);
  job.streams = true;
  Device bound(100, kRates, {job});
  bound.Pass(10 * kSecond, {});
  EXPECT_EQ(bound.jobs()[0].steps, 5) << "16 of 56 bytes each step, at 8 bytes a second";
  EXPECT_EQ(bound.moved_bytes(), 160);

  job.resident_bytes = job.budget_bytes = 52;
  Device hidden(100, kRates, {job});
  hidden.Pass(10 * kSecond, {});
  EXPECT_EQ(hidden.jobs()[0].steps, 10);
  Device faulting(100, kRates, {job});
  faulting.Pass(10 * kSecond, {.link_percent = 50, .overlaps = false});
  EXPECT_EQ(faulting.jobs()[0].steps, 5) << "a second to compute, another for 4 bytes";
}

TEST(SeatsDeviceTest, RequestsAreAnsweredInOrderAfterTheirSteps) {
  Job job = Batch(50, 50);
  job.kind.is_interactive = true;
  job.kind.request_steps = 2;
  job.requests = {0, 0};
  Device device(100, kRates, {job});
  for (int i = 0; i < 5; ++i) device.Pass(kSecond, {});
  ASSERT_EQ(device.jobs()[0].answers.size(), 2u);
  EXPECT_EQ(device.jobs()[0].answers[0].done_ns, 2 * kSecond);
  EXPECT_EQ(device.jobs()[0].answers[1].done_ns, 4 * kSecond);
  EXPECT_EQ(device.jobs()[0].steps, 4) << "idle since";
}

TEST(SeatsDeviceTest, DivisionLeavesNothingThatSomebodyWants) {
  EXPECT_EQ(DivideEqually(90, {10, 100, 100}), (std::vector<int64_t>{10, 40, 40}));
  EXPECT_EQ(DivideEqually(90, {100, 0, 20}), (std::vector<int64_t>{70, 0, 20}));
}

}  // namespace
}  // namespace spillway::seats
