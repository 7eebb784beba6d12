// The process that makes one plan: reads the request from kRequestFile, writes the plan, or why
// there is none, to kAnswerFile.
//
// `spillwayd --plan-worker`, started by the desk; one thread. The request is a stranger's; before
// it is read this process has given up every right (confinement.h).
#pragma once

#include "agent/planning/worker_limits.h"

namespace spillway::agent {

// What `spillwayd` is called with, before the limits: bytes of addresses, seconds of processor
// time.
inline constexpr char kPlanWorkerOption[] = "--plan-worker";

// The process's exit code.
int RunPlanWorker(const WorkerLimits& limits);

}  // namespace spillway::agent
