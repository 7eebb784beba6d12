// Takes rights from this process until it can do nothing but compute: read and write the files that
// it has, ask for memory up to its limit, and end.
//
// Called once, on the only thread of a planning process, before it reads the first byte that a
// client made.
//
// Invariants
//  1. After true, no file, socket, process or signal can be reached that this process does not
//  have: the kernel ends it for the attempt.
//  2. It ends when it has used its processor time, and when the agent's thread that started it
//  ends.
#pragma once

#include "agent/planning/worker_limits.h"

namespace spillway::agent {

bool Confine(const WorkerLimits& limits);

}  // namespace spillway::agent
