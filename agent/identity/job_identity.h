// The process behind a socket, its user, and its job. Read from /proc: the identity comes from the
// kernel, not from the tenant.
//
// Invariants
//  1. A process in a Slurm job, pod or container belongs to that job. Another process belongs to
//     the job of its leader: the process that it names, if that is itself or an ancestor of the
//     same user; else itself.
//  2. A process that has ended meanwhile has no identity.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/identity/control_group.h"

namespace spillway::agent {

struct JobIdentity {
  std::string name;  // "slurm-1201", "pod-1f2e3d4c", "container-0123456789ab", "local-4711"
  std::string key;   // unlike the name, unique while the node runs
  JobSource source = JobSource::kLocal;
  std::string part;
  std::string command;
  std::string id = {};     // Slurm's job number, the pod's uid, the container's id; empty: local
  std::string group = {};  // folder of its own control group (version 2); empty: it has none
};

class ProcessTable {
 public:
  // `root`: "/proc", or a copy of its tree.
  explicit ProcessTable(std::string root = "/proc") : root_(std::move(root)) {}

  // `leader_pid` is in the process's own pid namespace; 0: none.
  std::optional<JobIdentity> IdentityOf(pid_t pid, uid_t uid, pid_t leader_pid) const;

  std::optional<uid_t> UserOf(pid_t pid) const;

 private:
  struct Process {
    pid_t pid = 0, parent = 0;
    pid_t own_pid = 0;  // in its innermost namespace
    uid_t uid = 0;
    std::string started;
    std::string command;
  };
  std::optional<std::string> Read(pid_t pid, const char* file) const;
  std::optional<Process> Look(pid_t pid) const;
  Process LeaderOf(const Process& process, pid_t claimed) const;

  std::string root_;
};

}  // namespace spillway::agent
