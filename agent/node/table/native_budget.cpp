#include "agent/node/table/native_budget.h"

#include <algorithm>
#include <map>

#include "base/external_limits.h"

namespace spillway::agent {

std::optional<int64_t> BudgetBelow(const NativeLimits& limits, int64_t processes) {
  const int64_t top_bytes =
      limits.soft_bytes > 0 ? std::min(limits.soft_bytes, limits.hard_bytes) : limits.hard_bytes;
  if (top_bytes == INT64_MAX) return std::nullopt;
  const auto limit_bytes = static_cast<uint64_t>(std::max<int64_t>(top_bytes, 0));
  const auto context_bytes = static_cast<int64_t>(limit_bytes - base::BudgetBelow(limit_bytes));
  return std::max<int64_t>(0, top_bytes - context_bytes * std::min<int64_t>(processes, 16));
}

std::optional<int64_t> NativeBudgetOf(const Job& job, const std::string& uuid,
                                      const SessionTable& table, const DeviceProcesses& processes) {
  std::set<pid_t> own;
  for (const SessionId id : job.sessions) own.insert(table.At(id).peer->pid());
  std::map<std::string, std::pair<NativeLimits, int64_t>> groups;
  for (const ProcessUse& use : processes.uses) {
    if (use.uuid != uuid || !use.limits || own.count(use.pid) == 0) continue;
    auto& [limits, count] = groups[use.group];
    limits = *use.limits;
    ++count;
  }
  std::optional<int64_t> least;
  for (const auto& [name, group] : groups) {
    const std::optional<int64_t> budget = BudgetBelow(group.first, group.second);
    if (budget) least = std::min(least.value_or(INT64_MAX), *budget);
  }
  return least;
}

}  // namespace spillway::agent
