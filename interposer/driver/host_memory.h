// Host memory for evicted bytes: pinned memory, also mappable at device addresses, and ordinary.
//
// Called by execute with the state lock held. The caller owns memory from New... until
// DeleteHostMemory, and first removes its own mappings at other addresses.
// Invariants
//  1. `data` is valid for the CPU and, if pinned, for the device's copies and kernels. Copies from
//     ordinary memory work but block the caller.
//  2. Memory with a handle (mappable) may also be mapped at a device address, with the same bytes.
// Errors: New... answers nothing and changes nothing.
// Source: cuMemCreate with CU_MEM_LOCATION_TYPE_HOST_NUMA (CUDA 12.2);
// CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID. In a container that forbids get_mempolicy such memory fails
// although the attribute promises it (NCCL's documentation).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::driver {

struct HostMemory {
  void* data = nullptr;
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;  // 0: cannot be mapped elsewhere
  bool is_pinned = true;
};

bool PromisesMappableHostMemory(CUdevice device);

// Mappable memory needs `bytes` to be a multiple of the granule.
std::optional<HostMemory> NewMappableHostMemory(CUdevice device, std::size_t bytes);
std::optional<HostMemory> NewPinnedHostMemory(std::size_t bytes);
std::optional<HostMemory> NewOrdinaryHostMemory(std::size_t bytes);
void DeleteHostMemory(const HostMemory& memory);

// Maps host memory that the driver made in another process. The files lie side by side,
// `bytes_each` each, at addresses of the driver's choice. The caller keeps the files and may close
// them afterwards. Null: the driver refuses.
void* MapImportedHostMemory(CUdevice device, const std::vector<int>& files, std::size_t bytes_each);
void UnmapImportedHostMemory(void* data, std::size_t bytes);

// 80 % of what the host and the control groups can still give. Reads files.
std::size_t HostBytesToSpare();

}  // namespace spillway::driver
