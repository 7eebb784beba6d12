// Chunks, addresses, slabs and pinned buffers over the simulated driver.
#include <gtest/gtest.h>

#include <set>

#include "interposer/driver/address_arena.h"
#include "interposer/driver/chunk_pool.h"
#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/state/slabs.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

size_t BytesOf(const Chunks& chunks) {
  size_t bytes = 0;
  for (const Chunk* chunk : chunks) bytes += chunk->bytes;
  return bytes;
}

std::vector<size_t> SizesOf(const Chunks& chunks) {
  std::vector<size_t> sizes_mib;
  for (const Chunk* chunk : chunks) sizes_mib.push_back(chunk->bytes / kMiB);
  return sizes_mib;
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

TEST_F(PoolsTest, ChunksAreAsLargeAsWhatTheyAreCreatedForUpToALimit) {
  ChunkPool pool(0, 1024 * kMiB);
  Chunks small, large;
  const driver::MappingCalls before = driver::ReadMappingCalls();

  ASSERT_TRUE(pool.Take(26 * kMiB, &small));
  ASSERT_TRUE(pool.Take(600 * kMiB, &large));

  EXPECT_EQ(SizesOf(small), (std::vector<size_t>{26}));
  EXPECT_EQ(SizesOf(large), (std::vector<size_t>{256, 256, 88}));
  EXPECT_EQ(driver::ReadMappingCalls().Since(before).creates, 4u);

  pool.Give(&small);
  pool.Give(&large);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, AChunkIsCutWhenAllAreTooLarge) {
  ChunkPool pool(0, 16 * kMiB);
  Chunks large, small;
  ASSERT_TRUE(pool.Take(16 * kMiB, &large));
  ASSERT_EQ(large.size(), 1u);
  pool.Give(&large);

  EXPECT_TRUE(pool.Take(14 * kMiB, &small));
  EXPECT_EQ(SizesOf(small), (std::vector<size_t>{14}));
  EXPECT_EQ(pool.held_bytes(), 14 * kMiB) << "what is left of the large one is room";

  pool.Give(&small);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, TheSmallestSufficientChunkIsCut) {
  ChunkPool pool(0, 58 * kMiB);
  Chunks chunks[3], small;
  constexpr size_t kSizes[] = {10 * kMiB, 18 * kMiB, 30 * kMiB};
  for (const size_t i : {0, 1, 2}) ASSERT_TRUE(pool.Take(kSizes[i], &chunks[i]));
  for (Chunks& given : chunks) pool.Give(&given);

  EXPECT_TRUE(pool.Take(6 * kMiB, &small));

  EXPECT_EQ(pool.held_bytes(), 54 * kMiB) << "of 10, 18 and 30 MiB, the first became 6";
  pool.Give(&small);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, ChunksAreNotCutForCallersThatForbidIt) {
  ChunkPool pool(0, 16 * kMiB);
  Chunks large, more;
  ASSERT_TRUE(pool.Take(16 * kMiB, &large));
  pool.Give(&large);

  EXPECT_EQ(pool.BytesToCut(14 * kMiB), 14 * kMiB);
  EXPECT_FALSE(pool.Take(14 * kMiB, &more, Cutting::kNo)) << "the only chunk is too large";
  EXPECT_TRUE(pool.Take(16 * kMiB, &more, Cutting::kNo));
  EXPECT_EQ(pool.held_bytes(), 16 * kMiB);

  pool.Give(&more);
  pool.ReleaseAll();
}

class FragmentedPoolTest : public PoolsTest {
 protected:
  void SetUp() override {
    PoolsTest::SetUp();
    Chunks chunks[4];
    for (const size_t i : {0, 1, 2, 3}) ASSERT_TRUE(pool_.Take(kSizes[i], &chunks[i]));
    for (const size_t i : {0, 1, 2, 3}) chunks_[i] = chunks[i].front();
    for (Chunks& given : chunks) pool_.Give(&given);
    before_ = driver::ReadMappingCalls();
  }
  void TearDown() override {
    pool_.Give(&taken_);
    pool_.ReleaseAll();
    PoolsTest::TearDown();
  }
  static constexpr size_t kSizes[] = {2 * kMiB, 6 * kMiB, 30 * kMiB, 40 * kMiB};
  ChunkPool pool_{0, 96 * kMiB};
  Chunk* chunks_[4] = {};
  Chunks taken_;
  driver::MappingCalls before_{};
};

TEST_F(FragmentedPoolTest, SeveralChunksServeBeforeAnyIsCutOrCreated) {
  EXPECT_EQ(pool_.BytesToCut(72 * kMiB), 0u);
  EXPECT_TRUE(pool_.Take(72 * kMiB, &taken_, Cutting::kNo));

  EXPECT_EQ(SizesOf(taken_), (std::vector<size_t>{40, 30, 2}));
  EXPECT_EQ(driver::ReadMappingCalls().Since(before_).creates, 0u);
}

TEST_F(FragmentedPoolTest, OneIsCreatedInTheRoomForWhatIsMissing) {
  EXPECT_TRUE(pool_.Take(64 * kMiB, &taken_, Cutting::kNo));

  EXPECT_EQ(SizesOf(taken_), (std::vector<size_t>{40, 6, 18}));
  EXPECT_EQ(driver::ReadMappingCalls().Since(before_).releases, 1u) << "of 2 MiB";
}

// Small handles cost the driver as much as large ones (docs/gpu).
TEST_F(FragmentedPoolTest, PiecesBeyondAFewAreMerged) {
  EXPECT_TRUE(pool_.Take(78 * kMiB, &taken_, Cutting::kNo));

  EXPECT_EQ(SizesOf(taken_), (std::vector<size_t>{40, 30, 8}));
  const driver::MappingCalls calls = driver::ReadMappingCalls().Since(before_);
  EXPECT_EQ(calls.releases, 2u) << "of 6 and 2 MiB";
  EXPECT_EQ(calls.creates, 1u);
  EXPECT_EQ(pool_.held_bytes(), 78 * kMiB);
}

// The freed ranges would have to be mapped anew.
TEST_F(FragmentedPoolTest, ChunksThatManyFreedRangesAreMappedOntoAreNotMerged) {
  for (const size_t i : {0, 1, 2}) chunks_[i]->mappings = kMostMappingsLost + 1;

  EXPECT_TRUE(pool_.Take(78 * kMiB, &taken_, Cutting::kNo));

  EXPECT_EQ(SizesOf(taken_), (std::vector<size_t>{40, 30, 6, 2}));
  EXPECT_EQ(driver::ReadMappingCalls().Since(before_).releases, 0u);
}

TEST_F(FragmentedPoolTest, OneChunkAloneIsNotMerged) {
  chunks_[0]->mappings = kMostMappingsLost + 1;

  EXPECT_TRUE(pool_.Take(78 * kMiB, &taken_, Cutting::kNo));

  EXPECT_EQ(SizesOf(taken_), (std::vector<size_t>{40, 2, 36})) << "30 and 6 are merged";
}

// Regression: each time, all went back to the driver and were created again.
TEST_F(PoolsTest, LargestChunksAreNotMerged) {
  ChunkPool pool(0, 600 * kMiB);
  pool.SetMerging(ChunkPool::Merging::kAll);
  Chunks taken;
  ASSERT_TRUE(pool.Take(600 * kMiB, &taken));
  EXPECT_EQ(SizesOf(taken), (std::vector<size_t>{256, 256, 88}));
  pool.Give(&taken);
  const driver::MappingCalls before = driver::ReadMappingCalls();
  ASSERT_TRUE(pool.Take(600 * kMiB, &taken));
  EXPECT_EQ(driver::ReadMappingCalls().Since(before).creates, 0u);
  pool.Give(&taken);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, FreeBudgetServesWithoutCutting) {
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
  Chunks first, second;
  ASSERT_TRUE(pool.Take(8 * kMiB, &first));
  ASSERT_TRUE(pool.Take(6 * kMiB, &second));
  pool.Give(&first);
  pool.Give(&second);

  EXPECT_TRUE(pool.Charge(3 * kMiB));

  EXPECT_EQ(pool.held_bytes(), 11 * kMiB);
  EXPECT_EQ(pool.ObtainableBytes(), 11 * kMiB) << "the larger one, and room";
  pool.Discharge(3 * kMiB);
  pool.ReleaseAll();
}

TEST_F(PoolsTest, FreeChunksGoBackWhole) {
  ChunkPool pool(0, 64 * kMiB);
  Chunks large, small;
  ASSERT_TRUE(pool.Take(48 * kMiB, &large));
  ASSERT_TRUE(pool.Take(16 * kMiB, &small));
  pool.Give(&large);
  pool.Give(&small);

  EXPECT_EQ(pool.ReleaseFree(1 * kMiB), 0u) << "less than a granule";
  EXPECT_EQ(pool.ReleaseFree(10 * kMiB), 16 * kMiB);
  EXPECT_EQ(pool.ReleaseFree(2 * kMiB), 48 * kMiB);
  EXPECT_EQ(pool.held_bytes(), 0u);
}

TEST_F(PoolsTest, AFullDeviceGivesWhatItHasInSmallerChunks) {
  ChunkPool pool(0, 1024 * kMiB);
  size_t free_bytes = 0, total_bytes = 0;
  ASSERT_EQ(Driver().cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
  CUdeviceptr others = 0;
  ASSERT_EQ(Driver().cuMemAlloc_v2(&others, free_bytes / kGranuleBytes * kGranuleBytes - 24 * kMiB),
            CUDA_SUCCESS);
  Chunks chunks;

  EXPECT_FALSE(pool.Take(64 * kMiB, &chunks));

  EXPECT_EQ(pool.held_bytes(), 24 * kMiB);
  EXPECT_EQ(pool.ObtainableBytes(), 24 * kMiB) << "no more is asked for";
  EXPECT_TRUE(pool.Take(24 * kMiB, &chunks));
  pool.Give(&chunks);
  pool.ReleaseAll();
  Driver().cuMemFree_v2(others);
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
  constexpr CUdeviceptr kSmall = 16 * kMiB;
  AddressArena arena;
  const CUdeviceptr first = arena.Take(8 * kMiB);
  arena.Give(first, 8 * kMiB);
  for (const size_t bytes :
       {400 * kMiB, 3 * 1024 * kMiB, 2 * kMiB, 4064 * kMiB, 900 * kMiB, 3500 * kMiB}) {
    const CUdeviceptr base = arena.Take(bytes);

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
    slabs.AddSlab(bytes, 0x7f0000000000, {}, {});
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
  slabs.AddSlab(300'000, 0x7f0000000000, {}, {});
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
