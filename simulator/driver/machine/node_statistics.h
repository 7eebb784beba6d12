// A shared machine's statistics as JSON: memory of each device and process, also of ended ones.
// Reading detects dead processes.
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
// Empty if there is no such machine.
std::vector<NodeProcess> ReadNodeProcesses(const std::string& path, int device);

// Of the machine's time until now. Zeros if there is no such machine.
struct NodeTime {
  std::int64_t passed_ns = 0;
  std::int64_t computing_ns = 0;  // with work on the device's multiprocessors
};
NodeTime ReadNodeTime(const std::string& path, int device);

// An error if there is no such machine.
base::Result<std::string> ReadNodeStatistics(const std::string& path);

}  // namespace spillway::simulator
