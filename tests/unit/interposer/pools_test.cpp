// Chunks, addresses, slabs and pinned buffers over the simulated driver.
#include <gtest/gtest.h>

#include <set>

#include "interposer/driver/address_arena.h"
#include "interposer/driver/chunk_pool.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/slabs.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

size_t BytesOf(const Chunks& chunks) {
  size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.bytes;
  return bytes;
}

class PoolsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }
  void TearDown() override { Driver().cuDevicePrimaryCtxRelease_v2(0); }
  CUcontext context_ = nullptr;
};

TEST_F(PoolsTest, TakesAllOrNothingWithinBudget) {
  ChunkPool pool(0, 64 * kMiB);
  Chunks first, second;

  EXPECT_TRUE(pool.Take(40 * kMiB, &first));
  EXPECT_EQ(BytesOf(first), 40 * kMiB);
  EXPECT_FALSE(pool.Take(26 * kMiB, &second));
  EXPECT_TRUE(second.empty());
  EXPECT_TRUE(pool.Take(24 * kMiB, &second));
  EXPECT_EQ(pool.held_bytes(), 64 * kMiB);

  pool.Give(&first);
  pool.Give(&second);
  pool.ReleaseAll();
  EXPECT_EQ(pool.held_bytes(), 0u);
  EXPECT_EQ(pool.held_peak_bytes(), 64 * kMiB);
}

TEST_F(PoolsTest, LargeChunksAreCutWhenOnlyGranulesFit) {
  ChunkPool pool(0, 16 * kMiB);
  Chunks large, small;
  ASSERT_TRUE(pool.Take(16 * kMiB, &large));
  ASSERT_EQ(large.size(), 2u);
  pool.Give(&large);

  EXPECT_TRUE(pool.Take(14 * kMiB, &small));
  EXPECT_EQ(small.size(), 4u) << "a large one, and three granules of the other's";
  EXPECT_LE(pool.held_bytes(), 16 * kMiB);

  pool.Give(&small);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, ChunksAreNotCutForCallersThatForbidIt) {
  ChunkPool pool(0, 16 * kMiB);
  Chunks large, more;
  ASSERT_TRUE(pool.Take(16 * kMiB, &large));
  pool.Give(&large);

  EXPECT_FALSE(pool.Take(14 * kMiB, &more, Cutting::kNo)) << "there are no granules";
  EXPECT_TRUE(pool.Take(8 * kMiB, &more, Cutting::kNo));
  EXPECT_EQ(pool.held_bytes(), 16 * kMiB);

  pool.Give(&more);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, FreeBudgetServesGranulesWithoutCutting) {
  ChunkPool pool(0, 18 * kMiB);
  Chunks large, more;
  ASSERT_TRUE(pool.Take(16 * kMiB, &large));
  pool.Give(&large);

  EXPECT_FALSE(pool.Take(4 * kMiB, &more, Cutting::kNo));
  EXPECT_TRUE(pool.Take(2 * kMiB, &more, Cutting::kNo));
  EXPECT_EQ(pool.held_bytes(), 18 * kMiB);

  pool.Give(&more);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, ChargeReleasesOnlyWhatItNeeds) {
  ChunkPool pool(0, 14 * kMiB);
  Chunks chunks;
  ASSERT_TRUE(pool.Take(14 * kMiB, &chunks));  // a large one and three granules
  pool.Give(&chunks);

  EXPECT_TRUE(pool.Charge(3 * kMiB));

  EXPECT_EQ(pool.held_bytes(), 13 * kMiB);
  EXPECT_EQ(pool.ObtainableBytes(), 11 * kMiB)
      << "the large one, a granule, and room for less than one";
  pool.Discharge(3 * kMiB);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, ChargesCountAgainstTheBudget) {
  ChunkPool pool(0, 8 * kMiB);
  Chunks chunks;
  EXPECT_TRUE(pool.Charge(6 * kMiB));
  EXPECT_FALSE(pool.Take(4 * kMiB, &chunks));
  EXPECT_FALSE(pool.Charge(3 * kMiB));
  pool.Discharge(6 * kMiB);
  EXPECT_TRUE(pool.Take(4 * kMiB, &chunks));
  pool.Give(&chunks);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, AddressesLeaveAGapAndAreReused) {
  AddressArena arena;
  const CUdeviceptr first = arena.Take(4 * kMiB);
  const CUdeviceptr second = arena.Take(4 * kMiB);
  ASSERT_NE(first, 0u);
  EXPECT_EQ(first % kGranuleBytes, 0u);
  EXPECT_GE(second, first + 4 * kMiB + kGranuleBytes);

  arena.Give(first, 4 * kMiB);
  arena.Give(second, 4 * kMiB);
  EXPECT_EQ(arena.Take(10 * kMiB), first) << "neighbouring holes were not merged";
  arena.ReleaseAll();
}

