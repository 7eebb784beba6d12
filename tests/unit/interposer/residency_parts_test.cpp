// Residency's classes, each without those above it, over the simulated driver.
#include <gtest/gtest.h>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/residency/departures.h"
#include "interposer/execute/residency/freed_memory.h"
#include "interposer/execute/residency/host_copies.h"
#include "interposer/execute/residency/iteration_layout.h"
#include "interposer/execute/residency/mappings.h"
#include "interposer/execute/residency/parked_ranges.h"
#include "interposer/execute/residency/range_table.h"
#include "interposer/execute/residency/range_uses.h"
#include "interposer/execute/residency/residency.h"
#include "interposer/execute/residency/spare_release.h"
#include "tests/unit/interposer/over_driver_test.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

class ResidencyPartsTest : public OverDriverTest {
 protected:
  static constexpr size_t kBudgetBytes = 256 * kMiB;

  // On the device, as residency makes it.
  Range* NewRange(size_t bytes) {
    Range* const range = ranges_.Add(mappings_.TakeAddresses(bytes), bytes);
    range->requested_bytes = bytes;
    range->BeginLife();
    Chunks chunks;
    EXPECT_TRUE(chunks_.Take(bytes, &chunks));
    GiveMemory(range, std::move(chunks));
    return range;
  }
  void GiveMemory(Range* range, Chunks chunks) {
    EXPECT_TRUE(mappings_.Map(range->base, chunks));
    range->NoteMapped(std::move(chunks));
    range->place = Place::kDevice;
  }
  void MakeFreeChunks(std::initializer_list<size_t> sizes_mib) {
    std::vector<Chunks> pieces;
    for (const size_t size_mib : sizes_mib)
      EXPECT_TRUE(chunks_.Take(size_mib * kMiB, &pieces.emplace_back()));
    for (Chunks& piece : pieces) chunks_.Give(&piece);
  }
  // On memory that freed ranges hold.
  Range* NewRangeFromFreed(size_t bytes) {
    FreedMemory::Taken taken = freed_.Take(bytes);
    EXPECT_EQ(taken.bytes, bytes);
    Range* const range = ranges_.Add(mappings_.TakeAddresses(bytes), bytes);
    range->BeginLife();
    GiveMemory(range, std::move(taken.chunks));
    range->ready_after.Merge(taken.ready_after);
    return range;
  }
  void Free(Range* range) {
    range->live = false;
    freed_.Add(range);
  }
  void FinishWork() {
    Driver().cuCtxSynchronize();
    timeline_.Poll();
  }

  ChunkPool chunks_{0, kBudgetBytes};
  RangeTable ranges_;
  Mappings mappings_{0};
  RangeUses uses_{&timeline_};
  HostCopies copies_{0, size_t{1} << 30, true, &timeline_, &counters_, &trace_};
  ContentChecks checks_{&timeline_, &counters_};
  ParkedRanges parked_{&mappings_, &copies_, &uses_, &timeline_, &counters_};
  FreedMemory freed_{{.ranges = &ranges_,
                      .mappings = &mappings_,
                      .chunks = &chunks_,
                      .parked = &parked_,
                      .uses = &uses_,
                      .timeline = &timeline_,
                      .counters = &counters_}};
  IterationLayout layout_;
  Departures departures_{{.ranges = &ranges_,
                          .chunks = &chunks_,
                          .copies = &copies_,
                          .checks = &checks_,
                          .parked = &parked_,
                          .uses = &uses_,
                          .freed = &freed_,
                          .layout = &layout_,
                          .timeline = &timeline_,
                          .counters = &counters_,
                          .trace = &trace_}};
};

TEST_F(ResidencyPartsTest, FreedMemoryServesTheSameSizeBehindItsEarlierWork) {
  Range* const range = NewRange(8 * kMiB);
  range->ready_after.Add(EnqueueOn(range));
  const std::uint32_t life = range->life;
  Free(range);

  EXPECT_EQ(freed_.Reuse(6 * kMiB), nullptr);
  EXPECT_EQ(freed_.Reuse(8 * kMiB), range);
  EXPECT_FALSE(range->ready_after.empty());
  EXPECT_EQ(range->life, life + 1);
  EXPECT_TRUE(range->live);
}

