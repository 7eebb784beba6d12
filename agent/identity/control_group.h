// Which job a process belongs to by its control groups: a Slurm job, a Kubernetes pod, a container,
// or none of these.
//
// Pure: the text of /proc/PID/cgroup in, an identity out. The kernel writes that file as the
// agent's own namespace sees it.
//
// Invariants
//  1. A path counts only from its beginning (`/slurm...`, `/kubepods...`): what a user makes below
//  a subtree of his own cannot
//     look like another's job.
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

const char* NameOf(JobSource source);

}  // namespace spillway::agent
