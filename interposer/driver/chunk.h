// A piece of physical device memory: one handle of cuMemCreate, mapped as a whole.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kGranuleBytes = 2 * kMiB;  // cuMemGetAllocationGranularity, all GPUs

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

struct Chunk {
  CUmemGenericAllocationHandle handle;
  size_t bytes;         // a multiple of the granule
  bool shared = false;  // other processes may hold it: it serves no other allocation
};
using Chunks = std::vector<Chunk>;

}  // namespace spillway::interposer