TEST_F(ResidencyPartsTest, OnlyFreedMemoryWithoutUnfinishedWorkIsYieldedTheLargestFirst) {
  Range* const busy = NewRange(16 * kMiB);
  busy->ready_after.Add(EnqueueOn(busy));
  for (Range* range : {NewRange(2 * kMiB), NewRange(8 * kMiB), busy}) Free(range);

  EXPECT_TRUE(freed_.YieldIdle());
  EXPECT_EQ(chunks_.free_bytes(), 8 * kMiB);
  EXPECT_TRUE(freed_.YieldIdle());
  EXPECT_FALSE(freed_.YieldIdle());
  EXPECT_EQ(freed_.PendingBytes(), 16 * kMiB);
  FinishWork();
  EXPECT_TRUE(freed_.YieldIdle());
  EXPECT_EQ(chunks_.free_bytes(), 26 * kMiB);
  EXPECT_EQ(freed_.PendingBytes(), 0u);
}

TEST_F(ResidencyPartsTest, IdleFreedMemoryIsCountedBeforeAnyOfItIsYielded) {
  Range* const busy = NewRange(16 * kMiB);
  busy->ready_after.Add(EnqueueOn(busy));
  for (Range* range : {NewRange(2 * kMiB), NewRange(8 * kMiB), busy}) Free(range);

  EXPECT_TRUE(freed_.IdleBytesReach(10 * kMiB));
  EXPECT_FALSE(freed_.IdleBytesReach(12 * kMiB)) << "work uses the other";
  FinishWork();
  EXPECT_TRUE(freed_.IdleBytesReach(26 * kMiB));
}

TEST_F(ResidencyPartsTest, FreedMemoryInPiecesThatFitIsYieldedFirst) {
  Range* const whole = NewRange(64 * kMiB);
  MakeFreeChunks({4, 30});
  Range* const in_pieces = NewRange(34 * kMiB);
  ASSERT_EQ(in_pieces->chunks.size(), 2u);
  for (Range* range : {whole, in_pieces}) Free(range);

  EXPECT_FALSE(freed_.YieldIdle(2 * kMiB));
  EXPECT_TRUE(freed_.IdleBytesReach(4 * kMiB, 4 * kMiB));
  EXPECT_FALSE(freed_.IdleBytesReach(6 * kMiB, 4 * kMiB));
  EXPECT_TRUE(freed_.YieldIdle(4 * kMiB));

  EXPECT_EQ(chunks_.free_bytes(), 34 * kMiB);
}

TEST_F(ResidencyPartsTest, MappingOutlivesItsMemory) {
  // Given a freed range of two chunks, one of which serves another size
  MakeFreeChunks({24, 10});
  Range* const first = NewRange(34 * kMiB);
  const Use before = EnqueueOn(first);
  first->ready_after.Add(before);
  Free(first);
  Range* const second = NewRangeFromFreed(10 * kMiB);
  ASSERT_EQ(second->ready_after.items().size(), 1u) << "the work on the first";
  EXPECT_EQ(second->ready_after.items()[0].sequence, before.sequence);
  EXPECT_EQ(freed_.Reuse(34 * kMiB), nullptr) << "its memory is in use";
  EXPECT_EQ(freed_.PendingBytes(), 24 * kMiB);

  const Use after = EnqueueOn(second);
  second->ready_after.Add(after);
  Free(second);
  const driver::MappingCalls calls = driver::ReadMappingCalls();

  // Then the first range serves its size again, behind that work and without a driver call
  EXPECT_EQ(freed_.Reuse(34 * kMiB), first);
  EXPECT_EQ(first->ready_after.items()[0].sequence, after.sequence);
  EXPECT_EQ(freed_.Reuse(10 * kMiB), nullptr);
  const driver::MappingCalls more = driver::ReadMappingCalls().Since(calls);
  EXPECT_EQ(more.maps + more.unmaps + more.creates, 0u);
  EXPECT_EQ(chunks_.held_bytes(), 34 * kMiB);
  FinishWork();
}

TEST_F(ResidencyPartsTest, OfSeveralFreedRangesTheOneWithTheOldestAddressesServes) {
  Range* const first = NewRange(4 * kMiB);
  Range* const second = NewRange(4 * kMiB);
  for (Range* range : {second, first}) Free(range);
  EXPECT_EQ(freed_.Reuse(4 * kMiB), first);
  EXPECT_EQ(freed_.Reuse(4 * kMiB), second);
}

