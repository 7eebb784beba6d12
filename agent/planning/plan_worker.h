// The process that makes one plan: reads the request from kRequestFile, and writes the plan, or why
// there is none, to kAnswerFile. `spillwayd --plan-worker`, started by the plan service; one
// thread.
#pragma once

#include "agent/planning/worker_limits.h"

namespace spillway::agent {

// Followed by the limits: bytes of address space, seconds of processor time.
inline constexpr char kPlanWorkerOption[] = "--plan-worker";

int RunPlanWorker(const WorkerLimits& limits);

}  // namespace spillway::agent
