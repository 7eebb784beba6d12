// What the process reports of a job to the agent, from what it knows of the job. Reads only.
#pragma once

#include <cstdint>

#include "interposer/execute/job_memory.h"
#include "interposer/lease/lease_client.h"
#include "interposer/planning/pipeline.h"
#include "protocol/message.h"

namespace spillway::interposer {

inline std::int64_t NumberOf(std::uint64_t count) { return static_cast<std::int64_t>(count); }

protocol::Phase PhaseOf(JobMemory* memory, const JobSnapshot& snapshot);
// All that follows from these alone: without the device's number, the phase, and what the job asks
// for. Null: the job is not learned. The waits for turns are the whole process's.
DeviceUse UseOf(const JobSnapshot& snapshot, const PipelineCounts* pipeline, bool is_in_turns);
std::uint64_t OperationsOf(const JobSnapshot& snapshot);

}  // namespace spillway::interposer
