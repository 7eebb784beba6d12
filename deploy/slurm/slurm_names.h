// Names and texts of Slurm that the plugin must agree about with the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::slurm {

std::string JobName(uint32_t job);

// "3", "batch" or "interactive", as in the step's control group; empty: a step without programs of
// the user.
std::string StepName(uint32_t step);

// Whether /proc/PID/cgroup has a control group of this job.
bool IsInJob(std::string_view cgroup_file, uint32_t job);

// The shards in "gpu:h200:1(IDX:0),shard:8(IDX:0)", a node's part of a job's generic resources.
int64_t ShardsIn(std::string_view resources);

}  // namespace spillway::slurm
