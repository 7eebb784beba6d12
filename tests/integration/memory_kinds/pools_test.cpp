// Pools under a budget: their memory moves, and their statistics are the driver's.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

class PoolsTest : public JobTest {
 protected:
  CUmemPoolProps Properties() const {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    return properties;
  }
  static CUmemoryPool Created(const CUmemPoolProps& properties) {
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    return pool;
  }
  static CUdeviceptr From(CUmemoryPool pool, size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&address, bytes, pool, nullptr), CUDA_SUCCESS);
    return address;
  }
  static cuuint64_t Read(CUmemoryPool pool, CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
    return value;
  }
};

TEST_F(PoolsTest, MemoryOfAPoolMovesAndItsStatisticsStay) {
  Start();
  const CUmemoryPool pool = Created(Properties());
  std::vector<CUdeviceptr> pieces;
  for (unsigned i = 0; i < 12; ++i) {
    pieces.push_back(From(pool, 8 * kMiB));
    ASSERT_EQ(cuMemsetD32(pieces.back(), i, 2 << 20), CUDA_SUCCESS);
  }
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 96 * kMiB);
  for (unsigned i = 0; i < 12; ++i) EXPECT_TRUE(IsAll(pieces[i], 8 * kMiB, i));
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  for (const CUdeviceptr piece : pieces) ASSERT_EQ(cuMemFreeAsync(piece, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 96 * kMiB);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

TEST_F(PoolsTest, MemoryOutlivesItsPool) {
  Start();
  const CUmemoryPool pool = Created(Properties());
  const CUdeviceptr piece = From(pool, 8 * kMiB);
  ASSERT_EQ(cuMemsetD32(piece, 7, 2 << 20), CUDA_SUCCESS);
  ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  // A new pool, which may reuse the old one's handle.
  const CUmemoryPool next = Created(Properties());
  EXPECT_EQ(Read(next, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  FilledBuffers(12, 8 * kMiB);
  EXPECT_TRUE(IsAll(piece, 8 * kMiB, 7));
  EXPECT_EQ(cuMemFreeAsync(piece, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Read(next, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
}

TEST_F(PoolsTest, ReservedMemoryShrinksToTheThresholdAtAWait) {
  Start();
  const CUmemoryPool pool = Created(Properties());
  cuuint64_t threshold = 16 * kMiB;
  ASSERT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
            CUDA_SUCCESS);
  const CUdeviceptr piece = From(pool, 32 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(piece, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 16 * kMiB);
  ASSERT_EQ(cuMemPoolTrimTo(pool, 4 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 4 * kMiB);
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 32 * kMiB);
}

TEST_F(PoolsTest, CurrentPoolServesCallsWithoutAPool) {
  Start();
  const CUmemoryPool pool = Created(Properties());
  CUdeviceptr before = 0, after = 0;
  ASSERT_EQ(cuMemAllocAsync(&before, 2 * kMiB, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuDeviceSetMemPool(device_, pool), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&after, 4 * kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4 * kMiB);
  CUmemoryPool named = nullptr;
  ASSERT_EQ(cuPointerGetAttribute(&named, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, before),
            CUDA_SUCCESS);
  EXPECT_NE(named, pool);
  ASSERT_EQ(cuPointerGetAttribute(&named, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, after),
            CUDA_SUCCESS);
  EXPECT_EQ(named, pool);
  // A synchronous free accepts pool memory too.
  EXPECT_EQ(cuMemFree(after), CUDA_SUCCESS);
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
}

TEST_F(PoolsTest, PoolWithAMaximumSizeIsDriverServedAndCharged) {
  Start();
  CUmemPoolProps properties = Properties();
  properties.maxSize = 1024 * kMiB;
  const CUmemoryPool pool = Created(properties);
  const auto buffers = FilledBuffers(7, 8 * kMiB);
  const CUdeviceptr piece = From(pool, 32 * kMiB);
  ASSERT_EQ(cuMemsetD32(piece, 9, 8 << 20), CUDA_SUCCESS);
  for (unsigned i = 0; i < 7; ++i) EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, i));
  EXPECT_TRUE(IsAll(piece, 32 * kMiB, 9));
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  CUdeviceptr too_much = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&too_much, 128 * kMiB, pool, nullptr),
            CUDA_ERROR_OUT_OF_MEMORY);
}

// Freed memory stays charged until the pool is trimmed.
TEST_F(PoolsTest, FreedMemoryThatADriverServedPoolKeepsStaysCharged) {
  Start();
  CUmemPoolProps properties = Properties();
  properties.maxSize = 1024 * kMiB;
  const CUmemoryPool pool = Created(properties);
  cuuint64_t threshold = ~cuuint64_t{0};
  ASSERT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
            CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    const CUdeviceptr piece = From(pool, 32 * kMiB);
    ASSERT_EQ(cuMemFreeAsync(piece, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    const auto buffers = FilledBuffers(8, 8 * kMiB);
    for (unsigned i = 0; i < 8; ++i) EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, i));
    for (const CUdeviceptr buffer : buffers) ASSERT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
  }
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  ASSERT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  const CUdeviceptr large = Allocated(60 * kMiB);
  EXPECT_EQ(cuMemsetD32(large, 1, 15 << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

TEST_F(PoolsTest, PoolOnTheHostTakesNothingFromTheBudget) {
  Start();
  CUmemPoolProps properties = Properties();
  properties.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  const CUmemoryPool pool = Created(properties);
  Filled(2 * kMiB, 1);
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
  const CUdeviceptr piece = From(pool, 128 * kMiB);
  ASSERT_EQ(cuMemGetInfo(&after, &total), CUDA_SUCCESS);
  EXPECT_EQ(before, after);
  EXPECT_EQ(cuMemFreeAsync(piece, nullptr), CUDA_SUCCESS);
}

}  // namespace
}  // namespace spillway::regressions
