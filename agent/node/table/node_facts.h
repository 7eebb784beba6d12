// What is known of the node itself. A reload changes it, and each new count of the driver's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/config/config.h"
#include "agent/node/device_processes.h"
#include "protocol/message.h"

namespace spillway::agent {

struct NodeDevice {
  protocol::DeviceUuid uuid = {};
  std::string name;  // "GPU-..."
  std::string model;
  int64_t memory_bytes = 0;
  std::string bus_id = {};  // PCI; empty: unknown
  bool is_found = true;     // false: configured, but unknown to NVML
};

struct NodeFacts {
  std::vector<NodeDevice> devices;  // a DeviceId is an index of them
  int64_t host_bytes = 0;
  uint64_t instance = 0;  // of the agent
  int64_t started_ns = 0;
  Config config;
  bool last_reload_succeeded = true;
  std::shared_ptr<const DeviceProcesses> processes = {};  // null: no count of late
};

}  // namespace spillway::agent
