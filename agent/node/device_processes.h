// Which processes hold how much device memory, by the driver's count, and within which limits of
// its own. Also foreign processes. And how busy the devices are.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::agent {

// The driver's limits for the processes of a control group together (MPS v3, driver r615). Above
// the soft one it may end processes for others; it refuses what is above the hard one.
struct NativeLimits {
  int64_t soft_bytes = 0;          // 0: none
  int64_t hard_bytes = INT64_MAX;  // INT64_MAX: none
  bool operator==(const NativeLimits&) const = default;
};

struct ProcessUse {
  pid_t pid = 0;  // in the agent's namespace, where the agent sees the host's processes
  std::string uuid;
  int64_t bytes = 0;
  std::string command = {};                 // empty: unknown
  std::string group = {};                   // its control group's folder; empty: unknown
  std::optional<NativeLimits> limits = {};  // of that group; nullopt: the driver does not tell
};

struct DeviceProcesses {
  std::set<std::string> devices;  // by UUID: those that the driver tells of
  std::vector<ProcessUse> uses;
  // By UUID: of its time of late, with a kernel on the device. A device that does not tell is left
  // out (MIG).
  std::map<std::string, int64_t> busy_permille = {};
};

}  // namespace spillway::agent
