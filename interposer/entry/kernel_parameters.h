// Where a kernel's parameters lie, and its name: asked of the driver once per function, then read
// without a lock.
//
// Called by the launch hooks on any thread, and by the hooks of unloading.
//
// Ownership: a layout, once seen, is kept until the process ends; kernels of the same layout share
// one. So memory grows with the number of different layouts, not with the kernels that come and go.
//
// Invariants
//  1. A handle may be a CUfunction or a CUkernel (cuda.h, cuLaunchKernel): both are asked.
//  2. After a module or library was unloaded every handle is asked anew, and new: handles may be
//  reused.
//  3. Only what the driver said of a kernel is kept: after an error that tells nothing it is asked
//  again next time.
// Never: takes a lock; fails.
// Source: cuFuncGetParamInfo, cuKernelGetParamInfo (CUDA 12.4), cuFuncGetName, cuKernelGetName
// (CUDA 12.3).
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
  interposer::Shape
      name;  // of its name (operation_shape.h); where the driver tells none, of its parameters
  bool is_kept = true;  // false: asked anew each time, and new for ever
  bool is_new = true;   // nobody has looked at what a launch of it does
};

// `scratch` holds the answer in the rare case that it cannot be kept.
KernelFacts FactsOf(CUfunction function, KernelParameters* scratch);
inline const KernelParameters& ParametersOf(CUfunction function, KernelParameters* scratch) {
  return *FactsOf(function, scratch).parameters;
}
// The function is not new any more. Nothing happens when its facts are not kept.
void MarkScanned(CUfunction function);
// The kernel's name for people, for as long as the process lives; `name` is FactsOf's.
const char* ReadableName(CUfunction function, interposer::Shape name);
void ForgetKernelParameters();

}  // namespace spillway::entry
