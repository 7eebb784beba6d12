// Replaces NVIDIA's cooperative_groups.h when a .cu file is compiled for the simulator.
//
// Left out: clusters, and groups of several devices. Barriers of a grid need a cooperative launch.
// Source: CUDA C++ Programming Guide, Cooperative Groups.
#pragma once

#include <cstddef>
#include <utility>

#include "simulator/kernels/device/atomics.h"
#include "simulator/kernels/device/threads.h"
#include "simulator/kernels/device/warps.h"

namespace cooperative_groups {

namespace details {

static inline unsigned BlockRank() {
  return spillway::simulator::device::Linear(threadIdx, blockDim);
}
static inline unsigned BlockThreads() { return blockDim.x * blockDim.y * blockDim.z; }
static inline unsigned OwnLane() { return BlockRank() % 32; }
inline unsigned Count(unsigned mask) { return static_cast<unsigned>(__builtin_popcount(mask)); }
inline unsigned LowBits(unsigned count) { return count >= 32 ? ~0u : (1u << count) - 1; }
static inline unsigned ExistingLanes() { return LowBits(BlockThreads() - BlockRank() / 32 * 32); }

}  // namespace details

class thread_group {
 public:
  void sync() const {
    if (is_block_)
      __syncthreads();
    else
      __syncwarp(mask_);
  }
  unsigned num_threads() const {
    return is_block_ ? details::BlockThreads() : details::Count(mask_);
  }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const {
    if (is_block_) return details::BlockRank();
    return details::Count(mask_ & details::LowBits(details::OwnLane()));
  }
  bool is_valid() const { return true; }

 protected:
  thread_group() = default;
  explicit thread_group(unsigned mask) : is_block_(false), mask_(mask) {}

  bool is_block_ = true;
  unsigned mask_ = 0;  // lanes of a warp
};

template <unsigned kMaxBlockSize = 1024>
struct block_tile_memory {};

class thread_block : public thread_group {
 public:
  struct arrival_token {};

  thread_block() {}
  static void sync() { __syncthreads(); }
  // The barrier is complete when its last thread waits: nothing can tell the difference.
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token&&) { __syncthreads(); }
  static unsigned thread_rank() { return details::BlockRank(); }
  static unsigned num_threads() { return details::BlockThreads(); }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
static inline thread_block this_thread_block() { return thread_block(); }
template <unsigned kMaxBlockSize>
static inline thread_block this_thread_block(block_tile_memory<kMaxBlockSize>&) {
  return thread_block();
}

class grid_group {
 public:
  struct arrival_token {};

  static void sync() {
    spillway::simulator::device::Suspended([](const auto& place) {
      spillway::simulator::executor::WaitForGrid(place);
      return 0;
    });
  }
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token&&) { sync(); }
  static bool is_valid() { return spillway::simulator::executor::BlocksRunTogether(); }
  static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() {
    return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
  }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 group_dim() { return gridDim; }
};
static inline grid_group this_grid() { return {}; }

class coalesced_group : public thread_group {
 public:
  explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : thread_group(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }
  unsigned lanes() const { return mask_; }

  template <typename T>
  T shfl(T value, unsigned source) const {
    return __shfl_sync(mask_, value, static_cast<int>(LaneOf(source % num_threads())));
  }
  template <typename T>
  T shfl_up(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank >= delta ? rank - delta : rank);
  }
  template <typename T>
  T shfl_down(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank + delta < num_threads() ? rank + delta : rank);
  }
  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }
  unsigned ballot(int predicate) const { return Packed(__ballot_sync(mask_, predicate)); }
  template <typename T>
  unsigned match_any(T value) const {
    return Packed(__match_any_sync(mask_, value));
  }
  template <typename T>
  unsigned match_all(T value, int& predicate) const {
    return Packed(__match_all_sync(mask_, value, &predicate));
  }

 private:
  unsigned LaneOf(unsigned rank) const {
    unsigned rest = mask_;
    for (unsigned i = 0; i < rank; ++i) rest &= rest - 1;
    return static_cast<unsigned>(__builtin_ctz(rest));
  }
  unsigned Packed(unsigned lanes) const {
    unsigned packed = 0, rank = 0;
    for (unsigned rest = mask_; rest; rest &= rest - 1, ++rank)
      packed |= (lanes >> __builtin_ctz(rest) & 1u) << rank;
    return packed;
  }

  unsigned meta_rank_;
  unsigned meta_size_;
};
static inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

namespace details {

template <unsigned kSize>
static inline unsigned TileMask() {
  return LowBits(kSize) << (OwnLane() / kSize * kSize);
}

// Tiles of more than a warp exchange values here, between two barriers of the tile.
template <typename T>
inline T* Exchange() {
  alignas(T) static char slots[spillway::simulator::executor::kMaxBlockThreads * sizeof(T)];
  return reinterpret_cast<T*>(slots);
}

}  // namespace details

template <unsigned kSize, typename Parent = void, bool kInWarp = kSize <= 32>
class thread_block_tile;

template <unsigned kSize, typename Parent>
class thread_block_tile<kSize, Parent, true> : public thread_group {
  static_assert(kSize >= 1 && (kSize & (kSize - 1)) == 0, "a tile's size is a power of two");

