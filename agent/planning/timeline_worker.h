// The process that makes a plan's timeline (plan_timeline.h) as JSON: reads the plan from
// kRequestFile, writes to kAnswerFile. `spillwayd --plan-timeline`, started by PlanTimelines; one
// thread.
#pragma once

#include "agent/planning/worker_limits.h"

namespace spillway::agent {

// Followed by the limits: bytes of address space, seconds of processor time.
inline constexpr char kTimelineOption[] = "--plan-timeline";

int RunTimelineWorker(const WorkerLimits& limits);

}  // namespace spillway::agent
