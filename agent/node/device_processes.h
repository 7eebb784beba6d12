// Which processes hold how much device memory, by the driver's count. Also foreign ones.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace spillway::agent {

struct ProcessUse {
  pid_t pid = 0;  // in the agent's namespace, where the agent sees the host's processes
  std::string uuid;
  int64_t bytes = 0;
  std::string command = {};  // empty: unknown
};

struct DeviceProcesses {
  std::set<std::string> devices;  // by UUID: those that the driver tells of
  std::vector<ProcessUse> uses;
};

}  // namespace spillway::agent
