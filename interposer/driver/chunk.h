// A piece of physical device memory: one handle of cuMemCreate, mapped as a whole.
//
// Made and owned by chunk_pool. Guarded by the state lock.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kGranuleBytes = 2 * kMiB;  // cuMemGetAllocationGranularity, all GPUs

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

struct Range;  // an allocation with addresses of its own (interposer/execute/state/range.h)

struct Chunk {
  static constexpr int kNoPiece = -1;
  CUmemGenericAllocationHandle handle;
  size_t bytes;             // a multiple of the granule
  size_t position = 0;      // in the pool's list
  bool is_shared = false;   // others may hold it, or the program made it: it serves nobody else
  bool is_free = false;     // in the pool
  int mappings = 0;         // of ranges, freed ones too
  int piece = kNoPiece;     // of the layout (chunk_pool.h)
  Range* holder = nullptr;  // the last range whose memory it was, until it returns to the pool

  bool IsPiece() const { return piece != kNoPiece; }
};
using Chunks = std::vector<Chunk*>;

// What the program asked for when it made memory (CUmemAllocationProp).
struct OwnMemoryKind {
  CUmemAllocationHandleType handle_type = CU_MEM_HANDLE_TYPE_NONE;
  bool is_for_rdma = false;  // gpuDirectRDMACapable
};

}  // namespace spillway::interposer