TEST_F(ResidencyPartsTest, MemoryOfAFreedRangeThatACallNamesIsNotTaken) {
  Range* const named = NewRange(4 * kMiB);
  named->pins = 1;
  Free(named);
  EXPECT_EQ(freed_.Take(4 * kMiB).bytes, 0u);
  EXPECT_EQ(freed_.Reuse(4 * kMiB), nullptr);
  named->pins = 0;
  EXPECT_EQ(freed_.Take(4 * kMiB).bytes, 4 * kMiB);
}

TEST_F(ResidencyPartsTest, MemoryThatWasTakenInVainIsPutBack) {
  Range* const range = NewRange(4 * kMiB);
  Free(range);
  freed_.PutBack(freed_.Take(4 * kMiB));
  EXPECT_EQ(freed_.PendingBytes(), 4 * kMiB);
  EXPECT_EQ(freed_.Reuse(4 * kMiB), range);
}

// Regression: the holder's object, back on the lists of freed ranges, served another range. (Found
// by the differential fuzzer.)
TEST_F(ResidencyPartsTest, MemoryWhoseHolderWasUnmappedMeanwhileGoesToThePool) {
  MakeFreeChunks({24, 10});
  Range* const holder = NewRange(34 * kMiB);
  Free(holder);
  FreedMemory::Taken of_large = freed_.Take(24 * kMiB);
  ASSERT_EQ(of_large.chunks.size(), 1u);
  FreedMemory::Taken of_ten = freed_.Take(10 * kMiB);
  ASSERT_EQ(of_ten.chunks.size(), 1u);
  chunks_.Give(&of_ten.chunks);
  EXPECT_EQ(chunks_.ReleaseFree(10 * kMiB), 10 * kMiB);
  EXPECT_TRUE(ranges_.all().empty());

  freed_.PutBack(of_large);

  EXPECT_EQ(chunks_.free_bytes(), 24 * kMiB);
  EXPECT_EQ(freed_.PendingBytes(), 0u);
}

TEST_F(ResidencyPartsTest, ChunkThatGoesBackToTheDriverIsMappedNowhere) {
  MakeFreeChunks({24, 10});
  Free(NewRange(34 * kMiB));
  Free(NewRangeFromFreed(10 * kMiB));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(freed_.YieldIdle());
  ASSERT_EQ(chunks_.free_bytes(), 34 * kMiB);
  const driver::MappingCalls calls = driver::ReadMappingCalls();

  EXPECT_EQ(chunks_.ReleaseFree(10 * kMiB), 10 * kMiB);

  EXPECT_EQ(driver::ReadMappingCalls().Since(calls).unmaps, 2u);
  EXPECT_TRUE(ranges_.all().empty());
  EXPECT_EQ(freed_.Reuse(34 * kMiB), nullptr);
  EXPECT_EQ(chunks_.held_bytes(), 24 * kMiB);
}

// Regression: releasing its first chunk retired the range, which gave the second one back twice.
// (Found by the differential fuzzer.)
TEST_F(ResidencyPartsTest, RangeOfTwoChunksYieldsThemToASmallerBudget) {
  MakeFreeChunks({24, 10});
  Free(NewRange(34 * kMiB));
  chunks_.SetBudget(2 * kMiB);

  EXPECT_TRUE(freed_.YieldIdle());

  EXPECT_EQ(chunks_.held_bytes(), 0u);
  EXPECT_EQ(chunks_.free_bytes(), 0u);
  EXPECT_TRUE(ranges_.all().empty());
}

// Regression: a call of another thread named it, and its object served another range. (Found by the
// differential fuzzer.)
TEST_F(ResidencyPartsTest, UnmappedRangeThatACallNamesKeepsItsAddresses) {
  Range* const range = NewRange(8 * kMiB);
  Free(range);
  Range* const other = NewRangeFromFreed(8 * kMiB);
  range->pins = 1;
  Chunks chunks = other->chunks;
  driver::MemUnmap(other->base, other->size_bytes);
  other->NoteUnmapped();
  chunks_.Give(&chunks);

  EXPECT_EQ(chunks_.ReleaseFree(8 * kMiB), 8 * kMiB);
  EXPECT_EQ(range->place, Place::kNowhere);
  ASSERT_EQ(ranges_.all().size(), 2u);
  EXPECT_EQ(freed_.Reuse(8 * kMiB), nullptr);

  range->pins = 0;
  EXPECT_EQ(freed_.Reuse(8 * kMiB), range);
}

