// What NVML and /proc say of the processes on the devices, made safe to count and to show.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "agent/node/device_processes.h"
#include "base/nvml_abi.h"

namespace spillway::agent {

// The program's name, printable: a process chooses it itself. Empty: unknown.
std::string CommandOf(pid_t pid);

// The folder of its group in the one hierarchy of version 2. Other hierarchies have no limits of
// the driver's. Empty: unknown.
std::string GroupOf(pid_t pid);

// Adds the device's list. A process counts once, with the most that is listed for it, and with no
// more than the device has.
void AddProcesses(const std::string& uuid, int64_t memory_bytes,
                  std::span<const nvml::Process> listed, DeviceProcesses& processes);

}  // namespace spillway::agent
