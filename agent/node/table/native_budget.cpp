#include "agent/node/table/native_budget.h"

#include <algorithm>
#include <map>

#include "agent/arbiter/amounts.h"
#include "base/external_limits.h"

namespace spillway::agent {
namespace {

// A control group on one device.
struct Group {
  std::optional<NativeLimits> limits;  // nullopt: the driver does not tell
  int64_t foreign_bytes = 0;           // of processes of no job
  struct Member {
    int64_t bytes = 0, processes = 0;
  };
  std::map<JobId, Member> jobs;
};

std::map<pid_t, JobId> JobsByProcess(const SessionTable& table) {
  std::map<pid_t, JobId> jobs;
  for (const auto& [id, job] : table.jobs()) {
    for (const SessionId session : job.sessions) jobs[table.At(session).peer->pid()] = id;
  }
  return jobs;
}

std::map<std::string, Group> GroupsOn(const std::string& uuid, const SessionTable& table,
                                      const DeviceProcesses& processes) {
  const std::map<pid_t, JobId> jobs = JobsByProcess(table);
  std::map<std::string, Group> groups;
  for (const ProcessUse& use : processes.uses) {
    if (use.uuid != uuid) continue;
    Group& group = groups[use.group];
    if (use.limits) group.limits = use.limits;
    const auto job = jobs.find(use.pid);
    if (job == jobs.end()) {
      AddTo(group.foreign_bytes, use.bytes);
      continue;
    }
    AddTo(group.jobs[job->second].bytes, use.bytes);
    ++group.jobs[job->second].processes;
  }
  return groups;
}

// INT64_MAX: none.
int64_t TopOf(const NativeLimits& limits) {
  const int64_t soft_bytes = limits.soft_bytes > 0 ? limits.soft_bytes : INT64_MAX;
  return std::max<int64_t>(0, std::min(soft_bytes, limits.hard_bytes));
}

int64_t BudgetIn(const Group& group, int64_t top_bytes, JobId own) {
  const auto whole = static_cast<uint64_t>(top_bytes);
  const auto context_bytes = static_cast<int64_t>(whole - base::BudgetBelow(whole));
  int64_t others_bytes = group.foreign_bytes, processes = 0;
  for (const auto& [job, member] : group.jobs) {
    processes += member.processes;
    if (job != own) AddTo(others_bytes, member.bytes);
  }
  const auto jobs = static_cast<int64_t>(group.jobs.size());
  const int64_t part_bytes =
      (top_bytes - std::min(group.foreign_bytes, top_bytes) - context_bytes * processes) / jobs;
  const int64_t left_bytes =
      top_bytes - std::min(others_bytes, top_bytes) - context_bytes * group.jobs.at(own).processes;
  return std::max<int64_t>(0, std::min(part_bytes, left_bytes));
}

}  // namespace

NativeBudget NativeBudgetOf(const Job& job, const std::string& uuid, const SessionTable& table,
                            const DeviceProcesses& processes) {
  NativeBudget budget;
  bool is_listed = false, is_silent = false;
  for (const auto& [name, group] : GroupsOn(uuid, table, processes)) {
    if (group.jobs.count(job.id) == 0) continue;
    is_listed = true;
    is_silent = is_silent || !group.limits;
    const int64_t top_bytes = group.limits ? TopOf(*group.limits) : INT64_MAX;
    if (top_bytes == INT64_MAX) continue;
    budget.bytes = std::min(budget.bytes.value_or(INT64_MAX), BudgetIn(group, top_bytes, job.id));
  }
  budget.is_told = is_listed && !is_silent;
  return budget;
}

}  // namespace spillway::agent