// A slab, or another user of the pool, may hold the chunk.
TEST_F(ResidencyPartsTest, MappingOntoAChunkWithoutARangeDoesNotServe) {
  Range* const range = NewRange(2 * kMiB);
  Free(range);
  ASSERT_TRUE(freed_.YieldIdle());
  Chunks slab;
  ASSERT_TRUE(chunks_.Take(2 * kMiB, &slab));
  EXPECT_EQ(freed_.Reuse(2 * kMiB), nullptr);
  chunks_.Give(&slab);
  EXPECT_EQ(freed_.Reuse(2 * kMiB), range);
  EXPECT_EQ(chunks_.free_bytes(), 0u);
}

TEST_F(ResidencyPartsTest, LeavingRangeKeepsItsMemoryUntilItsCopyIsComplete) {
  Range* const range = NewRange(32 * kMiB);
  range->uses.Add(EnqueueOn(range));

  ASSERT_TRUE(departures_.Start(range));
  departures_.Collect();
  EXPECT_EQ(range->place, Place::kLeaving);
  EXPECT_EQ(chunks_.free_bytes(), 0u);
  FinishWork();
  departures_.Collect();
  EXPECT_EQ(range->place, Place::kHost);
  EXPECT_EQ(chunks_.free_bytes(), 32 * kMiB);
  EXPECT_EQ(static_cast<const std::uint8_t*>(range->host.data)[range->size_bytes - 1], 1);
}

TEST_F(ResidencyPartsTest, RangeThatACallNamesDoesNotLeave) {
  Range* const range = NewRange(2 * kMiB);
  range->pins = 1;
  EXPECT_FALSE(departures_.Start(range));
  EXPECT_FALSE(
      departures_.StartMakingRoom(kBudgetBytes, Departures::LeaveFirst::kLeastRecentlyUsed));
  EXPECT_FALSE(departures_.AreUnderWay());
}

// The copy of a cancelled departure is good.
TEST_F(ResidencyPartsTest, GoodHostCopySavesTheNextCopy) {
  Range* const range = NewRange(2 * kMiB);
  ASSERT_TRUE(departures_.Start(range));
  departures_.Cancel(range);
  EXPECT_EQ(range->place, Place::kDevice);
  FinishWork();

  ASSERT_TRUE(copies_.IsGood(range));
  ASSERT_TRUE(departures_.Start(range));
  EXPECT_EQ(counters_.offloaded_bytes, 2 * kMiB);
  EXPECT_EQ(counters_.dropped_bytes, 2 * kMiB);
}

// A launch that no library documents may have written the range by a hidden address.
TEST_F(ResidencyPartsTest, HostCopyIsNotGoodAfterAnUndocumentedLaunch) {
  Range* const range = NewRange(2 * kMiB);
  ASSERT_TRUE(departures_.Start(range));
  departures_.Cancel(range);
  FinishWork();

  Timeline::UndocumentedBegins(timeline_.Of({stream_, false}), false);
  EXPECT_FALSE(copies_.IsGood(range));
}

TEST_F(ResidencyPartsTest, ParkedRangeIsUsableWithoutDeviceMemory) {
  Range* const range = ranges_.Add(mappings_.TakeAddresses(4 * kMiB), 4 * kMiB);
  range->requested_bytes = 4 * kMiB;
  range->BeginLife();

  ASSERT_TRUE(parked_.ParkNew(range));
  EnqueueOn(range);
  FinishWork();
  EXPECT_EQ(static_cast<const std::uint8_t*>(range->host.data)[0], 1);
  EXPECT_EQ(chunks_.held_bytes(), 0u);
  EXPECT_EQ(counters_.parked_bytes, 4 * kMiB);
  parked_.Discard(range);
  EXPECT_EQ(range->place, Place::kNowhere);
  EXPECT_EQ(counters_.parked_bytes, 0u);
}

