#include "agent/device/process_list.h"

#include <algorithm>
#include <map>

#include "agent/identity/control_group.h"
#include "base/file.h"
#include "protocol/message.h"

namespace spillway::agent {

std::string CommandOf(pid_t pid) {
  std::string name =
      base::ReadFile("/proc/" + std::to_string(pid) + "/comm").optional().value_or("");
  if (name.ends_with('\n')) name.pop_back();
  return std::string(protocol::Text<64>(name).view());
}

std::string GroupOf(pid_t pid) {
  return FolderOfGroup(
      base::ReadFile("/proc/" + std::to_string(pid) + "/cgroup").optional().value_or(""));
}

void AddProcesses(const std::string& uuid, int64_t memory_bytes,
                  std::span<const nvml::Process> listed, DeviceProcesses& processes) {
  constexpr unsigned long long not_available = ~0ULL;
  std::map<pid_t, int64_t> most_bytes;
  for (const nvml::Process& process : listed) {
    const auto pid = static_cast<pid_t>(process.pid);
    if (pid <= 0 || process.used_bytes == not_available) continue;
    const auto bytes = static_cast<int64_t>(std::min<unsigned long long>(
        process.used_bytes, static_cast<unsigned long long>(std::max<int64_t>(memory_bytes, 0))));
    most_bytes[pid] = std::max(most_bytes[pid], bytes);
  }
  for (const auto& [pid, bytes] : most_bytes) processes.uses.push_back({pid, uuid, bytes});
}

}  // namespace spillway::agent
