// Converts channels between the runtime's terms (bits) and the driver's (a format).
#pragma once

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {

inline CUarray ArrayHandle(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray*>(array));
}
inline CUmipmappedArray ArrayHandle(cudaMipmappedArray_const_t array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray*>(array));
}

struct Channels {
  CUarray_format format;
  unsigned count;
};

// cudaErrorInvalidChannelDescriptor for three channels or different widths: no array holds those.
cudaError_t ToDriver(const cudaChannelFormatDesc& description, Channels* channels);
cudaChannelFormatDesc ToDescription(const Channels& channels);

cudaError_t TexelBytes(const DriverTable& driver, cudaArray_const_t array, std::size_t* bytes);

}  // namespace spillway::simulator::runtime
