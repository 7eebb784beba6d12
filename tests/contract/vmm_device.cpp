#include "tests/contract/vmm_device.h"

#include <algorithm>

namespace spillway::contract {

CUdevice UseVmm() {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
              "no virtual memory management");
  return device;
}

CUdevice UseHostVmm() {
  const CUdevice device = UseVmm();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
              "no handles in host memory");
  return device;
}

CUmemAllocationProp DeviceMemory() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

CUmemAllocationProp HostMemory(int node) {
  CUmemAllocationProp properties = DeviceMemory();
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, node};
  return properties;
}

std::size_t Granularity(const CUmemAllocationProp& properties) {
  std::size_t granularity_bytes = 0;
  ASSERT_OK(cuMemGetAllocationGranularity(&granularity_bytes, &properties,
                                          CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return granularity_bytes;
}

std::size_t HandleBytes() { return std::max(Granularity(DeviceMemory()), 2 * kMiB); }

CUmemGenericAllocationHandle CreateHandle(std::size_t size_bytes) {
  const CUmemAllocationProp properties = DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemCreate(&handle, size_bytes, &properties, 0));
  return handle;
}

CUdeviceptr Reserve(std::size_t size_bytes) {
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAddressReserve(&address, size_bytes, 0, 0, 0));
  return address;
}

void Map(CUdeviceptr address, std::size_t size_bytes, CUmemGenericAllocationHandle handle) {
  ASSERT_OK(cuMemMap(address, size_bytes, 0, handle, 0));
}

CUresult SetAccess(CUdeviceptr address, std::size_t size_bytes, CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = flags;
  return cuMemSetAccess(address, size_bytes, &access, 1);
}

CUdeviceptr MappedRange(int count) {
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = Reserve(count * step);
  for (int i = 0; i < count; ++i) Map(range + i * step, step, CreateHandle(step));
  ASSERT_OK(SetAccess(range, count * step));
  return range;
}

}  // namespace spillway::contract
