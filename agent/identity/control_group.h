// Finds a process's job by its control groups: a Slurm job, a Kubernetes pod, a container, or none.
// Pure: parses /proc/PID/cgroup, which the kernel writes relative to the agent's own namespace.
//
// Invariants
//  1. A path counts only from its beginning (`/slurm...`, `/kubepods...`). So a group that a user
//     makes in an own subtree cannot imitate another job.
#pragma once

#include <string>
#include <string_view>

namespace spillway::agent {

enum class JobSource : uint8_t { kLocal, kSlurm, kKubernetes, kContainer };

struct ControlGroupIdentity {
  JobSource source = JobSource::kLocal;
  std::string job;   // Slurm's job number, the pod's uid, the container's id
  std::string part;  // Slurm's step, the pod's container
  bool operator==(const ControlGroupIdentity&) const = default;
};

ControlGroupIdentity IdentityInControlGroups(std::string_view cgroup_file);

// The folder of the process's group in the one hierarchy of version 2. Empty: it is in none.
std::string FolderOfGroup(std::string_view cgroup_file);
// That folder, if its own path names this job. Groups of local jobs also hold other processes.
std::string OwnGroupOf(const ControlGroupIdentity& job, std::string_view cgroup_file);

const char* NameOf(JobSource source);

}  // namespace spillway::agent
