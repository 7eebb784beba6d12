// Allocations larger than the budget, over the simulated driver.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"
#include "interposer/ledger/arena_cuts.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

constexpr CUdeviceptr kArenaBase = CUdeviceptr{7} << 40;

void NoteOften(ArenaCuts* cuts, std::initializer_list<CUdeviceptr> addresses) {
  for (int i = 0; i < 3; ++i) {
    for (const CUdeviceptr address : addresses) cuts->Note(address);
  }
}

TEST(ArenaCutsTest, AnAddressReachesToTheNextOne) {
  ArenaCuts cuts(kArenaBase, 100 * kMiB, 2 * kMiB);
  NoteOften(&cuts, {kArenaBase, kArenaBase + 11 * kMiB, kArenaBase + 40 * kMiB});
  EXPECT_EQ(cuts.EndOf(kArenaBase), kArenaBase + 11 * kMiB);
  EXPECT_EQ(cuts.EndOf(kArenaBase + 11 * kMiB), kArenaBase + 40 * kMiB);
  EXPECT_EQ(cuts.EndOf(kArenaBase + 40 * kMiB), kArenaBase + 100 * kMiB);
}

TEST(ArenaCutsTest, WithinOnePartItReachesToThePartsEnd) {
  ArenaCuts cuts(kArenaBase, 100 * kMiB, 2 * kMiB);
  NoteOften(&cuts, {kArenaBase, kArenaBase + 4096, kArenaBase + 8192});
  EXPECT_EQ(cuts.EndOf(kArenaBase), kArenaBase + 2 * kMiB);
}

// The tensors behind it were not named yet: not all of the arena is meant.
TEST(ArenaCutsTest, WhileNewCutsComeTheLastAddressStandsForItsPart) {
  ArenaCuts cuts(kArenaBase, 100 * kMiB, 2 * kMiB);
  for (int i = 0; i < 10; ++i) {
    const CUdeviceptr last = kArenaBase + static_cast<CUdeviceptr>(i) * 5 * kMiB;
    cuts.Note(last);
    EXPECT_EQ(cuts.EndOf(last), kArenaBase + (cuts.PartOf(last) + 1) * 2 * kMiB);
  }
}

TEST(ArenaCutsTest, NoExtentLeavesTheArena) {
  ArenaCuts cuts(kArenaBase, 99 * kMiB, 2 * kMiB);
  NoteOften(&cuts, {kArenaBase + 98 * kMiB + 5});
  EXPECT_EQ(cuts.EndOf(kArenaBase + 98 * kMiB + 5), kArenaBase + 99 * kMiB);
}

class ArenasTest : public testing::Test {
 protected:
  static constexpr size_t kBudgetBytes = 64 * kMiB, kBytes = 160 * kMiB, kSlice = 10 * kMiB;

  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    SetUpJob(ParkChoice::kAuto);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }
  void SetUpJob(ParkChoice park) {
    job_ = std::make_unique<JobMemory>(context_, 0, kBudgetBytes, size_t{1} << 30, park);
  }

  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr base = 0;
    EXPECT_EQ(job_->allocations().Allocate(bytes, &base), CUDA_SUCCESS);
    return base;
  }
  // Names only where the slice begins, as a kernel's parameters do.
  void Fill(CUdeviceptr at, unsigned int word, size_t bytes = kSlice) {
    Addresses addresses;
    addresses.push_back(at);
    TouchSet set;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    Driver().cuMemsetD32Async(at, word, bytes / 4, stream_);
    job_->calls().End(&set, Effect::kLaunches);
  }
  void FillAll(CUdeviceptr base, unsigned int first_word) {
    for (unsigned int i = 0; i < kBytes / kSlice; ++i) Fill(base + i * kSlice, first_word + i);
  }
  std::vector<unsigned int> Read(CUdeviceptr at, size_t bytes) {
    std::vector<unsigned int> words(bytes / 4);
    Addresses addresses;
    addresses.push_back(at);
    Claims claims;
    claims.Reads(at, bytes);
    TouchSet set;
    set.claims = &claims;
    EXPECT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kReads, &set),
              CUDA_SUCCESS);
    Driver().cuMemcpyDtoHAsync_v2(words.data(), at, bytes, stream_);
    job_->calls().End(&set, Effect::kReads);
    Driver().cuStreamSynchronize(stream_);
    return words;
  }
  void ExpectFilled(CUdeviceptr base, unsigned int first_word) {
    const std::vector<unsigned int> words = Read(base, kBytes);
    for (size_t i = 0; i < words.size(); i += 1021)
      ASSERT_EQ(words[i], first_word + i * 4 / kSlice) << "word " << i;
  }
  Counters Count() { return job_->view().Read().counters; }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
};

