// Stream-ordered allocation and memory pools.
#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

CUdevice UsePools() {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), "no memory pools");
  return device;
}

CUmemoryPool DefaultPool(CUdevice device) {
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuDeviceGetDefaultMemPool(&pool, device));
  return pool;
}

CUmemoryPool CreateDevicePool(CUdevice device) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuMemPoolCreate(&pool, &properties));
  return pool;
}

cuuint64_t AttributeOf(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  ASSERT_OK(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

CUdeviceptr AllocateAsync(std::size_t size_bytes, CUstream stream) {
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAllocAsync(&address, size_bytes, stream));
  return address;
}

}  // namespace

CONTRACT(AsyncAllocation, IsUsableInItsStream, "cuda.h:13352 cuMemAllocAsync") {
  UsePools();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = AllocateAsync(4 * kMiB, stream);
  Fill(words, 9, kMiB, stream);
  std::vector<std::uint32_t> read(kMiB);
  ASSERT_OK(cuMemcpyDtoHAsync(read.data(), words, 4 * kMiB, stream));
  EXPECT_OK(cuMemFreeAsync(words, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(read[0], 9u);
  EXPECT_EQ(read[kMiB - 1], 9u);
}

CONTRACT(AsyncAllocation, ReuseInTheSameStreamKeepsOrder, "cuda.h:13319 cuMemFreeAsync") {
  UsePools();
  const CUstream stream = MakeStream();
  const CUdeviceptr result = Allocate(4);
  CUdeviceptr previous = 0;
  bool reused = false;
  for (std::uint32_t round = 0; round < 20; ++round) {
    const CUdeviceptr words = AllocateAsync(2 * kMiB, stream);
    Fill(words, round, 1000, stream);
    Launch("copy", 1, 32, stream, result, words, std::uint64_t{1});
    ASSERT_OK(cuMemFreeAsync(words, stream));
    reused = reused || words == previous;
    previous = words;
  }
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(ReadWord(result), 19u);
  OBSERVE("address_reused_at_once", reused);
}

CONTRACT(AsyncAllocation, AnotherStreamMayUseItAfterAnEvent, "cuda.h:13352 cuMemAllocAsync") {
  UsePools();
  const CUstream owner = MakeStream(), other = MakeStream();
  const CUevent ready = MakeEvent(), done = MakeEvent();
  const CUdeviceptr words = AllocateAsync(kMiB, owner);
  ASSERT_OK(cuEventRecord(ready, owner));
  ASSERT_OK(cuStreamWaitEvent(other, ready, 0));
  Fill(words, 6, 100, other);
  std::uint32_t word = 0;
  ASSERT_OK(cuMemcpyDtoHAsync(&word, words, 4, other));
  ASSERT_OK(cuEventRecord(done, other));
  ASSERT_OK(cuStreamWaitEvent(owner, done, 0));
  EXPECT_OK(cuMemFreeAsync(words, owner));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(word, 6u);
}

CONTRACT(AsyncAllocation, SynchronousFreeAcceptsPoolMemory, "cuda.h:8708 cuMemFree") {
  UsePools();
  const CUdeviceptr words = AllocateAsync(kMiB, nullptr);
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_OK(cuMemFree(words));
}

CONTRACT(AsyncAllocation, AsyncFreeAcceptsOrdinaryMemory,
         "CUDA programming guide, stream ordered allocator") {
  UsePools();
  const CUdeviceptr words = Allocate(8 * kMiB);
  Fill(words, 1, kMiB);
  EXPECT_OK(cuMemFreeAsync(words, nullptr));
  EXPECT_OK(cuCtxSynchronize());
}

CONTRACT(AsyncAllocation, BadArgumentsAreInvalid, "cuda.h:13352 cuMemAllocAsync") {
  UsePools();
  EXPECT_EQ(cuMemAllocAsync(nullptr, 256, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr address = 0;
  OBSERVE("zero_bytes", cuMemAllocAsync(&address, 0, nullptr));
  EXPECT_EQ(cuMemFreeAsync(CUdeviceptr{0x1234567000}, nullptr), CUDA_ERROR_INVALID_VALUE);
}

// Alone: before it refuses, the driver grows its pool by all memory that is free (H100, driver
// 580).
CONTRACT_ALONE(AsyncAllocation, MoreThanTheDeviceIsOutOfMemory, "cuda.h:13352 cuMemAllocAsync") {
  const CUdevice device = UsePools();
  std::size_t total_bytes = 0;
  ASSERT_OK(cuDeviceTotalMem(&total_bytes, device));
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAllocAsync(&address, 2 * total_bytes, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(cuMemAllocAsync(&address, kMiB, nullptr));
}

CONTRACT(Pool, DefaultPoolIsCurrentAtFirst, "cuda.h:5628 cuDeviceGetMemPool") {
  const CUdevice device = UsePools();
  CUmemoryPool current = nullptr;
  ASSERT_OK(cuDeviceGetMemPool(&current, device));
  EXPECT_TRUE(current == DefaultPool(device));
  const CUmemoryPool own = CreateDevicePool(device);
  ASSERT_OK(cuDeviceSetMemPool(device, own));
  ASSERT_OK(cuDeviceGetMemPool(&current, device));
  EXPECT_TRUE(current == own);
}

CONTRACT(Pool, AttributesHaveTheirDefaults, "cuda.h:13421 cuMemPoolSetAttribute") {
  const CUmemoryPool pool = DefaultPool(UsePools());
  EXPECT_EQ(AttributeOf(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), cuuint64_t{0});
  EXPECT_EQ(AttributeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), cuuint64_t{0});
  int enabled = 0;
  ASSERT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &enabled));
  EXPECT_EQ(enabled, 1);
  ASSERT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &enabled));
  EXPECT_EQ(enabled, 1);
  ASSERT_OK(
      cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &enabled));
  EXPECT_EQ(enabled, 1);
}

