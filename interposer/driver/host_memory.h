// Page-locked host memory that the device reaches, and that can also be mapped at a device address
// of our choice; and ordinary memory, for what does not move at the moment.
//
// Called by execute with the state lock held. Ownership: what New made is the caller's until
// Delete; mappings at other addresses are the caller's own and must be gone by then.
//
// Invariants
//  1. `data` is valid for the processor and, where it is pinned, for copies and kernels of the
//  device. Copies from ordinary memory are
//     right, too, but make the caller wait.
//  2. With a handle (mappable memory) the bytes can be shown at a device address too: both places
//  are one memory.
// Errors: New answers false and changes nothing.
// Source: cuMemCreate with CU_MEM_LOCATION_TYPE_HOST_NUMA (CUDA 12.2);
// CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID. A container that forbids get_mempolicy makes such memory
// unavailable although the attribute promises it (NCCL's documentation).
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::driver {

struct HostMemory {
  void* data = nullptr;
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;  // 0: memory that cannot be mapped elsewhere
  bool is_pinned = true;
};

// The device promises that host memory can be mapped at its addresses.
bool PromisesMappableHostMemory(CUdevice device);

// `bytes` is a multiple of the granule for mappable memory.
bool NewMappableHostMemory(CUdevice device, std::size_t bytes, HostMemory* out);
bool NewPinnedHostMemory(std::size_t bytes, HostMemory* out);
bool NewOrdinaryHostMemory(std::size_t bytes, HostMemory* out);
void DeleteHostMemory(const HostMemory& memory);

// Host memory that the driver made in another process, by its files: side by side, `bytes_each` of
// each, at addresses of the driver's choice. The files stay the caller's and are not needed any
// more then. False: the driver refuses.
bool MapImportedHostMemory(CUdevice device, const std::vector<int>& files, std::size_t bytes_each,
                           void** out);
void UnmapImportedHostMemory(void* data, std::size_t bytes);

// 80 % of what the host, and the process's control groups, can still give now (host_room.h). It
// reads files.
std::size_t HostBytesToSpare();

}  // namespace spillway::driver
