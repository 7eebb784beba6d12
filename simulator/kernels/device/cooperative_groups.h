// Replaces NVIDIA's cooperative_groups.h when a .cu file is compiled for the simulator: blocks,
// tiles of a warp and coalesced threads, with their barriers, shuffles and votes.
//
// Included by kernels as <cooperative_groups.h>: this folder precedes the toolkit's. Not for nvcc.
// Left out: barriers of grids and clusters. The simulator runs blocks one after another, so a
// kernel that waits for another block would never end. A call of grid_group::sync does not compile.
// Source: CUDA C++ Programming Guide, Cooperative Groups.
#pragma once

#include <bit>

#include "simulator/kernels/device/atomics.h"
#include "simulator/kernels/device/threads.h"
#include "simulator/kernels/device/warps.h"

namespace cooperative_groups {

class thread_block {
 public:
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return spillway::simulator::device::Linear(threadIdx, blockDim); }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
static inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static void sync() = delete;
  static bool is_valid() { return false; }
  static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() {
    return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
  }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 group_dim() { return gridDim; }
};
static inline grid_group this_grid() { return {}; }

template <unsigned kSize, typename Parent = thread_block>
class thread_block_tile {
  static_assert(kSize >= 1 && kSize <= 32 && (kSize & (kSize - 1)) == 0,
                "a tile is a power of two within a warp");

 public:
  static unsigned thread_rank() { return thread_block::thread_rank() % kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  static constexpr unsigned size() { return kSize; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / kSize; }
  static unsigned meta_group_size() { return (thread_block::num_threads() + kSize - 1) / kSize; }
  static void sync() { __syncwarp(mask()); }

  template <typename T>
  static T shfl(T value, int source) {
    return __shfl_sync(mask(), value, source, kSize);
  }
  template <typename T>
  static T shfl_up(T value, unsigned delta) {
    return __shfl_up_sync(mask(), value, delta, kSize);
  }
  template <typename T>
  static T shfl_down(T value, unsigned delta) {
    return __shfl_down_sync(mask(), value, delta, kSize);
  }
  template <typename T>
  static T shfl_xor(T value, int lane_mask) {
    return __shfl_xor_sync(mask(), value, lane_mask, kSize);
  }
  static int any(int predicate) { return __any_sync(mask(), predicate); }
  static int all(int predicate) { return __all_sync(mask(), predicate); }
  static unsigned ballot(int predicate) { return __ballot_sync(mask(), predicate) >> first(); }
  template <typename T>
  static unsigned match_any(T value) {
    return __match_any_sync(mask(), value) >> first();
  }

 private:
  static unsigned first() { return thread_block::thread_rank() % 32 / kSize * kSize; }
  static unsigned mask() { return (kSize == 32 ? ~0u : (1u << (kSize % 32)) - 1) << first(); }
};

template <unsigned kSize, typename Parent>
static inline thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}

// The threads of a warp that arrived here together.
class coalesced_group {
 public:
  explicit coalesced_group(unsigned mask) : mask_(mask) {}
  unsigned num_threads() const { return static_cast<unsigned>(std::popcount(mask_)); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const {
    const unsigned lane = thread_block::thread_rank() % 32;
    return static_cast<unsigned>(std::popcount(mask_ & ((1u << lane) - 1)));
  }
  void sync() const { __syncwarp(mask_); }
  template <typename T>
  T shfl(T value, unsigned source) const {
    return __shfl_sync(mask_, value, static_cast<int>(LaneOf(source)));
  }
  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }

 private:
  unsigned LaneOf(unsigned rank) const {
    unsigned rest = mask_;
    for (unsigned i = 0; i < rank; ++i) rest &= rest - 1;
    return static_cast<unsigned>(std::countr_zero(rest));
  }
  unsigned mask_;
};
static inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <typename Group>
static inline void sync(const Group& group) {
  group.sync();
}
template <typename Group>
static inline auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <typename Group>
static inline auto group_size(const Group& group) {
  return group.size();
}

template <typename T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <typename T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};

// cooperative_groups/reduce.h
template <unsigned kSize, typename Parent, typename T, typename Combine>
static inline T reduce(const thread_block_tile<kSize, Parent>& tile, T value, Combine combine) {
  for (unsigned distance = kSize / 2; distance > 0; distance /= 2) {
    value = combine(value, tile.shfl_xor(value, static_cast<int>(distance)));
  }
  return value;
}

}  // namespace cooperative_groups
