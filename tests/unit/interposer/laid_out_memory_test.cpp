// Iterations get the memory laid out for them, over the simulated driver.
#include <gtest/gtest.h>

#include <array>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/residency/residency.h"
#include "tests/unit/interposer/over_driver_test.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

class LaidOutMemoryTest : public OverDriverTest {
 protected:
  static constexpr size_t kBudgetBytes = 20 * kMiB;
  static constexpr IterationLayout::Iteration kMapsMuch = {.misses = 0, .mapped_chunks = 20};
  static constexpr IterationLayout::Iteration kMapsLittle = {.misses = 0, .mapped_chunks = 1};

  void TearDown() override {
    Driver().cuCtxSynchronize();
    residency_.ReleaseAll();
    OverDriverTest::TearDown();
  }

  Range* New(size_t mib) {
    Range* const range = residency_.NewRange(mib * kMiB);
    EXPECT_EQ(range->place, Place::kDevice);
    return range;
  }
  void Free(Range* range) { residency_.Free(range, {}); }
  void Finish() {
    Driver().cuCtxSynchronize();
    residency_.CollectLeft();
  }
  // Sizes that take each other's memory: each of 20 MiB at most.
  void RunIteration() {
    for (int i = 0; i < 8; ++i) {
      const std::array<Range*, 2> first = {New(12), New(8)};
      for (Range* range : first) Free(range);
      const std::array<Range*, 3> second = {New(6), New(10), New(4)};
      for (Range* range : second) Free(range);
    }
  }
  void LayOut() {
    for (int i = 0; i < 3; ++i) {
      RunIteration();
      residency_.laid_out().IterationEnded(kMapsMuch);
    }
  }
  bool HasPiecesFor(size_t mib) {
    Chunks chunks;
    return residency_.laid_out().Find(IterationLayout::Take::kNew, mib * kMiB, &chunks) !=
           LaidOutMemory::Answer::kNone;
  }
  // Until it is laid out. Of 12 MiB.
  void RunWithARestore() {
    for (int i = 0; i < 4; ++i) {
      Range* const moved = New(12);
      StartLeaving(moved);
      Finish();
      Free(New(16));
      ASSERT_TRUE(residency_.Restore(moved));
      Free(moved);
      Finish();
      for (int other = 0; other < 40; ++other) Free(New(2));
      Finish();
      residency_.laid_out().IterationEnded(i < 3 ? kMapsMuch : kMapsLittle);
    }
  }
  // A copy to the host keeps it leaving.
  void StartLeaving(Range* range) {
    residency_.Used(range, EnqueueOn(range), true);
    ASSERT_TRUE(residency_.departures().Start(range));
    ASSERT_EQ(range->place, Place::kLeaving);
  }

  Residency residency_{0, kBudgetBytes, size_t{1} << 30, false, &timeline_, &counters_, &trace_};
};

TEST_F(LaidOutMemoryTest, IterationNeedsNoMappingCallsOnceItIsLaidOut) {
  LayOut();
  RunIteration();
  residency_.laid_out().IterationEnded(kMapsLittle);
  const driver::MappingCalls calls = driver::ReadMappingCalls();
  for (int i = 0; i < 3; ++i) {
    RunIteration();
    residency_.laid_out().IterationEnded(kMapsLittle);
  }
  const driver::MappingCalls more = driver::ReadMappingCalls().Since(calls);
  EXPECT_EQ(more.maps + more.unmaps + more.creates + more.releases, 0u);
  EXPECT_LE(residency_.chunks().held_peak_bytes(), kBudgetBytes);
}

TEST_F(LaidOutMemoryTest, PiecesOfARangeThatLeavesAreComing) {
  LayOut();
  Range* const leaving = New(12);
  Range* const other = New(8);
  StartLeaving(leaving);
  Free(other);
  EXPECT_TRUE(residency_.MustAwaitLaidOut(6 * kMiB) || residency_.MustAwaitLaidOut(10 * kMiB) ||
              residency_.MustAwaitLaidOut(4 * kMiB));
  Finish();
  EXPECT_EQ(leaving->place, Place::kHost);
  for (const size_t mib : {6, 10, 4}) EXPECT_FALSE(residency_.MustAwaitLaidOut(mib * kMiB));
}

