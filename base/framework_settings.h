// The frameworks' own variables by which each tensor gets its own allocation. Whoever starts a job
// sets them, unless the user has.
#pragma once

namespace spillway::frameworks {

struct Setting {
  const char* name;
  const char* value;
};

// Before PyTorch 2.9 the second; either counts for both.
inline constexpr const char* kPyTorchNames[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};
inline constexpr char kPerTensor[] = "backend:cudaMallocAsync";

inline constexpr Setting kOthers[] = {
    {"TF_GPU_ALLOCATOR", "cuda_malloc_async"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
};

}  // namespace spillway::frameworks
