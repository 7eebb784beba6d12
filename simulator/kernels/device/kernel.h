// A __global__ function as the simulator runs it, and its launch.
//
// Used by the code that tools/simkernels generates: a closure without captures for a kernel's body,
// and a function that launches it, as nvcc's stubs do. So overloads, default arguments, deduction
// and pointers to kernels follow C++'s own rules. simkernels finds spillway_kernel_entry in the
// assembler's input.
//
// Invariants
//  1. A block's threads run in one loop, so that the compiler can optimize kernels that never
//     block. A resumed thread sees by times_blocked that other threads have advanced the loop.
//  2. Parameters are copied out of the launch's buffer per loop, so no kernel's store changes them.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simulator/kernels/device/threads.h"
#include "simulator/kernels/device_clock.h"
#include "simulator/kernels/grid_launch.h"
#include "simulator/kernels/image.h"

namespace spillway::simulator::device {

// simkernels finds it under the name spillway_global_<n>.
struct GlobalDescription {
  const void* address;
  std::uint64_t size_bytes;
};

template <typename... Arguments>
constexpr auto ParameterLayout() {
  struct Layout {
    KernelParameter parameters[sizeof...(Arguments) + 1] = {};
  } layout;
  [[maybe_unused]] std::uint32_t offset_bytes = 0;
  [[maybe_unused]] std::size_t index = 0;
  [[maybe_unused]] const auto place = [&](std::uint32_t size_bytes, std::uint32_t alignment) {
    offset_bytes = (offset_bytes + alignment - 1) / alignment * alignment;
    layout.parameters[index++] = {offset_bytes, size_bytes};
    offset_bytes += size_bytes;
  };
  (place(sizeof(Arguments), alignof(Arguments)), ...);
  return layout;
}

template <typename T>
T LoadArgument(const void* bytes) {
  if constexpr (std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  } else {
    return *static_cast<const T*>(bytes);
  }
}

// `Threads` has no state: it runs one thread of the kernel.
template <typename Threads, typename... Arguments>
struct Kernel {
  static constexpr auto kLayout = ParameterLayout<Arguments...>();

  [[gnu::flatten]] static void RunBlockThreads(Arguments... arguments) {
    alignas(Threads) char no_state[sizeof(Threads)] = {};
    const auto& run_thread = *reinterpret_cast<const Threads*>(no_state);
    const dim3 block = blockDim;
    const unsigned threads = block.x * block.y * block.z;
    unsigned linear = started_threads;
    unblocked_from = linear;
    while (linear < threads) {
      const unsigned row = linear / block.x;
      threadIdx.y = row % block.y;
      threadIdx.z = row / block.y;
      const unsigned row_end = (row + 1) * block.x;
      const unsigned before = times_blocked;
      for (; linear < row_end; ++linear) {
        threadIdx.x = linear - row * block.x;
        started_threads = linear + 1;
        run_thread(arguments...);
        if (times_blocked != before) {
          executor::ThreadEnded(linear, started_threads);
          linear = started_threads;
          unblocked_from = linear;
          break;
        }
      }
    }
    executor::RunEnded(unblocked_from, threads);
  }

  static void RunThreads(const void* loaded) {
    std::apply(RunBlockThreads, *static_cast<const std::tuple<Arguments...>*>(loaded));
  }

  template <std::size_t... kIndices>
  static std::tuple<Arguments...> Load([[maybe_unused]] void* const* arguments,
                                       std::index_sequence<kIndices...>) {
    return std::tuple<Arguments...>(LoadArgument<Arguments>(arguments[kIndices])...);
  }

  static void EnterBlock(std::uint64_t block, unsigned started) {
    blockIdx.x = static_cast<unsigned>(block % gridDim.x);
    blockIdx.y = static_cast<unsigned>(block / gridDim.x % gridDim.y);
    blockIdx.z = static_cast<unsigned>(block / gridDim.x / gridDim.y);
    started_threads = started;
  }

  static void RunBlocks() {
    for (unsigned z = 0; z < gridDim.z; ++z) {
      for (unsigned y = 0; y < gridDim.y; ++y) {
        for (unsigned x = 0; x < gridDim.x; ++x) {
          blockIdx = {x, y, z};
          started_threads = 0;
          executor::RunBlock();
        }
      }
    }
  }

  static void Body(const LaunchShape& shape, void* const* arguments) {
    const std::tuple<Arguments...> loaded =
        Load(arguments, std::index_sequence_for<Arguments...>{});
    gridDim = dim3(shape.grid[0], shape.grid[1], shape.grid[2]);
    blockDim = dim3(shape.block[0], shape.block[1], shape.block[2]);
    executor::BeginClock(shape);
    executor::BeginGrid({blockDim.x * blockDim.y * blockDim.z, shape.dynamic_shared_bytes},
                        RunThreads, &loaded);
    if (shape.cooperative)
      executor::RunBlocksTogether(std::uint64_t{gridDim.x} * gridDim.y * gridDim.z, EnterBlock);
    else
      RunBlocks();
    executor::EndGrid();
    executor::RunChildGrids();
  }
};

template <typename Threads, typename... Arguments>
constexpr KernelDescription DescribeCall(void (Threads::*)(Arguments...) const) {
  using Described = Kernel<Threads, Arguments...>;
  return {Described::Body, Described::kLayout.parameters, sizeof...(Arguments)};
}
template <typename Threads>
constexpr KernelDescription Describe(Threads) {
  return DescribeCall(&Threads::operator());
}

// For the call kernel<<<grid, block, shared_bytes, stream>>>(...) that follows.
inline void Configure(executor::LaunchedBy launched_by, dim3 grid, dim3 block,
                      std::size_t shared = 0, cudaStream_t stream = nullptr) {
  executor::Configure(
      {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, stream, launched_by});
}
inline void Configure(dim3 grid, dim3 block, std::size_t shared = 0,
                      cudaStream_t stream = nullptr) {
  Configure(executor::LaunchedBy::kHost, grid, block, shared, stream);
}
inline void ConfigureChild(dim3 grid, dim3 block, std::size_t shared = 0,
                           cudaStream_t stream = nullptr) {
  Configure(executor::LaunchedBy::kKernel, grid, block, shared, stream);
}

template <typename... Arguments>
inline void LaunchConfigured(const KernelDescription& kernel, Arguments&... arguments) {
  void* pointers[] = {
      const_cast<void*>(static_cast<const volatile void*>(std::addressof(arguments)))..., nullptr};
  executor::LaunchConfigured(kernel, pointers);
}

}  // namespace spillway::simulator::device
