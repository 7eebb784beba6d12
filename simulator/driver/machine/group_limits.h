// Limits on the device memory of control groups, as NVML sets and reads them and the driver
// enforces them. They stand in the file that SPILLWAY_SIM_MEMORY_LIMITS names, one a line:
// "UUID GROUP SOFT HARD", in bytes; a hard limit of 0 is none. Without that variable there are
// none.
//
// Invariants
//  1. A writer replaces the whole file, so a reader sees all of a change or nothing.
//  2. Limits that restrict nothing have no line.
// Never: enforces soft limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::simulator {

struct GroupLimits {
  std::uint64_t soft_bytes = 0;
  std::uint64_t hard_bytes = UINT64_MAX;  // none
};

// Empty: there are no such limits.
std::string GroupLimitsPath();
GroupLimits ReadGroupLimits(const std::string& path, const std::string& uuid,
                            const std::string& group);
enum class LimitsWritten : std::uint8_t { kYes, kNotPermitted, kFailed };
// A file that nobody may write stands for a caller without permission.
LimitsWritten WriteGroupLimits(const std::string& path, const std::string& uuid,
                               const std::string& group, const GroupLimits& limits);

// The folder of the process's group, as NVML is given it. Empty: unknown.
std::string GroupFolderOf(int pid);

// The driver's side. `uuids`: of this process's devices.
void EnforceGroupLimits(std::vector<std::string> uuids);
// Whether this process, which holds `own_bytes` there, may take so much more.
bool GroupMayTake(int device, std::uint64_t own_bytes, std::uint64_t size_bytes);

}  // namespace spillway::simulator
