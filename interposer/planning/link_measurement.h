// How fast the link between host and device is, each way alone and both ways at once: a few copies
// of our own.
//
// Called by the planner thread once per job, before its first plan, where the device's name says
// nothing (device_model.h); the job's context is current. It waits for its copies, some
// milliseconds, and takes device memory of the budget for that long.
#pragma once

#include <optional>

#include "interposer/execute/job_memory.h"
#include "scheduler/plan/problem.h"

namespace spillway::interposer {

// The model with measured rates; nothing when there is no memory for it, or a copy fails.
std::optional<scheduler::DeviceModel> WithMeasuredLink(JobMemory* memory,
                                                       scheduler::DeviceModel model);

}  // namespace spillway::interposer
