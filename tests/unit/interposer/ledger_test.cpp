#include "interposer/ledger/ledger.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace spillway::interposer {
namespace {

constexpr CUdeviceptr kBase = 0x7f0000000000;
constexpr size_t kGranule = size_t{2} << 20;

TEST(LedgerTest, FindsRangeByAnyAddressInside) {
  Ledger ledger;
  Allocation range{.base = kBase, .size_bytes = 3 * kGranule};
  ledger.AddRange(&range);

  EXPECT_EQ(ledger.Find(kBase), &range);
  EXPECT_EQ(ledger.Find(kBase + kGranule + 17), &range);
  EXPECT_EQ(ledger.Find(kBase + 3 * kGranule - 1), &range);
}

TEST(LedgerTest, OnePastTheEndBelongsToNoRange) {
  Ledger ledger;
  Allocation range{.base = kBase, .size_bytes = kGranule};
  ledger.AddRange(&range);

  EXPECT_EQ(ledger.Find(kBase + kGranule), nullptr);
  EXPECT_EQ(ledger.Find(kBase - 1), nullptr);
}

TEST(LedgerTest, AddressBetweenTwoRangesIsBesideBoth) {
  Ledger ledger;
  Allocation before{.base = kBase, .size_bytes = kGranule};
  Allocation behind{.base = kBase + 2 * kGranule, .size_bytes = kGranule};
  ledger.AddRange(&before);
  ledger.AddRange(&behind);

  std::vector<const Allocation*> beside;
  for (const CUdeviceptr at : ledger.Beside(kBase + kGranule + 8))
    beside.push_back(ledger.Find(at));

  EXPECT_EQ(beside, (std::vector<const Allocation*>{&before, &behind}));
  EXPECT_TRUE(ledger.MightBeManaged(kBase - 1));
  EXPECT_TRUE(ledger.MightBeManaged(kBase + 3 * kGranule));
}

TEST(LedgerTest, AddressInARangeIsBesideNone) {
  Ledger ledger;
  Allocation range{.base = kBase, .size_bytes = 2 * kGranule};
  ledger.AddRange(&range);

  EXPECT_TRUE(ledger.Beside(kBase).empty()) << "the address is in the range itself";
}

TEST(LedgerTest, RemovedRangeIsNotFound) {
  Ledger ledger;
  Allocation range{.base = kBase, .size_bytes = 2 * kGranule};
  ledger.AddRange(&range);
  ledger.RemoveRange(&range);

  EXPECT_EQ(ledger.Find(kBase), nullptr);
  EXPECT_EQ(ledger.Find(kBase + kGranule), nullptr);
}

TEST(LedgerTest, FindsRangeAcrossSixtyFourGibibyteBorder) {
  Ledger ledger;
  const CUdeviceptr border = CUdeviceptr{0x7f} << 36;
  Allocation range{.base = border - kGranule, .size_bytes = 2 * kGranule};
  ledger.AddRange(&range);

  EXPECT_EQ(ledger.Find(border - 1), &range);
  EXPECT_EQ(ledger.Find(border), &range);
}

TEST(LedgerTest, FindsLiveBlockOfSlabOnly) {
  Ledger ledger;
  Allocation block{.base = kBase + 512, .size_bytes = 512};
  const std::array<std::atomic<Allocation*>, 4> blocks = {nullptr, &block, nullptr, nullptr};
  const SlabPlan slab{.base = kBase, .block_bytes = 512, .block_count = 4, .blocks = blocks.data()};
  ledger.AddSlab(&slab);

  EXPECT_EQ(ledger.Find(kBase + 512 + 511), &block);
  EXPECT_EQ(ledger.Find(kBase), nullptr);
  EXPECT_EQ(ledger.Find(kBase + 4 * 512), nullptr);
}

TEST(LedgerTest, ScalarsAreNotAddresses) {
  Ledger ledger;
  Allocation range{.base = kBase, .size_bytes = kGranule};
  ledger.AddRange(&range);

  for (CUdeviceptr word :
       {CUdeviceptr{0}, CUdeviceptr{1}, CUdeviceptr{0x3ff0000000000000}, ~CUdeviceptr{0}}) {
    EXPECT_FALSE(ledger.MightBeManaged(word));
    EXPECT_EQ(ledger.Find(word), nullptr);
  }
  EXPECT_TRUE(ledger.MightBeManaged(kBase));
}

}  // namespace
}  // namespace spillway::interposer
