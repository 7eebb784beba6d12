// Virtual memory management: reservations, handles, mappings, access, unmapping.
#include "tests/contract/vmm_device.h"

namespace spillway::contract {

CONTRACT(VmmReserve, SizeIsAWholeNumberOfPages, "cuda.h:12747 cuMemAddressReserve") {
  UseVmm();
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAddressReserve(&address, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressReserve(&address, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressReserve(&address, HandleBytes(), 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
  OBSERVE("alignment_of_three_pages", cuMemAddressReserve(&address, HandleBytes(), 3 * 4096, 0, 0));
  OBSERVE("one_host_page", cuMemAddressReserve(&address, 4096, 0, 0, 0));
}

CONTRACT(VmmReserve, AlignmentIsKept, "cuda.h:12747 cuMemAddressReserve") {
  UseVmm();
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAddressReserve(&address, HandleBytes(), 64 * kMiB, 0, 0));
  EXPECT_EQ(address % (64 * kMiB), CUdeviceptr{0});
}

CONTRACT_ALONE(VmmReserve, TakesNoMemory, "cuda.h:12747 cuMemAddressReserve") {
  UseVmm();
  std::size_t before = 0, after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&before, &total));
  Reserve(total * 2);  // more addresses than the device has bytes
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_TRUE(after + 16 * kMiB >= before);
}

CONTRACT(VmmReserve, HintIsOnlyAHint, "cuda.h:12747 cuMemAddressReserve") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr taken = Reserve(step);
  CUdeviceptr address = 0;
  EXPECT_OK(cuMemAddressReserve(&address, step, 0, taken, 0));
  EXPECT_TRUE(address != taken);
}

CONTRACT(VmmReserve, FreeNeedsTheWholeReservation, "cuda.h:12768 cuMemAddressFree") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(2 * step);
  EXPECT_EQ(cuMemAddressFree(range, step), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(range + step, step), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemAddressFree(range, 2 * step));
  EXPECT_EQ(cuMemAddressFree(range, 2 * step), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(VmmReserve, FreeWhileMappedIsObserved,
         "cuda.h:12768 cuMemAddressFree says nothing of mappings") {
  UseVmm();
  OBSERVE("free_while_mapped", cuMemAddressFree(MappedRange(1), HandleBytes()));
}

CONTRACT(VmmCreate, GranularityIsAPowerOfTwo, "cuda.h:13221 cuMemGetAllocationGranularity") {
  UseVmm();
  const CUmemAllocationProp properties = DeviceMemory();
  const std::size_t minimum = Granularity(properties);
  std::size_t recommended = 0;
  ASSERT_OK(cuMemGetAllocationGranularity(&recommended, &properties,
                                          CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  EXPECT_TRUE(minimum > 0 && (minimum & (minimum - 1)) == 0);
  EXPECT_EQ(recommended % minimum, std::size_t{0});
  OBSERVE("minimum_bytes", minimum);
  OBSERVE("recommended_bytes", recommended);
}

CONTRACT(VmmCreate, SizeIsAMultipleOfTheGranularity, "cuda.h:12834 cuMemCreate") {
  UseVmm();
  const CUmemAllocationProp properties = DeviceMemory();
  const std::size_t granularity = Granularity(properties);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, granularity / 2, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, granularity + 4096, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, 0, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, granularity, &properties, 1), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT_ALONE(VmmCreate, TakesMemoryUntilReleased, "cuda.h:12834 cuMemCreate") {
  UseVmm();
  std::size_t before = 0, during = 0, after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&before, &total));
  const auto handle = CreateHandle(256 * kMiB);
  ASSERT_OK(cuMemGetInfo(&during, &total));
  ASSERT_OK(cuMemRelease(handle));
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_TRUE(during + 256 * kMiB <= before);
  EXPECT_TRUE(after + 8 * kMiB >= before);
}

CONTRACT(VmmCreate, MoreThanTheDeviceIsOutOfMemory, "cuda.h:12834 cuMemCreate") {
  const CUdevice device = UseVmm();
  std::size_t total_bytes = 0;
  ASSERT_OK(cuDeviceTotalMem(&total_bytes, device));
  const CUmemAllocationProp properties = DeviceMemory();
  const std::size_t step = HandleBytes();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, total_bytes * 2 / step * step, &properties, 0),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(cuMemCreate(&handle, step, &properties, 0));
}