// Nothing under way would free them: any memory will do.
TEST_F(LaidOutMemoryTest, PiecesAreForgoneUntilARangeHasMemory) {
  LayOut();
  ASSERT_TRUE(HasPiecesFor(6));
  residency_.laid_out().Forgo();
  EXPECT_FALSE(HasPiecesFor(6));
  Free(New(6));
  EXPECT_TRUE(HasPiecesFor(10));
}

// Ranges that have each other's pieces are no obstacle.
TEST_F(LaidOutMemoryTest, IterationThatGoesOtherwiseStillGetsItsMemory) {
  LayOut();
  RunIteration();
  residency_.laid_out().IterationEnded(kMapsLittle);
  const std::array<Range*, 5> ranges = {New(4), New(4), New(6), New(2), New(4)};
  EXPECT_EQ(residency_.chunks().held_bytes(), kBudgetBytes);
  for (Range* range : ranges) Free(range);
  RunIteration();
}

TEST_F(LaidOutMemoryTest, RestoredRangeGetsIdleMemoryOnly) {
  RunWithARestore();
  Range* const moved = New(12);
  StartLeaving(moved);
  Finish();
  Range* const between = New(16);
  residency_.Used(between, EnqueueOn(between), true);
  Free(between);
  EXPECT_FALSE(residency_.Restore(moved)) << "work uses it";
  Finish();
  EXPECT_TRUE(residency_.Restore(moved));
  Finish();
}

// Regression: PyTorch's bf16 ResNet-50 at a quarter of its peak touched memory without a mapping. A
// retired range's object had become another range, which got memory only after it was parked.
TEST_F(LaidOutMemoryTest, FreedRangeHasNoResidence) {
  Range* const range = New(4);
  EXPECT_NE(range->residence.iteration, 0u);
  Free(range);
  EXPECT_EQ(range->residence.iteration, 0u);
}

// Regression: it took the idle memory that the layout has for it, while the budget was exceeded.
TEST_F(LaidOutMemoryTest, RestoreKeepsNoMoreThanASmallerBudget) {
  RunWithARestore();
  Range* const moved = New(12);
  StartLeaving(moved);
  Finish();
  Free(New(16));
  residency_.chunks().SetBudget(12 * kMiB);
  ASSERT_TRUE(residency_.chunks().IsOverBudget());
  ASSERT_TRUE(residency_.Restore(moved));
  EXPECT_FALSE(residency_.chunks().IsOverBudget());
  Finish();
}

// Regression: all other free memory went back to the driver, and then did not suffice.
TEST_F(LaidOutMemoryTest, PieceThatCannotBeMadeCostsNothing) {
  LayOut();
  residency_.chunks().SetBudget(8 * kMiB);
  Free(New(8));
  Finish();
  const driver::MappingCalls calls = driver::ReadMappingCalls();
  EXPECT_FALSE(HasPiecesFor(12));
  EXPECT_EQ(driver::ReadMappingCalls().Since(calls).releases, 0u);
}

// Regression: any busy chunk made it wait for a piece of any size.
TEST_F(LaidOutMemoryTest, BusyMemoryThatWouldNotBeEnoughIsNotAwaited) {
  LayOut();
  residency_.chunks().SetBudget(8 * kMiB);
  Range* const busy = New(2);
  residency_.Used(busy, EnqueueOn(busy), true);
  Free(busy);
  EXPECT_FALSE(residency_.MustAwaitLaidOut(12 * kMiB));
  Finish();
}

// A smaller budget comes first. Pieces go last.
TEST_F(LaidOutMemoryTest, BudgetHoldsWithALayout) {
  LayOut();
  RunIteration();
  residency_.laid_out().IterationEnded(kMapsLittle);
  residency_.chunks().SetBudget(12 * kMiB);
  while (residency_.chunks().IsOverBudget() && residency_.Charge(2 * kMiB))
    residency_.chunks().Discharge(2 * kMiB);
  Range* const range = residency_.NewRange(12 * kMiB);
  EXPECT_LE(residency_.chunks().held_bytes(), 12 * kMiB);
  Free(range);
}

}  // namespace
}  // namespace spillway::interposer
