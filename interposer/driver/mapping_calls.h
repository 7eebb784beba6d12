// Counts our driver calls that create, map and release memory.
//
// Any thread, any device; not for the program's own calls. Each returns the driver's result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/driver/cuda_abi.h"

namespace spillway::driver {

struct MappingCalls {
  std::uint64_t creates = 0, maps = 0, set_accesses = 0, unmaps = 0, releases = 0;

  MappingCalls Since(const MappingCalls& earlier) const {
    return {creates - earlier.creates, maps - earlier.maps, set_accesses - earlier.set_accesses,
            unmaps - earlier.unmaps, releases - earlier.releases};
  }
};
MappingCalls ReadMappingCalls();

CUresult MemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                   const CUmemAllocationProp* properties);
CUresult MemMap(CUdeviceptr base, std::size_t bytes, CUmemGenericAllocationHandle handle);
CUresult MemSetAccess(CUdeviceptr base, std::size_t bytes, const CUmemAccessDesc* access,
                      std::size_t count);
CUresult MemUnmap(CUdeviceptr base, std::size_t bytes);
CUresult MemRelease(CUmemGenericAllocationHandle handle);

}  // namespace spillway::driver
