// Makes choices run: what a rule leaves over the budget, or in each other's way, is put right with
// as little change as is simple.
//
// Used by Strategy::MakeRunnablePlan(), for callers that need a plan that runs rather than the pure
// rule of a paper: the job's planner thread, benches. Pure. In this order, until the model says
// that it runs:
//   1. where memory exceeds the budget, what is needed again furthest in the future is swapped out
//   as well;
//   2. prefetches wait until their buffers are needed: none is in another's way then;
//   3. everything leaves whenever nobody touches it, and operations take their smallest workspaces.
// What it takes away is marked Reason::kRepair.
#pragma once

#include <optional>

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

// Unchanged when they run. Nothing when even the last resort does not run.
std::optional<Choices> Repair(Workbench& bench, Choices choices);

}  // namespace spillway::scheduler
