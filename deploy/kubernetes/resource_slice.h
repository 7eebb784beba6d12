// The ResourceSlice (resource.k8s.io/v1) by which a node offers the memory of its GPUs. Pure.
//
// Each GPU is a device of the driver whose capacity `memory` is consumable: the scheduler counts
// what claims ask for, and places no more than there is. A node has one slice, in a pool of its
// own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "deploy/kubernetes/node_devices.h"

namespace spillway::kubernetes {

// The unit of device memory, and the least that a claim takes: a claim without a request has it.
inline constexpr int64_t kStepBytes = int64_t{2} << 20, kLeastBytes = int64_t{256} << 20;
// The API's bound for devices with taints.
inline constexpr size_t kMostDevices = 64;

struct NodeName {
  std::string name, uid;
};

// Why nothing new may be placed on the node. Kubernetes calls these taints of devices.
struct Taint {
  std::string key, value;
  bool operator==(const Taint&) const = default;
};

std::string SliceNameOf(const std::string& node);

// The memory that the scheduler may count of a GPU: whole steps.
int64_t CapacityOf(const Gpu& gpu);

// A whole object, with generation 1. More than kMostDevices GPUs: an error.
base::Result<std::string> ResourceSlice(const NodeName& node, const std::vector<Gpu>& gpus,
                                        const std::vector<Taint>& taints);

}  // namespace spillway::kubernetes
