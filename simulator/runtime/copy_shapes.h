// The runtime's 2-D and 3-D copies in the driver's terms. With an array a 3-D copy counts in its
// elements.
#pragma once

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {

struct Plane {
  const void* start;
  std::size_t pitch_bytes;
};

CUDA_MEMCPY2D DriverCopy2D(const Plane& target, const Plane& source, std::size_t width_bytes,
                           std::size_t height, cudaMemcpyKind kind);
// Of an array's element; 1 when both ends are linear memory.
CUDA_MEMCPY3D DriverCopy3D(const cudaMemcpy3DParms& wanted, std::size_t texel_bytes);

}  // namespace spillway::simulator::runtime
