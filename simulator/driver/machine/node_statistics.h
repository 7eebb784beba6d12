// The statistics of a machine that several simulated processes share, as JSON: present and peak
// memory of each device and each process, also of ended and killed ones. Any process may read them
// at any time. Reading detects dead processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::simulator {

struct NodeProcess {
  int pid;
  std::uint64_t held_bytes;
};
// The present processes and their bytes on a device. Empty if there is no such machine.
std::vector<NodeProcess> ReadNodeProcesses(const std::string& path, int device);

// An error if there is no such machine.
base::Result<std::string> ReadNodeStatistics(const std::string& path);

}  // namespace spillway::simulator