TEST_F(ResidencyPartsTest, ParkedRangeStaysWhileACallUsesIt) {
  Range* const range = ranges_.Add(mappings_.TakeAddresses(2 * kMiB), 2 * kMiB);
  range->BeginLife();
  ASSERT_TRUE(parked_.ParkForCall(range));
  EXPECT_TRUE(parked_.MayUnpark(range));
  range->entered = 1;
  EXPECT_FALSE(parked_.MayUnpark(range));
  range->entered = 0;
  range->uses.Add(EnqueueOn(range));
  EXPECT_FALSE(parked_.MayUnpark(range));
  FinishWork();
  EXPECT_TRUE(parked_.MayUnpark(range));
}

TEST_F(ResidencyPartsTest, WithoutABudgetUnusedMemoryGoesBackToTheDevice) {
  SpareRelease spare(&chunks_, &freed_, &counters_);
  Free(NewRange(128 * kMiB));
  ASSERT_EQ(chunks_.held_bytes(), 128 * kMiB);

  spare.GiveBack(SpareRelease::After::kWait);
  EXPECT_EQ(chunks_.held_bytes(), 128 * kMiB) << "it is off";
  spare.TurnOn();
  spare.GiveBack(SpareRelease::After::kWait);
  EXPECT_LE(chunks_.held_bytes(), SpareMemory::kLeastBytes) << "a chunk goes whole";
}

// Freed ranges of other sizes serve the sizes of each step. Nothing leaves the process, so nothing
// is "created again after it had been given back" (spare_memory.h, invariant 1).
TEST_F(ResidencyPartsTest, MemoryThatPassedBetweenSizesStillGoesBackInTheEnd) {
  SpareRelease spare(&chunks_, &freed_, &counters_);
  spare.TurnOn();
  counters_.wanted_peak_bytes = 64 * kMiB;
  for (size_t step = 0; step < 500; ++step) {
    const size_t bytes = (20 + step * 14 % 44) * kMiB;
    spare.BeforeTaking(bytes);
    const size_t held_bytes = chunks_.held_bytes();
    counters_.wanted_bytes = bytes;
    Range* const range = NewRange(bytes);
    spare.Took(held_bytes);
    spare.NoteAllocation(bytes);
    counters_.wanted_bytes = 0;
    Free(range);
    spare.GiveBack(SpareRelease::After::kFree);
  }
  EXPECT_TRUE(spare.IsMoreThanKept(2 * chunks_.held_peak_bytes())) << "more than was ever held";
  size_t waits = 0;
  while (chunks_.held_bytes() > SpareMemory::kLeastBytes && waits < 100'000) {
    spare.GiveBack(SpareRelease::After::kWait);
    ++waits;
  }
  EXPECT_LE(waits, 4 * SpareMemory::kFirstWindow) << "the memory is unused all the time";
  EXPECT_LE(chunks_.held_bytes(), SpareMemory::kLeastBytes);
}

// What a window does not use goes back at its end (spare_memory.h, invariant 2).
TEST_F(ResidencyPartsTest, RangeOfWhichMoreThanHalfMayStayGoesBackToo) {
  SpareRelease spare(&chunks_, &freed_, &counters_);
  spare.TurnOn();
  for (int i = 0; i < 2; ++i) Free(NewRange(62 * kMiB));
  for (int i = 0; i < 4096; ++i) spare.GiveBack(SpareRelease::After::kWait);
  EXPECT_LE(chunks_.held_bytes(), SpareMemory::kLeastBytes);
}

// Regression: such ranges got on the wrong list of freed ranges. (Found by the differential
// fuzzer.)
TEST_F(ResidencyPartsTest, FreedRangeThatACallNamesHoldsTheMemoryThatItIsGiven) {
  Residency residency(0, 4 * kMiB, size_t{1} << 30, true, &timeline_, &counters_, &trace_);
  Range* const first = residency.NewRange(2 * kMiB);
  Range* const second = residency.NewRange(2 * kMiB);
  Range* const named = residency.NewRange(2 * kMiB);
  ASSERT_EQ(named->place, Place::kNowhere);
  residency.Pin(named);
  for (Range* range : {named, first, second}) residency.Free(range, {});

  EXPECT_TRUE(residency.Restore(named));
  Residency::Unpin(named);

  EXPECT_EQ(named->held_bytes, 2 * kMiB);
  EXPECT_TRUE(residency.departures().WillHaveRoom(4 * kMiB));
  residency.ReleaseAll();
}

