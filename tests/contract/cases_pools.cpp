// Memory pools that the program creates: statistics, destruction, pointer attributes.
#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

CUmemoryPool CreatePool(CUdevice device) {
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), "no memory pools");
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuMemPoolCreate(&pool, &properties));
  return pool;
}

cuuint64_t Read(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  ASSERT_OK(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

CUdeviceptr From(CUmemoryPool pool, std::size_t size_bytes) {
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAllocFromPoolAsync(&address, size_bytes, pool, nullptr));
  return address;
}

}  // namespace

CONTRACT(OwnPool, KeepsMemoryUpToItsThreshold, "cuda.h:13378 cuMemPoolTrimTo, RELEASE_THRESHOLD") {
  const CUmemoryPool pool = CreatePool(UseDevice());
  cuuint64_t threshold = ~cuuint64_t{0};
  ASSERT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  const CUdeviceptr kept = From(pool, 8 * kMiB), freed = From(pool, 64 * kMiB);
  ASSERT_OK(cuMemFreeAsync(freed, nullptr));
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_TRUE(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 72 * kMiB);
  ASSERT_OK(cuMemPoolTrimTo(pool, 0));
  EXPECT_TRUE(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 8 * kMiB);
  EXPECT_TRUE(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 72 * kMiB);
  EXPECT_TRUE(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 72 * kMiB);
  ASSERT_OK(cuMemFreeAsync(kept, nullptr));
}

CONTRACT(OwnPool, ReleasesMemoryAtAWaitWithoutAThreshold,
         "programming guide, physical page caching behavior") {
  const CUmemoryPool pool = CreatePool(UseDevice());
  ASSERT_OK(cuMemFreeAsync(From(pool, 64 * kMiB), nullptr));
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), cuuint64_t{0});
}

CONTRACT(OwnPool, HighWatermarksStartAgainAtTheCurrentLevel, "cuda.h:13421 cuMemPoolSetAttribute") {
  const CUmemoryPool pool = CreatePool(UseDevice());
  const CUdeviceptr kept = From(pool, 8 * kMiB);
  ASSERT_OK(cuMemFreeAsync(From(pool, 32 * kMiB), nullptr));
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_TRUE(Read(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 40 * kMiB);
  cuuint64_t zero = 0;
  ASSERT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  EXPECT_EQ(Read(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH),
            Read(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  EXPECT_TRUE(Read(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 8 * kMiB);
  ASSERT_OK(cuMemFreeAsync(kept, nullptr));
}

CONTRACT(OwnPool, MemoryOutlivesItsPool, "cuda.h:13575 cuMemPoolDestroy: released when freed") {
  const CUmemoryPool pool = CreatePool(UseDevice());
  const CUdeviceptr words = From(pool, 4 * kMiB);
  Fill(words, 5, kMiB);
  ASSERT_OK(cuStreamSynchronize(nullptr));
  ASSERT_OK(cuMemPoolDestroy(pool));
  EXPECT_TRUE(AllWordsAre(words, kMiB, 5));
  EXPECT_OK(cuMemFreeAsync(words, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
}

CONTRACT(OwnPool, DefaultReplacesADestroyedCurrentPool,
         "cuda.h:13575 cuMemPoolDestroy: current mempool") {
  const CUdevice device = UseDevice();
  const CUmemoryPool pool = CreatePool(device);
  CUmemoryPool current = nullptr, standard = nullptr;
  ASSERT_OK(cuDeviceSetMemPool(device, pool));
  ASSERT_OK(cuMemPoolDestroy(pool));
  ASSERT_OK(cuDeviceGetMemPool(&current, device));
  ASSERT_OK(cuDeviceGetDefaultMemPool(&standard, device));
  EXPECT_TRUE(current == standard);
  CUdeviceptr words = 0;
  EXPECT_OK(cuMemAllocAsync(&words, kMiB, nullptr));
}

CONTRACT(OwnPool, DefaultPoolCannotBeDestroyed, "cuda.h:13575 cuMemPoolDestroy: default mempool") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), "no memory pools");
  CUmemoryPool standard = nullptr;
  ASSERT_OK(cuDeviceGetDefaultMemPool(&standard, device));
  EXPECT_EQ(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Managed, HostAndDeviceShareManagedMemory, "cuda.h:9194 cuMemAllocManaged") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY), "no managed memory");
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAllocManaged(&address, 4 * kMiB, CU_MEM_ATTACH_GLOBAL));
  auto* const words = reinterpret_cast<std::uint32_t*>(address);
  words[0] = 3;
  Launch("add", 1, 32, nullptr, address, std::uint32_t{4}, std::uint64_t{1});
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(words[0], 7u);
  unsigned managed = 0;
  ASSERT_OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address + 64));
  EXPECT_EQ(managed & 0xFF, 1u);
  EXPECT_OK(cuMemFree(address));
}

CONTRACT(Managed, HintsChangeNoBytes, "cuda.h:14434 cuMemPrefetchAsync, cuMemAdvise") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS),
              "no concurrent managed access");
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAllocManaged(&address, 4 * kMiB, CU_MEM_ATTACH_GLOBAL));
  Fill(address, 8, kMiB);
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, device}, host{CU_MEM_LOCATION_TYPE_HOST, 0};
  EXPECT_OK(cuMemAdvise(address, 4 * kMiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
  EXPECT_OK(cuMemAdvise(address, 4 * kMiB, CU_MEM_ADVISE_SET_ACCESSED_BY, here));
  EXPECT_OK(cuMemPrefetchAsync(address, 4 * kMiB, here, 0, nullptr));
  EXPECT_OK(cuMemPrefetchAsync(address, 4 * kMiB, host, 0, nullptr));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_TRUE(AllWordsAre(address, kMiB, 8));
  EXPECT_OK(cuMemFree(address));
}

CONTRACT(Managed, BadArgumentsAreInvalid, "cuda.h:9194 cuMemAllocManaged") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY), "no managed memory");
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocManaged(&address, kMiB, 0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace spillway::contract
