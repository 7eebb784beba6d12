#include "agent/identity/job_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/file.h"

namespace spillway::agent {
namespace {

constexpr int kMostAncestors = 64;

// The numbers after "Name:" in /proc/PID/status.
std::istringstream NumbersAfter(const std::string& status, const char* name) {
  const size_t line = status.find(std::string("\n") + name + ":");
  if (line == std::string::npos) return std::istringstream();
  const size_t begin = status.find(':', line) + 1;
  return std::istringstream(status.substr(begin, status.find('\n', begin) - begin));
}

}  // namespace

std::optional<std::string> ProcessTable::Read(pid_t pid, const char* file) const {
  return base::ReadFile(root_ + "/" + std::to_string(pid) + "/" + file).optional();
}

std::optional<ProcessTable::Process> ProcessTable::Look(pid_t pid) const {
  const std::optional<std::string> stat = Read(pid, "stat"), status = Read(pid, "status");
  if (!stat || !status) return std::nullopt;
  // "pid (command) state parent ... started ...". The command may hold any character, so fields
  // count from the last parenthesis.
  const size_t open = stat->find('('), close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Process process;
  process.pid = process.own_pid = pid;
  process.command = stat->substr(open + 1, close - open - 1);
  std::istringstream fields(stat->substr(close + 1));
  std::string state, skipped;
  fields >> state >> process.parent;
  for (int i = 5; i < 22; ++i) fields >> skipped;
  fields >> process.started;
  std::istringstream uids = NumbersAfter(*status, "Uid"), pids = NumbersAfter(*status, "NSpid");
  uids >> process.uid;
  for (pid_t inner; pids >> inner;) process.own_pid = inner;
  return fields && uids ? std::optional(process) : std::nullopt;
}

std::optional<uid_t> ProcessTable::UserOf(pid_t pid) const {
  const std::optional<Process> process = Look(pid);
  return process ? std::optional(process->uid) : std::nullopt;
}

ProcessTable::Process ProcessTable::LeaderOf(const Process& process, pid_t claimed) const {
  if (claimed <= 0 || claimed == process.own_pid) return process;
  std::optional<Process> ancestor = process;
  for (int i = 0; i < kMostAncestors && ancestor->parent > 1; ++i) {
    ancestor = Look(ancestor->parent);
    if (!ancestor || ancestor->uid != process.uid) break;
    if (ancestor->own_pid == claimed) return *ancestor;
  }
  return process;
}

std::optional<JobIdentity> ProcessTable::IdentityOf(pid_t pid, uid_t uid, pid_t leader_pid) const {
  const std::optional<Process> process = Look(pid);
  const std::optional<std::string> groups = Read(pid, "cgroup");
  if (!process || process->uid != uid || !groups) return std::nullopt;
  const ControlGroupIdentity group = IdentityInControlGroups(*groups);
  JobIdentity identity{"", "", group.source, group.part, process->command};
  if (group.source == JobSource::kLocal) {
    const Process leader = LeaderOf(*process, leader_pid);
    identity.name = "local-" + std::to_string(leader.pid);
    identity.key = identity.name + "@" + leader.started;
    identity.command = leader.command;
    return identity;
  }
  const char* prefix = group.source == JobSource::kSlurm        ? "slurm-"
                       : group.source == JobSource::kKubernetes ? "pod-"
                                                                : "container-";
  const size_t shown = group.source == JobSource::kSlurm        ? group.job.size()
                       : group.source == JobSource::kKubernetes ? 8
                                                                : 12;
  identity.name = prefix + group.job.substr(0, shown);
  identity.key = prefix + group.job;
  identity.id = group.job;
  identity.group = OwnGroupOf(group, *groups);
  return identity;
}

}  // namespace spillway::agent