CONTRACT(Pool, ThresholdIsReadBack, "cuda.h:13421 cuMemPoolSetAttribute") {
  const CUmemoryPool pool = DefaultPool(UsePools());
  cuuint64_t threshold = ~cuuint64_t{0};
  ASSERT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  EXPECT_EQ(AttributeOf(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), threshold);
}

CONTRACT(Pool, UsedAndReservedCountHeldMemory, "cuda.h:13468 cuMemPoolGetAttribute") {
  const CUmemoryPool pool = DefaultPool(UsePools());
  const CUdeviceptr first = AllocateAsync(8 * kMiB, nullptr);
  const CUdeviceptr second = AllocateAsync(4 * kMiB, nullptr);
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_TRUE(AttributeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 12 * kMiB);
  EXPECT_TRUE(AttributeOf(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 12 * kMiB);
  ASSERT_OK(cuMemFreeAsync(first, nullptr));
  ASSERT_OK(cuMemFreeAsync(second, nullptr));
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_EQ(AttributeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), cuuint64_t{0});
  EXPECT_TRUE(AttributeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 12 * kMiB);
  OBSERVE("reserved_after_sync_with_threshold_0",
          AttributeOf(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
}

CONTRACT(Pool, HighWatermarksAreResetToZeroOnly, "cuda.h:13421 cuMemPoolSetAttribute") {
  const CUmemoryPool pool = DefaultPool(UsePools());
  const CUdeviceptr words = AllocateAsync(8 * kMiB, nullptr);
  ASSERT_OK(cuMemFreeAsync(words, nullptr));
  ASSERT_OK(cuStreamSynchronize(nullptr));
  cuuint64_t value = 5;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value),
            CUDA_ERROR_INVALID_VALUE);
  value = 0;
  EXPECT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  EXPECT_EQ(AttributeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), cuuint64_t{0});
}

CONTRACT(Pool, TrimReleasesFreeMemory, "cuda.h:13378 cuMemPoolTrimTo") {
  const CUmemoryPool pool = DefaultPool(UsePools());
  cuuint64_t threshold = ~cuuint64_t{0};
  ASSERT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  const CUdeviceptr words = AllocateAsync(64 * kMiB, nullptr);
  ASSERT_OK(cuMemFreeAsync(words, nullptr));
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_TRUE(AttributeOf(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * kMiB);
  ASSERT_OK(cuMemPoolTrimTo(pool, 0));
  EXPECT_EQ(AttributeOf(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), cuuint64_t{0});
}

CONTRACT(Pool, CreatedPoolServesAllocations, "cuda.h:13685 cuMemAllocFromPoolAsync") {
  const CUdevice device = UsePools();
  const CUmemoryPool pool = CreateDevicePool(device);
  const CUstream stream = MakeStream();
  CUdeviceptr words = 0;
  ASSERT_OK(cuMemAllocFromPoolAsync(&words, 4 * kMiB, pool, stream));
  Fill(words, 2, kMiB, stream);
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(AllWordsAre(words, kMiB, 2));
  EXPECT_TRUE(AttributeOf(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 4 * kMiB);
  EXPECT_EQ(AttributeOf(DefaultPool(device), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), cuuint64_t{0});
  ASSERT_OK(cuMemFreeAsync(words, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuMemPoolDestroy(pool));
}

CONTRACT(Pool, PointerNamesItsPool, "cuda.h:14357 cuPointerGetAttribute") {
  const CUmemoryPool pool = DefaultPool(UsePools());
  CUmemoryPool named = nullptr;
  const CUdeviceptr words = AllocateAsync(kMiB, nullptr);
  ASSERT_OK(cuPointerGetAttribute(&named, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, words));
  EXPECT_TRUE(named == pool);
  ASSERT_OK(cuPointerGetAttribute(&named, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, Allocate(kMiB)));
  EXPECT_TRUE(named == nullptr);
}

CONTRACT(Pool, OwnDeviceHasAccess, "cuda.h:13499 cuMemPoolGetAccess") {
  const CUdevice device = UsePools();
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  ASSERT_OK(cuMemPoolGetAccess(&flags, DefaultPool(device), &location));
  EXPECT_EQ(static_cast<int>(flags), static_cast<int>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

}  // namespace spillway::contract
