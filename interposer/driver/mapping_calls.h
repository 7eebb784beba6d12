// The driver's calls that create, map and give back memory, counted as they are made: they are what
// moving memory costs the host.
//
// Called on any thread by whoever of us maps memory. All of ours in this process, on any device, go
// through here; the program's own do not. Each is the driver's function of that name and returns
// its result.
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
// So far.
MappingCalls ReadMappingCalls();

CUresult MemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                   const CUmemAllocationProp* properties);
CUresult MemMap(CUdeviceptr base, std::size_t bytes, CUmemGenericAllocationHandle handle);
CUresult MemSetAccess(CUdeviceptr base, std::size_t bytes, const CUmemAccessDesc* access,
                      std::size_t count);
CUresult MemUnmap(CUdeviceptr base, std::size_t bytes);
CUresult MemRelease(CUmemGenericAllocationHandle handle);

}  // namespace spillway::driver
