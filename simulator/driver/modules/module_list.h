// What a module's metadata lists: its kernels with their parameters' places, and its variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/kernels/image.h"

namespace spillway::simulator {

struct ListedKernel {
  std::string name;
  std::vector<KernelParameter> parameters;
};

struct ListedVariable {
  std::string name;
  std::uint64_t size_bytes = 0;
};

struct ModuleList {
  std::vector<ListedKernel> kernels;
  std::vector<ListedVariable> variables;
};

// The most that any launch can pass (CUDA C++ Programming Guide, technical specifications: 32,764).
inline constexpr std::uint32_t kMostParameterBytes = 32768;

}  // namespace spillway::simulator
