// Measures the link between host and device with a few copies: each way alone, then both at once.
//
// Called once per job, before the first plan, if the device's name is unknown (device_model.h). It
// waits some milliseconds for its copies, and meanwhile uses device memory of the budget.
#pragma once

#include <optional>

#include "interposer/execute/job_memory.h"
#include "scheduler/plan/problem.h"

namespace spillway::interposer {

std::optional<scheduler::DeviceModel> WithMeasuredLink(JobMemory* memory,
                                                       scheduler::DeviceModel model);

}  // namespace spillway::interposer
