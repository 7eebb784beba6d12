// Spillway's own strategy. It builds choices by relief per cost, adds the papers' proposals, keeps
// the best and improves it. So it is never slower than any of them, and finds a plan wherever one
// of them does.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& SpillwayStrategy();

}  // namespace spillway::scheduler
