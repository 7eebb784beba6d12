// What the driver reads of a ResourceClaim (resource.k8s.io/v1), and of nothing else in it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "deploy/kubernetes/memory_terms.h"

namespace spillway::kubernetes {

inline constexpr char kDriver[] = "spillway.dev";
inline constexpr char kMemory[] = "memory";  // the capacity of our devices

// As kubelet names it.
struct ClaimName {
  std::string name_space, name, uid;
  bool operator==(const ClaimName&) const = default;
};

struct AllocatedDevice {
  std::string request, pool, device;
  std::string share_id;                       // empty: the device has one user
  std::optional<int64_t> counted_bytes = {};  // the device's memory that the claim consumes
  std::vector<MemoryConfig> of_class = {}, of_claim = {};  // those of its request, in order
  bool operator==(const AllocatedDevice&) const = default;
};

struct Claim {
  ClaimName name;
  std::vector<AllocatedDevice> devices;  // this driver's
  std::vector<std::string> pods;         // uids of those that may use it
};

// An error if it is not allocated, is reserved for no pod, or has a configuration that does not
// parse.
base::Result<Claim> ParseClaim(std::string_view json);

}  // namespace spillway::kubernetes
