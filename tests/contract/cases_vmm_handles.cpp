// Virtual memory management: a handle's memory across maps, releases, addresses and processes.
#include <unistd.h>

#include <algorithm>

#include "tests/contract/vmm_device.h"

namespace spillway::contract {
namespace {

CUdeviceptr MapAt(std::size_t size_bytes, CUmemGenericAllocationHandle handle) {
  const CUdeviceptr range = Reserve(size_bytes);
  Map(range, size_bytes, handle);
  ASSERT_OK(SetAccess(range, size_bytes));
  return range;
}

}  // namespace

CONTRACT(VmmHandle, ReleaseBeforeUnmapKeepsTheMemory, "cuda.h:12861 cuMemRelease") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const auto handle = CreateHandle(step);
  const CUdeviceptr range = MapAt(step, handle);
  ASSERT_OK(cuMemRelease(handle));
  Fill(range, 4, step / 4);
  EXPECT_TRUE(AllWordsAre(range, step / 4, 4));
  EXPECT_OK(cuMemUnmap(range, step));
}

CONTRACT_ALONE(VmmHandle, MemoryReturnsWhenReleasedAndUnmapped, "cuda.h:12861 cuMemRelease") {
  UseVmm();
  std::size_t before = 0, held = 0, after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&before, &total));
  const auto handle = CreateHandle(256 * kMiB);
  const CUdeviceptr range = MapAt(256 * kMiB, handle);
  ASSERT_OK(cuMemRelease(handle));
  ASSERT_OK(cuMemGetInfo(&held, &total));
  EXPECT_TRUE(held + 256 * kMiB <= before);
  ASSERT_OK(cuMemUnmap(range, 256 * kMiB));
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_TRUE(after + 8 * kMiB >= before);
}

CONTRACT(VmmHandle, RetainNamesTheMappedHandle, "cuda.h:13262 cuMemRetainAllocationHandle") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const auto handle = CreateHandle(step);
  const CUdeviceptr range = MapAt(step, handle);
  CUmemGenericAllocationHandle retained = 0;
  ASSERT_OK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range + 4096)));
  EXPECT_EQ(retained, handle);
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemUnmap(range, step));
  const CUdeviceptr again = MapAt(step, retained);  // the retained reference still holds the memory
  EXPECT_TRUE(again != 0);
  EXPECT_OK(cuMemRelease(retained));
}

CONTRACT(VmmHandle, RetainOfAnUnmappedAddressFails, "cuda.h:13262 cuMemRetainAllocationHandle") {
  UseVmm();
  CUmemGenericAllocationHandle retained = 0;
  const CUdeviceptr range = Reserve(HandleBytes());
  EXPECT_EQ(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range)),
            CUDA_ERROR_INVALID_VALUE);
  OBSERVE("retain_of_ordinary_allocation",
          cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(Allocate(kMiB))));
}

CONTRACT(VmmHandle, TwoAddressesShowTheSameBytes,
         "CUDA programming guide, virtual aliasing; docs/gpu, item 8") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const auto handle = CreateHandle(step);
  const CUdeviceptr first = MapAt(step, handle), second = MapAt(step, handle);
  Fill(first, 21, step / 4);
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_TRUE(AllWordsAre(second, step / 4, 21));
  Fill(second, 22, step / 4);
  const CUdeviceptr copy = Allocate(step);
  Launch("copy", 64, 256, nullptr, copy, first, std::uint64_t{step / 4});
  EXPECT_TRUE(AllWordsAre(copy, step / 4, 22));
}

CONTRACT(VmmHandle, ContentsSurviveAMoveToAnotherAddress,
         "cuda.h:13082 cuMemUnmap; docs/architecture.md") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const auto handle = CreateHandle(step);
  const CUdeviceptr first = MapAt(step, handle);
  Fill(first, 33, step / 4);
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuMemUnmap(first, step));
  EXPECT_TRUE(AllWordsAre(MapAt(step, handle), step / 4, 33));
}

CONTRACT(VmmHandle, AddressStaysValidOverAnotherHandle, "docs/architecture.md: stable addresses") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = MappedRange(1);
  Fill(range, 1, step / 4);
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuMemUnmap(range, step));
  Map(range, step, CreateHandle(step));
  ASSERT_OK(SetAccess(range, step));
  Fill(range, 2, step / 4);
  EXPECT_TRUE(AllWordsAre(range, step / 4, 2));
}

CONTRACT(VmmHandle, CopiesAndSetsCrossMapBorders, "cuda.h:9709 cuMemcpyDtoH") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = MappedRange(2);
  EXPECT_OK(cuMemsetD32(range + step - 4096, 5, 2048));
  EXPECT_TRUE(AllWordsAre(range + step - 4096, 2048, 5));
  EXPECT_OK(cuMemcpyDtoD(range, range + step - 4096, 8192));
  EXPECT_TRUE(AllWordsAre(range, 2048, 5));
}

CONTRACT(VmmHandle, AddressRangeIsObserved, "reference/cuda.md 1.6: the handle's bounds") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = MappedRange(3);
  CUdeviceptr base = 0;
  std::size_t size_bytes = 0;
  OBSERVE("address_range", cuMemGetAddressRange(&base, &size_bytes, range + step + 64));
  OBSERVE("base_minus_reservation_in_handles", (base - range) / step);
  OBSERVE("size_in_handles", size_bytes / step);
}

CONTRACT(VmmHandle, RangeAttributesDescribeTheReservation, "cuda.h:14357 cuPointerGetAttribute") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = MappedRange(3);
  CUdeviceptr start = 0;
  std::size_t size_bytes = 0;
  ASSERT_OK(
      cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, range + step + 64));
  ASSERT_OK(cuPointerGetAttribute(&size_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, range + step + 64));
  EXPECT_EQ(start, range);
  EXPECT_EQ(size_bytes, 3 * step);
}

