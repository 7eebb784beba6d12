// The program's own virtual memory counts against the budget.
#include <algorithm>
#include <array>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

constexpr size_t kBytes = 16 * kMiB;

CUmemAllocationProp At(CUmemLocationType type, int id) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {type, id};
  return properties;
}

class OwnMappingsTest : public JobTest {
 protected:
  static CUresult Create(size_t bytes, CUmemGenericAllocationHandle* handle) {
    const CUmemAllocationProp properties = At(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    return cuMemCreate(handle, bytes, &properties, 0);
  }
  static CUmemGenericAllocationHandle Created(size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(Create(bytes, &handle), CUDA_SUCCESS);
    return handle;
  }
  static CUdeviceptr Mapped(size_t bytes, CUmemGenericAllocationHandle handle) {
    CUdeviceptr range = 0;
    EXPECT_EQ(cuMemAddressReserve(&range, bytes, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(range, bytes, 0, handle, 0), CUDA_SUCCESS);
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(cuMemSetAccess(range, bytes, &access, 1), CUDA_SUCCESS);
    return range;
  }
  static size_t FreeBytes() {
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    return free_bytes;
  }
};

TEST_F(OwnMappingsTest, OwnMappingsEvictOtherMemory) {
  Start();
  const auto buffers = FilledBuffers(3, kBytes);

  const CUdeviceptr own = Mapped(2 * kBytes, Created(2 * kBytes));
  EXPECT_EQ(cuMemsetD32(own, 9, 2 * kBytes / 4), CUDA_SUCCESS);

  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  for (unsigned int i = 0; i < buffers.size(); ++i) EXPECT_TRUE(IsAll(buffers[i], kBytes, i)) << i;
  EXPECT_TRUE(IsAll(own, 2 * kBytes, 9));
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

TEST_F(OwnMappingsTest, MappingsBeyondTheBudgetAreOutOfMemory) {
  Start();
  Created(3 * kBytes);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(Create(2 * kBytes, &handle), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(FreeBytes(), kBytes);
  EXPECT_EQ(Create(kBytes, &handle), CUDA_SUCCESS);
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

// HAMi-core's users reported crashes where the property was null or named no device.
TEST_F(OwnMappingsTest, T11DriverJudgesLocations) {
  Start();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kBytes, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  const CUmemAllocationProp device = At(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  EXPECT_EQ(cuMemCreate(nullptr, kBytes, &device, 0), CUDA_ERROR_INVALID_VALUE);
  const CUmemAllocationProp nowhere = At(CU_MEM_LOCATION_TYPE_DEVICE, 7);
  EXPECT_EQ(cuMemCreate(&handle, kBytes, &nowhere, 0), CUDA_ERROR_INVALID_DEVICE);
  const CUmemAllocationProp current = At(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0);
  EXPECT_EQ(cuMemCreate(&handle, kBytes, &current, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, kBytes + 1, &device, 0), CUDA_ERROR_INVALID_VALUE);

  const size_t before = FreeBytes();
  for (const CUmemLocationType type : {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA}) {
    const CUmemAllocationProp host = At(type, 0);
    EXPECT_EQ(cuMemCreate(&handle, 128 * kMiB, &host, 0), CUDA_SUCCESS);  // more than the budget
  }
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(OwnMappingsTest, T11AnotherDevicesMemoryIsNotCharged) {
  SetSize("SPILLWAY_SIM_DEVICES", 2);
  Start();
  Filled(kBytes, 1);
  const CUmemAllocationProp other = At(CU_MEM_LOCATION_TYPE_DEVICE, 1);
  const size_t before = FreeBytes();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kBytes, &other, 0), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

// Unmap, release, and release of a retained handle, in every order.
TEST_F(OwnMappingsTest, T12LastPartEndsTheMemory) {
  Start();
  Filled(2 * kMiB, 1);
  const size_t before = FreeBytes();
  std::array<int, 3> order = {0, 1, 2};
  do {
    const CUmemGenericAllocationHandle handle = Created(kBytes);
    const CUdeviceptr range = Mapped(kBytes, handle);
    CUmemGenericAllocationHandle retained = 0;
    ASSERT_EQ(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range + 4096)),
              CUDA_SUCCESS);
    for (size_t step = 0; step < order.size(); ++step) {
      EXPECT_EQ(FreeBytes(), before - kBytes);
      const auto end = order[step] == 0 ? cuMemUnmap(range, kBytes)
                                        : cuMemRelease(order[step] == 1 ? handle : retained);
      ASSERT_EQ(end, CUDA_SUCCESS);
    }
    EXPECT_EQ(FreeBytes(), before);
    ASSERT_EQ(cuMemAddressFree(range, kBytes), CUDA_SUCCESS);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(OwnMappingsTest, T12HandlesRetainedAfterTheirReleaseHoldTheMemory) {
  Start();
  Filled(2 * kMiB, 1);
  const size_t before = FreeBytes();
  const CUmemGenericAllocationHandle handle = Created(kBytes);
  const CUdeviceptr range = Mapped(kBytes, handle);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  CUmemGenericAllocationHandle retained = 0;
  ASSERT_EQ(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range)), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(range, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before - kBytes);
  const CUdeviceptr again = Mapped(kBytes, retained);
  ASSERT_EQ(cuMemRelease(retained), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before - kBytes);
  ASSERT_EQ(cuMemUnmap(again, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(OwnMappingsTest, T12ExportedHandlesBelongToTheDriver) {
  Start();
  Filled(2 * kMiB, 1);
  const size_t before = FreeBytes();
  CUmemAllocationProp properties = At(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  ASSERT_EQ(cuMemCreate(&handle, kBytes, &properties, 0), CUDA_SUCCESS);
  int file = -1;
  ASSERT_EQ(
      cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_SUCCESS);
  ASSERT_EQ(cuMemImportFromShareableHandle(&imported,
                                           reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before - kBytes);
  ASSERT_EQ(cuMemRelease(imported), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before - kBytes);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(OwnMappingsTest, RefusedReleasesEndNothing) {
  Start();
  Filled(2 * kMiB, 1);
  const CUmemGenericAllocationHandle handle = Created(kBytes);
  const CUdeviceptr range = Mapped(kBytes, handle);
  const size_t before = FreeBytes();
  EXPECT_EQ(cuMemUnmap(range, kBytes / 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemRelease(handle + 1000), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(FreeBytes(), before);
}

}  // namespace
}  // namespace spillway::regressions
