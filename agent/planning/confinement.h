// Reduces this process's rights to computing. Called once, on the only thread of a planning
// process, before it reads a client's first byte.
//
// Invariants
//  1. After true, the kernel kills the process if it tries to reach any other file, socket, process
//     or signal.
//  2. It ends when its processor time is used up, or when the agent's thread that started it ends.
#pragma once

#include "agent/planning/worker_limits.h"

namespace spillway::agent {

bool Confine(const WorkerLimits& limits);

}  // namespace spillway::agent
