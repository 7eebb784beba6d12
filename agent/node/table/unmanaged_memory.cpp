#include "agent/node/table/unmanaged_memory.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {
namespace {

using Place = std::pair<pid_t, DeviceId>;

// What the processes that have registered a device say that they hold there, within what they are
// budgeted: a report is the process's own word.
std::map<Place, int64_t> Reported(const SessionTable& table, const Arbiter& arbiter) {
  std::map<Place, int64_t> reported;
  for (const auto& [id, session] : table.sessions()) {
    for (const auto& [number, registration] : session.registrations)
      AddTo(reported[{session.peer->pid(), registration.device}],
            std::min(registration.usage.resident_bytes,
                     arbiter.BudgetedTo(ProcessOf(session, registration.device))));
  }
  return reported;
}

int64_t UnmanagedBytes(const ProcessUse& use, const std::map<Place, int64_t>& reported,
                       DeviceId device) {
  const auto known = reported.find({use.pid, device});
  if (known == reported.end()) return use.bytes;
  int64_t managed_bytes = known->second;
  AddTo(managed_bytes, kContextBytes);
  return std::max<int64_t>(0, use.bytes - managed_bytes);
}

}  // namespace

void AddUnmanaged(const DeviceProcesses& processes, const SessionTable& table,
                  const Arbiter& arbiter, NodeReport& report) {
  const std::map<Place, int64_t> reported = Reported(table, arbiter);
  for (DeviceReport& device : report.devices) {
    if (processes.devices.count(device.uuid) == 0) continue;
    device.unmanaged_bytes = 0;
    for (const ProcessUse& use : processes.uses) {
      if (use.uuid != device.uuid) continue;
      const int64_t bytes = UnmanagedBytes(use, reported, DeviceId{device.number});
      if (bytes == 0) continue;
      AddTo(*device.unmanaged_bytes, bytes);
      device.unmanaged.push_back({use.pid, use.command, bytes});
    }
    std::sort(device.unmanaged.begin(), device.unmanaged.end(),
              [](const UnmanagedProcess& one, const UnmanagedProcess& other) {
                return std::tie(other.bytes, one.pid) < std::tie(one.bytes, other.pid);
              });
    device.unmanaged.resize(std::min(device.unmanaged.size(), kMostUnmanagedShown));
  }
}

}  // namespace spillway::agent
