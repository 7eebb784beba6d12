// Spillway's own strategy: swap, recomputation, workspaces and addresses chosen together, guided by
// the model.
//
// It builds choices by relief per cost for a few targets, takes what the papers' strategies propose
// as well, keeps the best by the model's word and improves it. So it is never slower than any of
// them, and it finds a plan wherever one of them does.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& SpillwayStrategy();

}  // namespace spillway::scheduler
