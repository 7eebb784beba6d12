// The runtime's 2-D and 3-D copies in the driver's terms.
//
// Pure; called by api_copy.cpp. Arrays are not supported: both ends are linear memory.
#pragma once

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {

// Rows of memory; `pitch_bytes` from one row's start to the next.
struct Plane {
  const void* start;
  std::size_t pitch_bytes;
};

CUDA_MEMCPY2D DriverCopy2D(const Plane& target, const Plane& source, std::size_t width_bytes,
                           std::size_t height, cudaMemcpyKind kind);
CUDA_MEMCPY3D DriverCopy3D(const cudaMemcpy3DParms& wanted);

}  // namespace spillway::simulator::runtime