 public:
  thread_block_tile(unsigned meta_rank, unsigned meta_size)
      : thread_group(details::TileMask<kSize>()), meta_rank_(meta_rank), meta_size_(meta_size) {}
  template <typename OtherParent>
  thread_block_tile(const thread_block_tile<kSize, OtherParent>& other)
      : thread_block_tile(other.meta_group_rank(), other.meta_group_size()) {}

  static unsigned thread_rank() { return details::BlockRank() % kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  static constexpr unsigned size() { return kSize; }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }
  static unsigned lanes() { return details::TileMask<kSize>(); }
  static void sync() { __syncwarp(lanes()); }

  template <typename T>
  static T shfl(T value, int source) {
    return __shfl_sync(lanes(), value, source, kSize);
  }
  template <typename T>
  static T shfl_up(T value, unsigned delta) {
    return __shfl_up_sync(lanes(), value, delta, kSize);
  }
  template <typename T>
  static T shfl_down(T value, unsigned delta) {
    return __shfl_down_sync(lanes(), value, delta, kSize);
  }
  template <typename T>
  static T shfl_xor(T value, int lane_mask) {
    return __shfl_xor_sync(lanes(), value, lane_mask, kSize);
  }
  static int any(int predicate) { return __any_sync(lanes(), predicate); }
  static int all(int predicate) { return __all_sync(lanes(), predicate); }
  static unsigned ballot(int predicate) { return __ballot_sync(lanes(), predicate) >> First(); }
  template <typename T>
  static unsigned match_any(T value) {
    return __match_any_sync(lanes(), value) >> First();
  }
  template <typename T>
  static unsigned match_all(T value, int& predicate) {
    return __match_all_sync(lanes(), value, &predicate) >> First();
  }

 private:
  static unsigned First() { return details::OwnLane() / kSize * kSize; }

  unsigned meta_rank_;
  unsigned meta_size_;
};

template <unsigned kSize, typename Parent>
class thread_block_tile<kSize, Parent, false> {
  static_assert(kSize <= 1024 && (kSize & (kSize - 1)) == 0, "a tile's size is a power of two");

 public:
  thread_block_tile(unsigned meta_rank, unsigned meta_size)
      : meta_rank_(meta_rank), meta_size_(meta_size) {}
  template <typename OtherParent>
  thread_block_tile(const thread_block_tile<kSize, OtherParent>& other)
      : thread_block_tile(other.meta_group_rank(), other.meta_group_size()) {}

  static unsigned thread_rank() { return details::BlockRank() % kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  static constexpr unsigned size() { return kSize; }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }
  static void sync() {
    spillway::simulator::device::Suspended([](const auto& place) {
      spillway::simulator::executor::WaitInTile(place, kSize);
      return 0;
    });
  }
  template <typename T>
  static T shfl(T value, int source) {
    T* const slots = details::Exchange<T>() + First();
    slots[thread_rank()] = value;
    sync();
    const T read = slots[static_cast<unsigned>(source) % kSize];
    sync();
    return read;
  }
  static int any(int predicate) {
    int* const slots = details::Exchange<int>() + First();
    slots[thread_rank()] = predicate;
    sync();
    int found = 0;
    for (unsigned i = 0; i < kSize; ++i) found |= slots[i] != 0;
    sync();
    return found;
  }
  static int all(int predicate) { return !any(!predicate); }

 private:
  static unsigned First() { return details::BlockRank() / kSize * kSize; }

  unsigned meta_rank_;
  unsigned meta_size_;
};

template <unsigned kSize, typename Parent>
static inline thread_block_tile<kSize, Parent> tiled_partition(const Parent& parent) {
  return {static_cast<unsigned>(parent.thread_rank()) / kSize,
          (static_cast<unsigned>(parent.size()) + kSize - 1) / kSize};
}
static inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  const unsigned rank = parent.thread_rank(), first = rank / size * size;
  unsigned mask = 0, at = 0;
  for (unsigned rest = parent.lanes(); rest; rest &= rest - 1, ++at)
    if (at >= first && at < first + size) mask |= rest & -rest;
  return coalesced_group(mask, rank / size, (parent.size() + size - 1) / size);
}
static inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  const unsigned lane = details::OwnLane();
  const unsigned warp_rank = parent.thread_rank();
  return coalesced_group(details::LowBits(size) << (lane / size * size) & details::ExistingLanes(),
                         warp_rank / size, (parent.size() + size - 1) / size);
}

template <typename Group>
static inline coalesced_group labeled_partition(const Group& group, int label) {
  const unsigned lanes = group.lanes(), same = __match_any_sync(lanes, label);
  const unsigned leaders =
      __ballot_sync(lanes, details::OwnLane() == static_cast<unsigned>(__builtin_ctz(same)));
  const unsigned own_leader = static_cast<unsigned>(__builtin_ctz(same));
  return coalesced_group(same, details::Count(leaders & details::LowBits(own_leader)),
                         details::Count(leaders));
}
template <typename Group>
static inline coalesced_group binary_partition(const Group& group, bool predicate) {
  const unsigned yes = __ballot_sync(group.lanes(), predicate);
  const unsigned own = predicate ? yes : group.lanes() & details::ExistingLanes() & ~yes;
  return coalesced_group(own, predicate ? 1 : 0, 2);
}

template <typename Group, typename Function, typename... Arguments>
static inline void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0)
    std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
}

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
template <typename T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <typename T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <typename T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

}  // namespace cooperative_groups
