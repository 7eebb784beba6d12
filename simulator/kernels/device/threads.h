// A GPU thread's indices (threadIdx and its kin) and its block's barriers.
//
// The indices are variables whose addresses never escape, so the compiler keeps them in registers
// (kernel.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/kernels/block_executor.h"

[[maybe_unused]] static uint3 threadIdx;
[[maybe_unused]] static uint3 blockIdx;
[[maybe_unused]] static dim3 blockDim;
[[maybe_unused]] static dim3 gridDim;
[[maybe_unused]] static constexpr int warpSize = 32;

namespace spillway::simulator::device {

[[maybe_unused]] static unsigned
    started_threads;  // of the current block, in order of their linear index
[[maybe_unused]] static unsigned
    unblocked_from;  // threads from here to the running one ended without blocking
[[maybe_unused]] static unsigned
    times_blocked;  // changes whenever a thread may have been suspended

inline unsigned Linear(uint3 thread, dim3 block) {
  return thread.x + block.x * (thread.y + block.y * thread.z);
}

// For the clock (device_clock.h).
[[maybe_unused]] static std::uint64_t ClockReader() {
  return std::uint64_t{blockIdx.x} << 32 | Linear(threadIdx, blockDim);
}

// Restores the thread's index afterwards.
template <typename Wait>
static auto Suspended(Wait wait) {
  const uint3 self = threadIdx;
  ++times_blocked;
  const auto result =
      wait(executor::ThreadPlace{Linear(self, blockDim), started_threads, unblocked_from});
  threadIdx = self;
  return result;
}

[[maybe_unused]] [[gnu::noinline]] static executor::BarrierResult Barrier(bool predicate) {
  return Suspended([&](const executor::ThreadPlace& place) {
    return executor::WaitAtBarrier(place, predicate);
  });
}

}  // namespace spillway::simulator::device

[[maybe_unused]] static inline void __syncthreads() { spillway::simulator::device::Barrier(false); }
[[maybe_unused]] static inline int __syncthreads_count(int predicate) {
  return static_cast<int>(spillway::simulator::device::Barrier(predicate != 0).with_predicate);
}
[[maybe_unused]] static inline int __syncthreads_or(int predicate) {
  return spillway::simulator::device::Barrier(predicate != 0).with_predicate > 0;
}
[[maybe_unused]] static inline int __syncthreads_and(int predicate) {
  const auto result = spillway::simulator::device::Barrier(predicate != 0);
  return result.with_predicate == result.arrived;
}

// One thread runs at a time and sees all writes of the others.
[[maybe_unused]] static inline void __threadfence() {}
[[maybe_unused]] static inline void __threadfence_block() {}
[[maybe_unused]] static inline void __threadfence_system() {}
