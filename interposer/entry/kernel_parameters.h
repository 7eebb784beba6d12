// Kernels' parameter layouts and names: asked of the driver once, then read without a lock.
//
// Ownership: a layout is kept until the process ends, and kernels with equal layouts share one.
// Invariants
//  1. A handle may be a CUfunction or a CUkernel (cuda.h, cuLaunchKernel): both are tried.
//  2. After an unloading every handle is asked anew and counts as new: handles may be reused.
//  3. Only the driver's answers are kept. After an error the kernel is asked again.
// Source: cuFunc/cuKernelGetParamInfo (CUDA 12.4), cuFunc/cuKernelGetName (CUDA 12.3).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interposer/driver/cuda_abi.h"
#include "interposer/entry/pytorch_structs.h"
#include "interposer/entry/tensor_lists.h"
#include "interposer/record/operation_shape.h"

namespace spillway::entry {

struct KernelParameters {
  std::vector<std::uint32_t> size_bytes;    // in order
  std::vector<std::uint32_t> offset_bytes;  // where each lies in a buffer of all
  std::vector<std::uint32_t> words;         // the indices of those of one word
  std::vector<std::uint32_t> others;        // the indices of all others
  TensorLists lists;                        // what the first one is, by the kernel's name
  KnownStruct by_value;                     // likewise (pytorch_structs.h)

  void Add(std::uint32_t bytes, std::uint32_t offset) {
    (bytes == sizeof(CUdeviceptr) ? words : others)
        .push_back(static_cast<std::uint32_t>(size_bytes.size()));
    size_bytes.push_back(bytes);
    offset_bytes.push_back(offset);
  }

  bool operator==(const KernelParameters&) const = default;
};

struct KernelFacts {
  const KernelParameters* parameters = nullptr;  // FactsOf: never null
  interposer::Shape name = 0;  // shape of its name; without one, of its parameters
  bool is_kept = true;         // false: asked each time, and always new
  bool is_new = true;
};

// Holds an answer that cannot be kept, which is rare.
using ScratchParameters = std::unique_ptr<KernelParameters>;

KernelFacts FactsOf(CUfunction function, ScratchParameters* scratch);
inline const KernelParameters& ParametersOf(CUfunction function, ScratchParameters* scratch) {
  return *FactsOf(function, scratch).parameters;
}
void MarkScanned(CUfunction function);
// `name` is from FactsOf.
const char* ReadableName(CUfunction function, interposer::Shape name);
void ForgetKernelParameters();

}  // namespace spillway::entry