CONTRACT(VmmHandle, OrdinaryFreeRefusesMappedMemory, "cuda.h:8708 cuMemFree") {
  UseVmm();
  EXPECT_EQ(cuMemFree(MappedRange(1)), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(VmmExport, ExportNeedsTheTypeRequestedAtCreate,
         "cuda.h:13168 cuMemExportToShareableHandle") {
  const CUdevice device = UseVmm();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
              "no fd handles");
  int fd = -1;
  const auto handle = CreateHandle(HandleBytes());
  EXPECT_EQ(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(VmmExport, ImportedHandleIsTheSameMemory, "cuda.h:13199 cuMemImportFromShareableHandle") {
  const CUdevice device = UseVmm();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
              "no fd handles");
  const std::size_t step = HandleBytes();
  CUmemAllocationProp properties = DeviceMemory();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  ASSERT_OK(cuMemCreate(&handle, step, &properties, 0));
  int fd = -1;
  ASSERT_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ASSERT_OK(cuMemImportFromShareableHandle(&imported,
                                           reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);
  Fill(MapAt(step, handle), 77, step / 4);
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_TRUE(AllWordsAre(MapAt(step, imported), step / 4, 77));
}

CONTRACT(VmmHost, KernelAndProcessorShareTheRange,
         "docs/architecture.md: park on the host; cuda.h:13116 cuMemSetAccess") {
  UseHostVmm();
  const CUmemAllocationProp properties = HostMemory(0);
  const std::size_t step = Granularity(properties);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemCreate(&handle, step, &properties, 0));
  const CUdeviceptr range = Reserve(step);
  Map(range, step, handle);
  CUmemAccessDesc access[2]{};
  access[0].location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access[1].location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  access[0].flags = access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  ASSERT_OK(cuMemSetAccess(range, step, access, 2));
  Fill(range, 12, step / 4);
  ASSERT_OK(cuCtxSynchronize());
  const auto* words = reinterpret_cast<volatile std::uint32_t*>(range);
  EXPECT_EQ(std::uint32_t{words[0]}, 12u);
  EXPECT_EQ(std::uint32_t{words[step / 4 - 1]}, 12u);
  EXPECT_TRUE(AllWordsAre(range, step / 4, 12));
  OBSERVE("granularity_bytes", step);
}

CONTRACT_ALONE(VmmHost, TakesNoDeviceMemory, "cuda.h:12834 cuMemCreate") {
  UseHostVmm();
  const CUmemAllocationProp properties = HostMemory(0);
  std::size_t before = 0, after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&before, &total));
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemCreate(&handle, 128 * kMiB, &properties, 0));
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_TRUE(after + 32 * kMiB >= before);
}

CONTRACT(VmmHost, AddressMovesBetweenDeviceAndHost, "docs/architecture.md: park on the host") {
  UseHostVmm();
  const CUmemAllocationProp host = HostMemory(0);
  const std::size_t step = std::max(HandleBytes(), Granularity(host));
  CUmemGenericAllocationHandle parked = 0;
  ASSERT_OK(cuMemCreate(&parked, step, &host, 0));
  const CUdeviceptr alias = MapAt(step, parked);
  const CUdeviceptr range = MapAt(step, CreateHandle(step));
  Fill(range, 44, step / 4);
  ASSERT_OK(cuMemcpyDtoD(alias, range, step));
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuMemUnmap(range, step));
  Map(range, step, parked);
  ASSERT_OK(SetAccess(range, step));
  Launch("add", 64, 256, nullptr, range, std::uint32_t{1}, std::uint64_t{step / 4});
  EXPECT_TRUE(AllWordsAre(range, step / 4, 45));
  EXPECT_TRUE(AllWordsAre(alias, step / 4, 45));
}

// The node agent makes slabs this way (agent/pool/driver_worker.h).
CONTRACT(VmmHost, HostMemoryIsCreatedExportedAndWrittenWithoutAContext,
         "cuda.h:12834 cuMemCreate and its kin: none names a missing context among its errors") {
  const CUdevice device = UseHostVmm();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
              "no fd handles");
  ASSERT_OK(cuCtxSetCurrent(nullptr));
  CUmemAllocationProp properties = HostMemory(0);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const std::size_t step = Granularity(properties);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemCreate(&handle, step, &properties, 0));
  int fd = -1;
  ASSERT_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  close(fd);
  const CUdeviceptr range = Reserve(step);
  Map(range, step, handle);
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  ASSERT_OK(cuMemSetAccess(range, step, &access, 1));
  auto* const words = reinterpret_cast<volatile std::uint32_t*>(range);
  words[step / 4 - 1] = 5;
  EXPECT_EQ(std::uint32_t{words[step / 4 - 1]}, 5u);
  EXPECT_OK(cuMemUnmap(range, step));
  EXPECT_OK(cuMemRelease(handle));
}

CONTRACT(VmmHost, CurrentNodeIsNoLocationForAHandle,
         "cuda.h:12834 cuMemCreate: HOST_NUMA_CURRENT is refused") {
  UseHostVmm();
  CUmemAllocationProp properties = HostMemory(0);
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(VmmHost, DeviceMemoryRefusesHostAccess, "cuda.h:13116 cuMemSetAccess") {
  UseHostVmm();
  const CUdeviceptr range = MappedRange(1);
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult result = cuMemSetAccess(range, HandleBytes(), &access, 1);
  EXPECT_TRUE(result != CUDA_SUCCESS);
  OBSERVE("host_access_to_device_memory", result);
}

}  // namespace spillway::contract
