// Where a kernel's parameters lie, and its name: asked of the driver once per function, then read without a lock.
//
// Called by the launch hooks on any thread, and by the hooks of unloading.
//
// Ownership: a layout, once seen, is kept until the process ends; kernels of the same layout share one. So memory grows
// with the number of different layouts, not with the kernels that come and go.
//
// Invariants
//  1. A handle may be a CUfunction or a CUkernel (cuda.h, cuLaunchKernel): both are asked.
//  2. After a module or library was unloaded every handle is asked anew: handles may be reused.
//  3. Only what the driver said of a kernel is kept: after an error that tells nothing it is asked again next time.
// Never: takes a lock, but for what at_first_sight does; fails.
// Source: cuFuncGetParamInfo, cuKernelGetParamInfo (CUDA 12.4), cuFuncGetName, cuKernelGetName (CUDA 12.3).
#pragma once

#include <cstdint>
#include <vector>

#include "interposer/driver/cuda_abi.h"
#include "interposer/record/operation_shape.h"

namespace spillway::entry {

struct KernelParameters {
  std::vector<std::uint32_t> size_bytes;  // in order
};

struct KernelFacts {
  const KernelParameters* parameters;  // never null
  interposer::Shape name;  // of its name (operation_shape.h); where the driver tells none, of its parameters
};

// `scratch` holds the answer in the rare case that it cannot be kept. `at_first_sight()` is called before the answer for a
// function is kept: no thread finds it kept earlier.
KernelFacts FactsOf(CUfunction function, KernelParameters* scratch, void (*at_first_sight)() = nullptr);
inline const KernelParameters& ParametersOf(CUfunction function, KernelParameters* scratch,
                                            void (*at_first_sight)() = nullptr) {
  return *FactsOf(function, scratch, at_first_sight).parameters;
}
// The kernel's name for people, for as long as the process lives; `name` is FactsOf's.
const char* ReadableName(CUfunction function, interposer::Shape name);
void ForgetKernelParameters();

}  // namespace spillway::entry
