// Known GPUs and their links, by simulator/profiles/*.profile, whose text is compiled in.
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
  ComputeRates rates;  // the vendor's peaks; kernels reach part of them
  // With single-byte chunks. Callers that plan for the executor set its chunk size and `mapping`.
  DeviceModel model;
  // The driver's mapping times, if known. Not in `model`: the papers' systems keep memory mapped.
  MappingPrices mapping{};
};

std::vector<std::string> DeviceNames();

std::optional<Device> FindDevice(std::string_view name);
// By the driver's name, such as "NVIDIA A100-SXM4-40GB".
std::optional<Device> FindProduct(std::string_view product);

// Lines of `key = value`; '#' starts a comment; unknown keys are ignored. Nullopt if a required
// figure is missing or not positive.
std::optional<Device> ParseDevice(std::string_view name, std::string_view text);

ComputeRates EffectiveRates(const Device& device, int32_t flops_percent, int32_t memory_percent);

}  // namespace spillway::scheduler::networks