TEST_F(ArenasTest, AllBytesArriveWhateverPartsAreOnTheDevice) {
  const CUdeviceptr base = Allocate(kBytes);
  for (unsigned int round = 1; round <= 3; ++round) {
    FillAll(base, 100 * round);
    ExpectFilled(base, 100 * round);
  }
  EXPECT_EQ(Count().arenas, 1u);
}

// Regression: as one range it was used over the link for good.
TEST_F(ArenasTest, WhatACallUsesIsOnTheDevice) {
  const CUdeviceptr base = Allocate(kBytes);
  for (unsigned int round = 1; round <= 3; ++round) FillAll(base, round);
  const Counters before = Count();
  FillAll(base, 7);
  const Counters after = Count();
  EXPECT_EQ(after.parked_calls, before.parked_calls);
  EXPECT_GE(after.offloaded_bytes - before.offloaded_bytes, kBytes - kBudgetBytes);
}

// Regression: a call that had to wait for memory noted its addresses several times. So the first
// one already counted as the last to bring new cuts, and reached to the arena's end.
TEST_F(ArenasTest, TheFirstCallsUseTheirPartAlone) {
  const CUdeviceptr base = Allocate(kBytes);
  Fill(base + 100 * kMiB, 1, 4096);
  EXPECT_LE(Count().restored_bytes, 2 * kMiB);
}

// An arena parks its job for good: a budget that is small for a moment is no reason to make one.
TEST_F(ArenasTest, OnlyWhatIsLargerThanAnyBudgetSoFarIsCut) {
  job_->grants().SetBudget(2 * kBytes);
  job_->grants().SetBudget(kBudgetBytes);
  Allocate(kBytes);
  EXPECT_EQ(Count().arenas, 0u);
  Allocate(3 * kBytes);
  EXPECT_EQ(Count().arenas, 1u);
}

TEST_F(ArenasTest, BytesBeyondTheGuessAreRightToo) {
  const CUdeviceptr base = Allocate(kBytes);
  for (unsigned int round = 1; round <= 3; ++round) FillAll(base, round);
  // When a launch goes on where the next slices, which it does not name, begin
  Fill(base, 9, kBytes);
  const std::vector<unsigned int> words = Read(base, kBytes);
  EXPECT_TRUE(std::all_of(words.begin(), words.end(), [](unsigned int word) { return word == 9; }));
}

TEST_F(ArenasTest, TheProgramSeesOneAllocation) {
  const CUdeviceptr base = Allocate(kBytes - 5);
  const auto inside = job_->view().Describe(base + 77 * kMiB);
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->base, base);
  EXPECT_EQ(inside->requested_bytes, kBytes - 5);
  EXPECT_EQ(job_->view().LiveBases(), std::vector<CUdeviceptr>{base});
  EXPECT_FALSE(job_->allocations().Free(base + 2 * kMiB)) << "a part begins there";
  EXPECT_TRUE(job_->allocations().Free(base));
  EXPECT_FALSE(job_->view().Describe(base + 77 * kMiB));
}

TEST_F(ArenasTest, AfterItsFreeOthersHaveItsMemory) {
  for (int round = 0; round < 3; ++round) {
    const CUdeviceptr base = Allocate(kBytes);
    FillAll(base, 1);
    ASSERT_TRUE(job_->allocations().Free(base));
    const CUdeviceptr other = Allocate(2 * kMiB), large = Allocate(48 * kMiB);
    Fill(other, 1, 2 * kMiB);
    Fill(large, 2, 48 * kMiB);
    EXPECT_EQ(Read(large, 48 * kMiB).back(), 2u);
    ASSERT_TRUE(job_->allocations().Free(other));
    ASSERT_TRUE(job_->allocations().Free(large));
  }
  EXPECT_EQ(Count().wanted_bytes, 0u);
}

// Where nothing can be parked a guess that is too short would be fatal.
TEST_F(ArenasTest, WithoutParkingThereAreNone) {
  job_->ReleaseAll();
  SetUpJob(ParkChoice::kOff);
  CUdeviceptr base = 0;
  EXPECT_EQ(job_->allocations().Allocate(kBytes, &base), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Count().arenas, 0u);
}

}  // namespace
}  // namespace spillway::interposer
