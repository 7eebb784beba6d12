// Turns the driver's shaped copies into sides and boxes of bytes.
//
// Errors: Failure(INVALID_VALUE) for an end that is no memory, or a box that leaves its end.
// Source: cuda.h, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUmemcpy3DOperand.
#pragma once

#include "simulator/driver/calls/copy.h"

namespace spillway::simulator {

struct ShapedMemory {
  std::uintptr_t base;
  std::size_t pitch_bytes;
  std::size_t rows;  // from one slice to the next
  std::size_t width_bytes;
  std::size_t slices;
};

// A zero pitch or height stands for the copy's own.
struct Linear3D {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  std::size_t pitch_bytes;
  std::size_t rows;
};

struct Corner {
  std::size_t x_bytes;
  std::size_t y;
  std::size_t z;
};

ShapedMemory ShapedMemoryOf(const Array& array);
Side SideAt(const ShapedMemory& ground, const Corner& corner, const Box& box);
Side SideOf(Call& call, const Linear3D& end, const Corner& corner, const Box& box);

CopyRequest RequestOf(Call& call, const CUDA_MEMCPY3D& copy);
CopyRequest RequestOf(Call& call, const CUDA_MEMCPY3D_PEER& copy);

}  // namespace spillway::simulator
