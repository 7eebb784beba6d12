// From the driver's descriptions of shaped copies to the bytes that they name.
//
// Called by the copy functions and by graphs' copy nodes, under the engine's mutex. Keeps nothing.
// Errors: Failure(INVALID_VALUE) for an end that is no memory, or a box that does not lie inside
// its end. Source: cuda.h, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUmemcpy3DOperand.
#pragma once

#include "simulator/driver/calls/copy.h"

namespace spillway::simulator {

// One end of a shaped copy: where its rows lie, and how many bytes, rows and slices may be named
// from there.
struct Ground {
  std::uintptr_t base;
  std::size_t pitch_bytes;
  std::size_t rows;  // from one slice to the next
  std::size_t width_bytes;
  std::size_t slices;
};

// What a description says of an end in linear memory; a zero pitch or height means that it is as
// the copy needs it.
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

Ground GroundOf(const Array& array);
// Throws unless the box lies inside the ground.
Side SideAt(const Ground& ground, const Corner& corner, const Box& box);
Side SideOf(Call& call, const Linear3D& end, const Corner& corner, const Box& box);

CopyRequest RequestOf(Call& call, const CUDA_MEMCPY3D& copy);
CopyRequest RequestOf(Call& call, const CUDA_MEMCPY3D_PEER& copy);

}  // namespace spillway::simulator
