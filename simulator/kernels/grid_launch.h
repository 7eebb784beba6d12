// The launch of a grid, from host code or from a kernel.
//
// `<<<...>>>` configures the calling thread's next call of a kernel. Kernel bodies call
// RunChildGrids() last.
//
// Invariants
//  1. Host launches go to the CUDA runtime. Only programs (`simkernels --host`) have them.
//  2. A kernel's launches run after its grid, in the order of the launches, each followed by its
//     own children. Tail launches run last.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/kernels/image.h"

namespace spillway::simulator {

struct KernelDescription {
  KernelBody body;
  const KernelParameter* parameters;
  std::uint64_t parameter_count;
};

namespace executor {

enum class LaunchedBy : std::uint32_t { kHost, kKernel };

struct GridConfiguration {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::size_t shared_bytes;
  void* stream;
  LaunchedBy launched_by;
};

void Configure(const GridConfiguration& configuration);
void LaunchConfigured(const KernelDescription& kernel, void** arguments);

using HostLaunch = void (*)(const KernelDescription& kernel, const GridConfiguration& configuration,
                            void** arguments);
void SetHostLaunch(HostLaunch launch);

void RunChildGrids();
// For a grid that siglongjmp abandoned.
void ForgetChildGrids();

}  // namespace executor
}  // namespace spillway::simulator
