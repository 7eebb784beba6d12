// The opaque configuration of a device class and of a claim, and the terms of a job that follow
// from both. Pure.
//
// The administrator writes a class, a user writes a claim:
//
//   apiVersion: spillway.dev/v1alpha1
//   kind: MemoryConfig
//   limit: 100%       # or a quantity: the most device memory
//   floor: 4Gi        # stays with the pod while it wants it
//   weight: 2
//   priority: 1
//
// Invariants
//  1. A claim lowers what its class sets, or what the scheduler counted, and never raises it.
//  2. floor <= limit, and floor <= what the scheduler counted. So the floors of all pods fit the
//     device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway::kubernetes {

inline constexpr char kConfigVersion[] = "spillway.dev/v1alpha1";
inline constexpr char kConfigKind[] = "MemoryConfig";

// Bytes, or a share of the device.
struct Amount {
  int64_t bytes = 0;
  std::optional<int32_t> permille = {};
  bool operator==(const Amount&) const = default;
  int64_t In(int64_t device_bytes) const;
};

struct MemoryConfig {
  std::optional<Amount> limit = {}, floor = {};
  std::optional<int32_t> weight = {}, priority = {};
  bool operator==(const MemoryConfig&) const = default;
};

// `json`: the `parameters` of an opaque configuration.
base::Result<MemoryConfig> ParseMemoryConfig(std::string_view json);

// Of one allocated device. An unset weight or priority is the agent's own.
struct MemoryTerms {
  int64_t guaranteed_bytes = 0, limit_bytes = 0;
  std::optional<int32_t> weight = {}, priority = {};
  bool operator==(const MemoryTerms&) const = default;
};

struct DeviceShare {
  int64_t device_bytes = 0;
  int64_t counted_bytes = 0;  // by the scheduler
};

// The most that the class allows a pod on this device; nullopt: it sets no limit.
std::optional<int64_t> ClassLimitIn(const DeviceShare& share,
                                    const std::vector<MemoryConfig>& of_class);

// Later configurations of one source replace earlier ones, setting by setting.
base::Result<MemoryTerms> ResolveTerms(const DeviceShare& share,
                                       const std::vector<MemoryConfig>& of_class,
                                       const std::vector<MemoryConfig>& of_claim);

}  // namespace spillway::kubernetes
