// How much of pinned memory is read for addresses.
#include "interposer/ledger/host_regions.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

namespace spillway::interposer {
namespace {

constexpr std::size_t kLargeBytes = 32 * kWholeOnHostBytes;
constexpr CUdeviceptr kOurs = 0x7000'0000'0000;
constexpr WordBounds kBounds{kOurs, kOurs + (CUdeviceptr{1} << 32)};
constexpr std::size_t kWord = sizeof(CUdeviceptr);

class HostRegionsTest : public testing::Test {
 protected:
  CUdeviceptr Add(std::vector<CUdeviceptr>* memory) {
    const auto base = reinterpret_cast<CUdeviceptr>(memory->data());
    regions_.Add({base, memory->size() * kWord, reinterpret_cast<const std::byte*>(memory->data()),
                  HostRegion::Reading::kDirect, nullptr});
    return base;
  }
  HostRegions::Scan Read(CUdeviceptr word) { return regions_.Read({base_, word}, kBounds); }
  // In bytes, of a place that neither the word nor the sample reaches.
  static constexpr std::size_t kFar = kLargeBytes / 2 + 5 * kScanPageBytes;

  HostRegions regions_;
  std::vector<CUdeviceptr> memory_ = std::vector<CUdeviceptr>(kLargeBytes / kWord);
  CUdeviceptr base_ = Add(&memory_);
};

TEST_F(HostRegionsTest, FirstNamingReadsALargeRegionInFull) {
  memory_[kFar / kWord] = kOurs;
  const HostRegions::Scan scan = Read(base_);
  EXPECT_TRUE(scan.is_whole);
  EXPECT_TRUE(scan.is_readable);
  ASSERT_EQ(scan.held.size(), 1u);
  EXPECT_EQ(scan.held[0].at, base_ + kFar);
}

TEST_F(HostRegionsTest, LaterNamingsReadInFullEverMoreSeldom) {
  std::vector<int> whole;
  for (int i = 1; i <= 40; ++i) {
    if (Read(base_).is_whole) whole.push_back(i);
  }
  EXPECT_EQ(whole, (std::vector<int>{1, 2, 4, 8, 16, 32}));
}

TEST_F(HostRegionsTest, AddressNearTheNamedWordIsFoundEachTime) {
  for (int i = 0; i < 5; ++i) Read(base_);
  EXPECT_FALSE(Read(base_).is_whole);
  memory_[kFar / kWord] = kOurs;
  EXPECT_EQ(Read(base_ + kFar + kNearBytes - kWord).held.size(), 1u);
}

TEST_F(HostRegionsTest, SampledPageWithAnAddressMakesTheScanWhole) {
  for (int i = 0; i < 5; ++i) Read(base_);
  memory_[kLargeBytes / 2 / kWord] = kOurs;
  memory_[kFar / kWord] = kOurs + 8;
  const HostRegions::Scan scan = Read(base_);
  EXPECT_TRUE(scan.is_whole);
  EXPECT_EQ(scan.held.size(), 2u);
}

TEST_F(HostRegionsTest, RegionThatHeldAnAddressIsReadInFullFromThenOn) {
  memory_[kFar / kWord] = kOurs;
  Read(base_);
  memory_[kFar / kWord] = 0;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(Read(base_).is_whole);
}

TEST_F(HostRegionsTest, OtherBoundsAreReadInFull) {
  for (int i = 0; i < 5; ++i) Read(base_);
  const WordBounds wider{kOurs, kBounds.highest() + (CUdeviceptr{2} << 40)};
  EXPECT_TRUE(regions_.Read({base_, base_}, wider).is_whole);
  EXPECT_FALSE(regions_.Read({base_, base_}, wider).is_whole);
}

TEST_F(HostRegionsTest, SmallRegionIsAlwaysReadInFull) {
  std::vector<CUdeviceptr> small(kWholeOnHostBytes / kWord);
  const CUdeviceptr base = Add(&small);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(regions_.Read({base, base}, kBounds).is_whole);
}

TEST_F(HostRegionsTest, AddressOfAnotherRegionLeadsOn) {
  std::vector<CUdeviceptr> other(64);
  const CUdeviceptr word = Add(&other) + 16;
  memory_[3] = word;
  const HostRegions::Scan scan = Read(base_);
  ASSERT_EQ(scan.leads_on.size(), 1u);
  EXPECT_EQ(scan.leads_on[0].base, word - 16);
  EXPECT_EQ(scan.leads_on[0].word, word);
}

TEST_F(HostRegionsTest, UnreadableRegionIsReported) {
  regions_.Add({base_, kLargeBytes, nullptr, HostRegion::Reading::kNone, nullptr});
  EXPECT_FALSE(Read(base_).is_readable);
}

TEST_F(HostRegionsTest, RegionIsReadInFullWhereAskedFor) {
  for (int i = 0; i < 4; ++i) Read(base_);
  EXPECT_FALSE(Read(base_).is_whole);
  memory_[kFar / kWord] = kOurs;
  EXPECT_EQ(regions_.Read({.base = base_, .word = base_, .in_full = true}, kBounds).held.size(),
            1u);
}

// Two devices' jobs have different bounds.
TEST_F(HostRegionsTest, TwoJobsInTurnDoNotReadInFullEachTime) {
  const WordBounds other{kOurs + (CUdeviceptr{1} << 40), kOurs + (CUdeviceptr{1} << 41)};
  int whole = 0;
  for (int i = 0; i < 32; ++i) {
    whole += regions_.Read({base_, base_}, kBounds).is_whole;
    whole += regions_.Read({base_, base_}, other).is_whole;
  }
  EXPECT_LE(whole, 14) << "of 64";
}

// Each allocation at a new address widens the job's bounds.
TEST_F(HostRegionsTest, GrowingJobDoesNotReadInFullEachTime) {
  int whole = 0;
  for (CUdeviceptr i = 0; i < 64; ++i) {
    const WordBounds bounds{kOurs, kOurs + (i + 1) * (CUdeviceptr{2} << 20)};
    whole += regions_.Read({base_, base_}, bounds).is_whole;
  }
  EXPECT_LE(whole, 14) << "of 64";
}

// The word was there before: it is no address that appears far from the named word.
TEST_F(HostRegionsTest, RegionAddedLaterIsFoundThroughAnOldWord) {
  std::vector<CUdeviceptr> other(64);
  memory_[kFar / kWord] = reinterpret_cast<CUdeviceptr>(other.data());
  for (int i = 0; i < 5; ++i) Read(base_);
  Add(&other);
  EXPECT_EQ(Read(base_).leads_on.size(), 1u);
}

// An unread page may hold an address, whether a sample meets it or not.
TEST_F(HostRegionsTest, RegionWithAnUnreadablePageStaysUnreadable) {
  void* const data =
      mmap(nullptr, kLargeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<std::byte*>(data) + kFar, kScanPageBytes, PROT_NONE), 0);
  const auto base = reinterpret_cast<CUdeviceptr>(data);
  regions_.Add({base, kLargeBytes, static_cast<const std::byte*>(data),
                HostRegion::Reading::kRegistered, nullptr});
  for (int i = 1; i <= 4; ++i)
    EXPECT_FALSE(regions_.Read({base, base}, kBounds).is_readable) << "scan " << i;
  munmap(data, kLargeBytes);
}

}  // namespace
}  // namespace spillway::interposer
