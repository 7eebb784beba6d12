// Has frameworks allocate each tensor, and finds out whether a command is PyTorch's.
//
// By default frameworks take device memory in large segments, which move as a whole. Their own
// variables switch that off: PYTORCH_ALLOC_CONF and, before PyTorch 2.9, PYTORCH_CUDA_ALLOC_CONF;
// TF_GPU_ALLOCATOR; XLA_PYTHON_CLIENT_ALLOCATOR.
#pragma once

#include <optional>
#include <string>

#include "cli/environment_changes.h"

namespace spillway::cli {

// The user's variables stay; either of PyTorch's two counts for both.
void SwitchFrameworks(EnvironmentChanges& environment);

// Of its virtual environment, PYTHONPATH, the user's packages or the system's. Nullopt: no Python,
// or no PyTorch.
std::optional<std::string> PyTorchVersion(const std::string& program_path);

// Empty for a build without CUDA.
std::string DescribePyTorch(const std::string& version, bool is_switched);

}  // namespace spillway::cli
