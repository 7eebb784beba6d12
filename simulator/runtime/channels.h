// The runtime's channel descriptions and arrays in the driver's terms: bits of each channel there,
// a format here.
//
// Pure but for TexelBytes, which asks the driver. Called by api_array.cpp, api_texture.cpp and the
// copies with arrays.
#pragma once

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {

// The runtime's handle of an array is the driver's.
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

// cudaErrorInvalidChannelDescriptor for what no array can hold: three channels, or channels of
// several widths.
cudaError_t ToDriver(const cudaChannelFormatDesc& description, Channels* channels);
cudaChannelFormatDesc ToDescription(const Channels& channels);

cudaError_t TexelBytes(const DriverTable& driver, cudaArray_const_t array, std::size_t* bytes);

}  // namespace spillway::simulator::runtime
