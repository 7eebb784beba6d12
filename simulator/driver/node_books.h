// The books of a machine that several simulated processes share, as JSON: what each device and each process holds and held,
// present, ended or killed. Any process may read them at any time; reading finds out who is dead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::simulator {

struct NodeProcess {
  int pid;
  std::uint64_t held_bytes;
};
// Those who are there, and what each holds of a device. Nobody where there is no such machine.
std::vector<NodeProcess> ReadNodeProcesses(const std::string& path, int device);

// False, and why: there is no such machine.
bool ReadNodeBooks(const std::string& path, std::string& json, std::string& error);

}  // namespace spillway::simulator
