// The statistics of a machine that several simulated processes share, as JSON: what each device and
// each process holds and held, present, ended or killed. Any process may read them at any time;
// reading finds out who is dead.
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
// Those who are there, and what each holds of a device. Nobody where there is no such machine.
std::vector<NodeProcess> ReadNodeProcesses(const std::string& path, int device);

// An error: there is no such machine.
base::Result<std::string> ReadNodeStatistics(const std::string& path);

}  // namespace spillway::simulator
