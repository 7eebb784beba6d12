// Waits for memory that a layout has for a range, over the simulated driver.
#include "interposer/execute/eviction.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/unit/interposer/over_driver_test.h"
#include "tests/unit/interposer/simulated_job.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

// A range's eviction stands behind work that ends only when the program says so. What the layout
// has for others is in that range. (Note [Patience] in laid_out_memory.h)
class EvictionTest : public OverDriverTest {
 protected:
  static constexpr size_t kBudgetBytes = 20 * kMiB;
  static constexpr std::int64_t kIterationNs = 40'000'000;

  void SetUp() override {
    OverDriverTest::SetUp();
    for (int i = 0; i < 3; ++i) {
      RunIteration();
      EndIteration();
    }
    const StateLock lock(state_.locks);
    leaving_ = state_.residency.NewRange(12 * kMiB);
    Range* const other = state_.residency.NewRange(8 * kMiB);
    ASSERT_EQ(OfDriver<decltype(cuLaunchHostFunc)>("cuLaunchHostFunc")(stream_, AwaitTheProgram,
                                                                       &goes_on_),
              CUDA_SUCCESS);
    Driver().cuMemsetD8Async(leaving_->base, 1, leaving_->size_bytes, stream_);
    const Use use = state_.timeline.Issue(state_.timeline.Of({stream_, false}));
    state_.timeline.EventFor(use);
    state_.residency.Used(leaving_, use, true);
    ASSERT_TRUE(state_.residency.departures().Start(leaving_));
    state_.residency.Free(other, {});
    for (const size_t mib : {4, 6, 10}) {
      if (state_.residency.MustAwaitLaidOut(mib * kMiB) && state_.residency.HasAtHand(mib * kMiB))
        wanted_bytes_ = mib * kMiB;
    }
    ASSERT_NE(wanted_bytes_, 0u) << "a size whose piece is in the range that leaves";
  }
  void TearDown() override {
    goes_on_ = true;
    Driver().cuCtxSynchronize();
    {
      const StateLock lock(state_.locks);
      state_.residency.CollectLeft();
      state_.residency.ReleaseAll();
      state_.timeline.Reset();
    }
    OverDriverTest::TearDown();
  }

  static void AwaitTheProgram(void* goes_on) {
    while (!*static_cast<std::atomic<bool>*>(goes_on))
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  // Sizes that take each other's memory: each of 20 MiB at most.
  void RunIteration() {
    const StateLock lock(state_.locks);
    Residency& residency = state_.residency;
    for (int i = 0; i < 8; ++i) {
      for (const auto& sizes : {std::vector<size_t>{12, 8}, std::vector<size_t>{6, 10, 4}}) {
        std::vector<Range*> ranges;
        for (const size_t mib : sizes) ranges.push_back(residency.NewRange(mib * kMiB));
        for (Range* range : ranges) residency.Free(range, {});
      }
    }
  }
  void EndIteration() {
    const StateLock lock(state_.locks);
    state_.residency.laid_out().IterationEnded(
        {.misses = 0, .mapped_chunks = 20, .duration_ns = kIterationNs});
  }

  JobState state_{context_, 0, kBudgetBytes, size_t{1} << 30, ParkChoice::kOff, LearnChoice::kOff};
  Waits waits_{state_};
  StoredAddresses stored_{state_};
  MemoryScan scan_{state_, waits_, stored_};
  Parking parking_{state_, waits_, scan_, ParkChoice::kOff};
  Eviction eviction_{state_, waits_, parking_};
  std::atomic<bool> goes_on_{false};
  Range* leaving_ = nullptr;
  size_t wanted_bytes_ = 0;
};

// Regression: both waited for the program, which waited for them.
TEST_F(EvictionTest, AllocationWaitsForTheLayoutButAWhile) {
  eviction_.AwaitFreedFor(wanted_bytes_);
  const StateLock lock(state_.locks);
  EXPECT_EQ(leaving_->place, Place::kLeaving);
  EXPECT_FALSE(state_.residency.MustAwaitLaidOut(wanted_bytes_)) << "any memory will do";
}

TEST_F(EvictionTest, RangeWithoutMemoryWaitsForTheLayoutButAWhile) {
  const MakingLock making(state_.locks);
  EXPECT_TRUE(
      eviction_.MakeRoom(wanted_bytes_, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(kStateLock) {
        return !state_.residency.MustAwaitLaidOut(wanted_bytes_);
      }));
  EXPECT_EQ(leaving_->place, Place::kLeaving);
}

TEST_F(EvictionTest, PatienceIsAShareOfTheIteration) {
  const StateLock lock(state_.locks);
  LaidOutMemory& laid_out = state_.residency.laid_out();
  EXPECT_EQ(laid_out.patience_ns(), kIterationNs / 4);
  laid_out.Waited(kIterationNs / 8);
  EXPECT_EQ(laid_out.patience_ns(), kIterationNs / 8);
  laid_out.Waited(kIterationNs);
  EXPECT_EQ(laid_out.patience_ns(), 0);
}

}  // namespace
}  // namespace spillway::interposer
