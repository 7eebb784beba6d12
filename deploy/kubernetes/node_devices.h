// The node's GPUs as the agent and the kernel module describe them. Pure, but for PciBusIds.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway::kubernetes {

struct Gpu {
  std::string uuid;  // "GPU-73696d2d-..."
  std::string model = {};
  int64_t memory_bytes = 0;     // that the agent shares out
  std::string pci_bus_id = {};  // "0000:81:00.0"; empty: unknown
  bool operator==(const Gpu&) const = default;
};

// A name that Kubernetes takes for a device: "gpu-73696d2d-...".
std::string DeviceNameOf(const std::string& uuid);

struct NodeStatus {
  std::vector<Gpu> gpus;  // without bus ids
  bool draining = false;
  std::string agent_instance;  // another one after each start
  // Uids of pods: with processes under the agent, and those that it refuses until it is told of
  // them.
  std::set<std::string> pods, waiting_pods;
};

// `json`: what `spillway status --json` prints.
base::Result<NodeStatus> ParseStatus(std::string_view json);

// By UUID, from a folder such as /proc/driver/nvidia/gpus. Empty without NVIDIA's kernel module.
std::map<std::string, std::string> PciBusIds(const std::string& folder);

}  // namespace spillway::kubernetes
