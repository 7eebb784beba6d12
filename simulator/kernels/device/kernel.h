// A __global__ function as the simulator runs it, and its launch.
//
// Used by: code that tools/simkernels generates. The driver calls Kernel<&function>'s body.
// simkernels finds its description, spillway_kernel_entry, in the assembler's input.
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
#include "simulator/kernels/image.h"

namespace spillway::simulator::device {

// A __device__ or __constant__ variable; simkernels finds it under the name spillway_global_<n>.
struct GlobalDescription {
  const void* address;
  std::uint64_t size_bytes;
};

template <typename... Arguments>
constexpr auto ParameterLayout() {
  struct Layout {
    KernelParameter parameters[sizeof...(Arguments) + 1] = {};
  } layout;
  std::uint32_t offset_bytes = 0;
  std::size_t index = 0;
  const auto place = [&](std::uint32_t size_bytes, std::uint32_t alignment) {
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

struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

template <auto kFunction>
struct Kernel;

template <typename... Arguments, void (*kFunction)(Arguments...)>
struct Kernel<kFunction> {
  static constexpr auto kLayout = ParameterLayout<Arguments...>();

  [[gnu::flatten]] static void RunBlockThreads(Arguments... arguments) {
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
        kFunction(arguments...);
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
  static std::tuple<Arguments...> Load(void* const* arguments, std::index_sequence<kIndices...>) {
    return std::tuple<Arguments...>(LoadArgument<Arguments>(arguments[kIndices])...);
  }

  static void Body(const LaunchShape& shape, void* const* arguments) {
    const std::tuple<Arguments...> loaded =
        Load(arguments, std::index_sequence_for<Arguments...>{});
    gridDim = dim3(shape.grid[0], shape.grid[1], shape.grid[2]);
    blockDim = dim3(shape.block[0], shape.block[1], shape.block[2]);
    executor::BeginGrid(blockDim.x * blockDim.y * blockDim.z, RunThreads, &loaded);
    for (unsigned z = 0; z < shape.grid[2]; ++z) {
      for (unsigned y = 0; y < shape.grid[1]; ++y) {
        for (unsigned x = 0; x < shape.grid[0]; ++x) {
          blockIdx = {x, y, z};
          started_threads = 0;
          executor::RunBlock();
        }
      }
    }
    executor::EndGrid();
  }

  // For simkernels: the function (its symbol is the kernel's name) and how to run it.
  struct Description {
    void (*function)(Arguments...);
    KernelBody body;
    const KernelParameter* parameters;
    std::uint64_t parameter_count;
  };
  [[gnu::used]] static constexpr Description spillway_kernel_entry = {
      kFunction, Body, kLayout.parameters, sizeof...(Arguments)};

  struct Launcher {
    LaunchConfiguration configuration;
    void operator()(Arguments... arguments) const {
      static_cast<void>(
          &spillway_kernel_entry);  // puts every launched instantiation into the image
      void* pointers[] = {
          const_cast<void*>(static_cast<const volatile void*>(std::addressof(arguments)))...,
          nullptr};
      static_cast<void>(cudaLaunchKernel(reinterpret_cast<const void*>(kFunction),
                                         configuration.grid, configuration.block, pointers,
                                         configuration.shared_bytes, configuration.stream));
    }
  };
};

// kernel<<<grid, block, shared_bytes, stream>>>(...) of a kernel known by name.
template <typename KernelType>
typename KernelType::Launcher Launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0,
                                     cudaStream_t stream = nullptr) {
  return {{grid, block, shared_bytes, stream}};
}

template <typename... Arguments>
struct PointerLauncher {
  void (*function)(Arguments...);
  LaunchConfiguration configuration;
  void operator()(Arguments... arguments) const {
    void* pointers[] = {
        const_cast<void*>(static_cast<const volatile void*>(std::addressof(arguments)))...,
        nullptr};
    static_cast<void>(cudaLaunchKernel(reinterpret_cast<const void*>(function), configuration.grid,
                                       configuration.block, pointers, configuration.shared_bytes,
                                       configuration.stream));
  }
};

template <typename... Arguments>
PointerLauncher<Arguments...> LaunchPointer(void (*function)(Arguments...), dim3 grid, dim3 block,
                                            std::size_t shared_bytes = 0,
                                            cudaStream_t stream = nullptr) {
  return {function, {grid, block, shared_bytes, stream}};
}

// Wraps a program's use of a kernel's address, so that the instantiation is in the image too.
template <auto kFunction>
constexpr auto Registered() {
  static_cast<void>(&Kernel<kFunction>::spillway_kernel_entry);
  return kFunction;
}

}  // namespace spillway::simulator::device