CONTRACT(VmmCreate, UnknownHandleIsInvalid, "cuda.h:12861 cuMemRelease") {
  UseVmm();
  EXPECT_EQ(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
  const auto handle = CreateHandle(HandleBytes());
  EXPECT_OK(cuMemRelease(handle));
  OBSERVE("second_release", cuMemRelease(handle));
}

CONTRACT(VmmCreate, PropertiesAreReadBack, "cuda.h:13238 cuMemGetAllocationPropertiesFromHandle") {
  UseVmm();
  CUmemAllocationProp properties{};
  ASSERT_OK(cuMemGetAllocationPropertiesFromHandle(&properties, CreateHandle(HandleBytes())));
  EXPECT_EQ(static_cast<int>(properties.type), static_cast<int>(CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(static_cast<int>(properties.location.type),
            static_cast<int>(CU_MEM_LOCATION_TYPE_DEVICE));
  EXPECT_EQ(properties.location.id, 0);
}

CONTRACT(VmmMap, OnlyWholeHandlesAreMapped,
         "cuda.h:12918 cuMemMap; which error: seen with driver 580") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const auto handle = CreateHandle(2 * step);
  const CUdeviceptr range = Reserve(4 * step);
  EXPECT_EQ(cuMemMap(range, step, step, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemMap(range, step, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemMap(range, 2 * step - 4096, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemMap(range, 4 * step, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
}

CONTRACT(VmmMap, RangeMustBeReservedAndFree, "cuda.h:12918 cuMemMap") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const auto handle = CreateHandle(step);
  const CUdeviceptr range = Reserve(2 * step);
  Map(range, step, handle);
  EXPECT_EQ(cuMemMap(range, step, 0, CreateHandle(step), 0), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr gone = Reserve(step);
  ASSERT_OK(cuMemAddressFree(gone, step));
  EXPECT_EQ(cuMemMap(gone, step, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(VmmMap, AddressIsAMultipleOfTheGranularity, "cuda.h:12918 cuMemMap") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const auto handle = CreateHandle(step);
  const CUdeviceptr range = Reserve(2 * step);
  EXPECT_EQ(cuMemMap(range + 4096, step, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(range, step, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemMap(range, step, 0, handle, 0));
}

CONTRACT(VmmAccess, NoAccessBeforeSetAccess,
         "cuda.h:12918 cuMemMap: mapping does not make the address accessible") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(step);
  Map(range, step, CreateHandle(step));
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned long long flags = 99;
  ASSERT_OK(cuMemGetAccess(&flags, &location, range));
  EXPECT_EQ(flags, 0ull);
  Fill(range, 1, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(VmmAccess, CopyWithoutAccessIsRefused, "cuda.h:13116 cuMemSetAccess") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(step);
  Map(range, step, CreateHandle(step));
  std::uint32_t word = 0;
  const CUresult result = cuMemcpyDtoH(&word, range, sizeof word);
  EXPECT_TRUE(result != CUDA_SUCCESS);
  OBSERVE("copy_from_range_without_access", result);
}

CONTRACT(VmmAccess, SetAccessMaySpanSeveralMaps, "cuda.h:13116 cuMemSetAccess") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(3 * step);
  for (int i = 0; i < 3; ++i) Map(range + i * step, step, CreateHandle(step));
  ASSERT_OK(SetAccess(range, 3 * step));
  Fill(range, 8, 3 * step / 4);
  EXPECT_TRUE(AllWordsAre(range, 3 * step / 4, 8));
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned long long flags = 0;
  EXPECT_OK(cuMemGetAccess(&flags, &location, range + 2 * step));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

// "A fully mapped address range", says the header. Driver 580 answers with success and ends at the
// hole.
CONTRACT(VmmAccess, SetAccessEndsAtAHole, "cuda.h:13116 cuMemSetAccess") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(3 * step);
  Map(range, step, CreateHandle(step));
  Map(range + 2 * step, step, CreateHandle(step));
  EXPECT_OK(SetAccess(range, 3 * step));
  EXPECT_EQ(SetAccess(range + step, step), CUDA_ERROR_INVALID_VALUE);
  Fill(range, 1, 1);
  EXPECT_OK(cuCtxSynchronize());
  Fill(range + 2 * step, 1, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(VmmAccess, PartOfAMapIsObserved, "cuda.h:13116 cuMemSetAccess") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(2 * step);
  Map(range, 2 * step, CreateHandle(2 * step));
  OBSERVE("access_to_half_a_map", SetAccess(range, step));
}

CONTRACT(VmmAccess, ReadOnlyIsObserved, "cuda.h:4149 CU_MEM_ACCESS_FLAGS_PROT_READ") {
  UseVmm();
  const CUdeviceptr range = MappedRange(1);
  OBSERVE("read_only_access", SetAccess(range, HandleBytes(), CU_MEM_ACCESS_FLAGS_PROT_READ));
  Fill(range, 1, 1);
  OBSERVE("write_after_it", cuCtxSynchronize());
}

CONTRACT(VmmUnmap, PartOfAMapIsRefused, "cuda.h:13082 cuMemUnmap: cannot unmap a sub-range") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(2 * step);
  Map(range, 2 * step, CreateHandle(2 * step));
  EXPECT_EQ(cuMemUnmap(range, step), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(range + step, step), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemUnmap(range, 2 * step));
}

CONTRACT(VmmUnmap, SeveralWholeMapsAtOnce, "cuda.h:13082 cuMemUnmap") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = MappedRange(3);
  EXPECT_OK(cuMemUnmap(range, 3 * step));
  EXPECT_OK(cuMemAddressFree(range, 3 * step));
}

CONTRACT(VmmUnmap, PassesOverHoles, "cuda.h:13082 cuMemUnmap says nothing; seen with driver 580") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(2 * step);
  EXPECT_OK(cuMemUnmap(range, step));
  Map(range, step, CreateHandle(step));
  EXPECT_OK(cuMemUnmap(range, 2 * step));
  Map(range + step, step, CreateHandle(step));
  EXPECT_OK(cuMemUnmap(range, 2 * step));
  OBSERVE("map_behind_a_hole_once_unmapped",
          cuMemMap(range + step, step, 0, CreateHandle(step), 0));
}

CONTRACT(VmmUnmap, EndsAccess, "cuda.h:13082 cuMemUnmap; docs/architecture.md") {
  UseVmm();
  const CUdeviceptr range = MappedRange(1);
  Fill(range, 1, 1);
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuMemUnmap(range, HandleBytes()));
  Fill(range, 2, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(VmmUnmap, NewMapStartsWithoutAccess,
         "cuda.h:13082 cuMemUnmap: all mappings start with no accessibility") {
  UseVmm();
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = MappedRange(1);
  ASSERT_OK(cuMemUnmap(range, step));
  Map(range, step, CreateHandle(step));
  Fill(range, 2, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace spillway::contract