TEST_F(PoolsTest, NoAddressLooksLikeTwoSmallIntegers) {
  // Given ranges across a reservation, some of them in freed places
  constexpr CUdeviceptr kSmall = 16 * kMiB;
  AddressArena arena;
  const CUdeviceptr first = arena.Take(8 * kMiB);
  arena.Give(first, 8 * kMiB);
  for (const size_t bytes :
       {400 * kMiB, 3 * 1024 * kMiB, 2 * kMiB, 4064 * kMiB, 900 * kMiB, 3500 * kMiB}) {
    const CUdeviceptr base = arena.Take(bytes);

    // Then it lies strictly between two multiples of 4 GiB
    ASSERT_NE(base, 0u);
    EXPECT_EQ(base >> 32, (base + bytes - 1) >> 32) << bytes;
    EXPECT_GE(base & 0xffffffff, kSmall) << bytes;
    EXPECT_LE((base + bytes - 1) & 0xffffffff, 0xffffffff - kSmall) << bytes;
  }
  EXPECT_NE(arena.Take(6 * 1024 * kMiB), 0u) << "what is too large for that is placed all the same";
  arena.ReleaseAll();
}

TEST(SlabsTest, EverySizeFitsItsClass) {
  for (size_t bytes : {size_t{1}, size_t{512}, size_t{513}, size_t{4096}, size_t{5000},
                       size_t{100'000}, kMiB - 1}) {
    Ledger ledger;
    Timeline timeline;
    Slabs slabs(&ledger, &timeline);
    ASSERT_TRUE(slabs.NeedsSlab(bytes));
    slabs.AddSlab(bytes, 0x7f0000000000, {});
    const SlabBlock* block = slabs.Take(bytes);
    EXPECT_GE(block->size_bytes, bytes);
    EXPECT_LE(block->size_bytes, std::max<size_t>(512, 2 * bytes));
    EXPECT_EQ(block->base % 512, 0u);
    EXPECT_EQ(ledger.Find(block->base + bytes - 1), block);
  }
}

TEST(SlabsTest, BlocksDoNotOverlapAndEmptySlabIsReleased) {
  Ledger ledger;
  Timeline timeline;
  Slabs slabs(&ledger, &timeline);
  slabs.AddSlab(300'000, 0x7f0000000000, {});
  std::vector<SlabBlock*> taken;
  while (!slabs.NeedsSlab(300'000)) taken.push_back(slabs.Take(300'000));
  std::set<CUdeviceptr> bases;
  for (const SlabBlock* block : taken) bases.insert(block->base);
  EXPECT_EQ(bases.size(), taken.size());
  EXPECT_EQ(slabs.TakeEmpty(), nullptr);

  for (SlabBlock* block : taken) slabs.Give(block, {});
  EXPECT_NE(slabs.TakeEmpty(), nullptr);
  EXPECT_EQ(ledger.Find(0x7f0000000000), nullptr);
  EXPECT_TRUE(slabs.NeedsSlab(300'000));
}

}  // namespace
}  // namespace spillway::interposer
