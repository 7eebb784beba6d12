// What the process reports of a job to the agent, from what it knows of the job. Reads only.
#pragma once

#include <cstdint>

#include "interposer/execute/job_memory.h"
#include "interposer/planning/pipeline.h"
#include "protocol/message.h"

namespace spillway::interposer {

inline std::int64_t NumberOf(std::uint64_t count) { return static_cast<std::int64_t>(count); }

std::int64_t SumOfUnmovable(const Counters& counters);
protocol::Phase PhaseOf(JobMemory* memory, const JobSnapshot& snapshot);
// Without the device's number. Null: the job is not learned.
protocol::Account AccountOf(const JobSnapshot& snapshot, const PipelineCounts* pipeline);
protocol::WorkspaceUse WorkspacesOf(const JobSnapshot& snapshot);
protocol::PlanUse PlanUseOf(const JobSnapshot& snapshot);
protocol::StepTimes StepTimesOf(const PipelineCounts* pipeline);
// The waits are the whole process's.
protocol::TurnUse TurnUseOf(const JobSnapshot& snapshot);
std::uint64_t OperationsOf(const JobSnapshot& snapshot);

}  // namespace spillway::interposer
