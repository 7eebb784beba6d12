// How PyTorch, if the process has loaded it, takes device memory.
//
// Read when a job's memory is made: PyTorch is loaded by then, and its allocator is chosen by these
// variables (PyTorch, "CUDA semantics", optimizing memory usage).
#pragma once

#include <cstdint>

namespace spillway::interposer {

enum class PyTorchAllocator : std::uint8_t {
  kNone,        // no PyTorch with CUDA is loaded
  kPerTensor,   // every tensor is an allocation, which moves alone
  kSegments,    // tensors share allocations and move together
  kExpandable,  // PyTorch maps memory itself, which cannot move
};
// For the report, in the order of the enum.
inline constexpr const char* kPyTorchAllocatorNames[] = {"none", "per_tensor", "segments",
                                                         "expandable_segments"};

// The values of PYTORCH_CUDA_ALLOC_CONF, which counts more, PYTORCH_ALLOC_CONF and
// PYTORCH_NO_CUDA_MEMORY_CACHING; null: not set.
PyTorchAllocator AllocatorOf(const char* cuda_alloc_conf, const char* alloc_conf,
                             const char* no_caching);
PyTorchAllocator ReadPyTorchAllocator();

}  // namespace spillway::interposer