class ContentDeparturesTest : public ResidencyPartsTest {
 protected:
  static constexpr size_t kBytes = 2 * kMiB;

  void SetUp() override {
    ResidencyPartsTest::SetUp();
    Chunks chunks;
    ASSERT_TRUE(chunks_.Take(kGranuleBytes, &chunks));
    const CUdeviceptr base = mappings_.MapAnew(kGranuleBytes, chunks);
    ASSERT_TRUE(checks_.Prepare(base, std::move(chunks)));
    // A launch without documents goes on: no host copy counts as good.
    Timeline::UndocumentedBegins(timeline_.Of({stream_, false}), false);
    range_ = NewRange(kBytes);
    Fill(1);
    Leave();
    ASSERT_EQ(range_->place, Place::kHost);
    Chunks again;
    ASSERT_TRUE(chunks_.Take(kBytes, &again));
    GiveMemory(range_, std::move(again));
    ASSERT_TRUE(copies_.In(range_, TraceCause::kRoom));
    range_->place = Place::kDevice;
    FinishWork();
    ASSERT_TRUE(range_->print_is_valid);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    CUdeviceptr base = 0;
    checks_.TakeMemory(&base);
    ResidencyPartsTest::TearDown();
  }
  void Fill(unsigned char value) {
    ASSERT_EQ(Driver().cuMemsetD8Async(range_->base, value, kBytes, stream_), CUDA_SUCCESS);
    const Use use = timeline_.Issue(timeline_.Of({stream_, false}));
    timeline_.EventFor(use);
    range_->uses.Add(use);
  }
  void Leave() {
    ASSERT_TRUE(departures_.Start(range_));
    for (int i = 0; i < 2; ++i) {
      FinishWork();
      departures_.Collect();
    }
  }
  unsigned int OnHost() const {
    return static_cast<const std::uint8_t*>(range_->host.data)[kBytes - 1];
  }

  Range* range_ = nullptr;
};

TEST_F(ContentDeparturesTest, UnchangedContentLeavesWithoutACopy) {
  Leave();
  EXPECT_EQ(range_->place, Place::kHost);
  EXPECT_EQ(counters_.offloaded_bytes, kBytes) << "the first time";
  EXPECT_EQ(counters_.clean_by_content_bytes, kBytes);
}

TEST_F(ContentDeparturesTest, ChangedContentIsCopied) {
  Fill(2);
  Leave();
  EXPECT_EQ(range_->place, Place::kHost);
  EXPECT_EQ(OnHost(), 2u);
  EXPECT_EQ(counters_.changed_by_content_bytes, kBytes);
}

TEST_F(ContentDeparturesTest, ContentMayChangeAfterACancelledComparison) {
  ASSERT_TRUE(departures_.Start(range_));
  ASSERT_NE(range_->content_print, Range::kNoPrint) << "it is being compared";
  departures_.Cancel(range_);
  EXPECT_EQ(range_->content_print, Range::kNoPrint);
  EXPECT_TRUE(range_->print_is_valid) << "the host copy is as it was";

  Fill(3);
  Leave();
  EXPECT_EQ(OnHost(), 3u);
}

// The copy under way may miss later writes.
TEST_F(ContentDeparturesTest, ACancelledCopyIsNotComparedWith) {
  Fill(4);
  ASSERT_TRUE(departures_.Start(range_));
  FinishWork();
  departures_.Collect();
  ASSERT_EQ(range_->place, Place::kLeaving) << "it is copied after its comparison";
  departures_.Cancel(range_);
  EXPECT_FALSE(range_->print_is_valid);
  Leave();
  EXPECT_EQ(OnHost(), 4u);
  EXPECT_EQ(counters_.clean_by_content_bytes, 0u);
}

TEST_F(ContentDeparturesTest, FreedWhileItIsCompared) {
  ASSERT_TRUE(departures_.Start(range_));
  departures_.Forget(range_);
  EXPECT_EQ(range_->content_print, Range::kNoPrint);
  EXPECT_FALSE(departures_.AreUnderWay());
  FinishWork();
  departures_.Collect();
  EXPECT_EQ(counters_.evictions, 1u) << "the first time";
}

}  // namespace
}  // namespace spillway::interposer
