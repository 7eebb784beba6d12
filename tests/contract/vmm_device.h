// Short forms of the virtual memory management calls: properties, handles, mappings of device 0.
//
// Called by: cases. Each function abandons the case when the driver refuses.
#pragma once

#include "tests/contract/device.h"

namespace spillway::contract {

// UseDevice; skips the case where the device has no virtual memory management.
CUdevice UseVmm();
// UseVmm; skips the case where handles cannot lie in host memory.
CUdevice UseHostVmm();

CUmemAllocationProp DeviceMemory();
CUmemAllocationProp HostMemory(int node);
std::size_t Granularity(const CUmemAllocationProp& properties);

// The smallest handle size of at least 2 MiB.
std::size_t HandleBytes();

CUmemGenericAllocationHandle CreateHandle(std::size_t size_bytes);
CUdeviceptr Reserve(std::size_t size_bytes);
void Map(CUdeviceptr address, std::size_t size_bytes, CUmemGenericAllocationHandle handle);
CUresult SetAccess(CUdeviceptr address, std::size_t size_bytes,
                   CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

// A fresh range of `count` mapped and accessible handles of `HandleBytes()` each.
CUdeviceptr MappedRange(int count);

}  // namespace spillway::contract
