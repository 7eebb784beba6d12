// What known GPUs and their links can do, as a planner needs it.
//
// The figures are those of simulator/profiles/*.profile, the one place that keeps them: their text
// is compiled in. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/networks/training_step.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler::networks {

struct Device {
  std::string name;  // "a100"
  int64_t capacity_bytes = 0;
  ComputeRates rates;  // the vendor's peaks: kernels reach a part of them
  DeviceModel model;   // single bytes as chunks; callers that plan for the executor set its chunk
                       // size, and `mapping`
  // What the driver takes to map and unmap a chunk, where known; no part of `model`, since the
  // papers' systems keep their memory mapped.
  MappingPrices mapping{};
};

// Names of the compiled-in profiles, sorted.
std::vector<std::string> DeviceNames();

std::optional<Device> FindDevice(std::string_view name);
// By what its driver calls it: "NVIDIA A100-SXM4-40GB".
std::optional<Device> FindProduct(std::string_view product);

// Lines of `key = value`, '#' starts a comment; unknown keys are passed over. Nothing when a needed
// figure is missing, not a number or not positive.
std::optional<Device> ParseDevice(std::string_view name, std::string_view text);

// `percent` of the arithmetic peak and of the memory bandwidth.
ComputeRates EffectiveRates(const Device& device, int32_t flops_percent, int32_t memory_percent);

}  // namespace spillway::scheduler::networks
