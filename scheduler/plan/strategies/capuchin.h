// Capuchin (Peng et al., ASPLOS 2020): swap what the link can hide, recompute what frees the most
// memory per second.
//
// Candidates cross the highest load. While the load exceeds the budget: the candidate with the
// largest free time (idle time less both copies) is swapped as long as that is not negative; then
// swap and recomputation compete by memory saving per second of overhead (sections 4.3 to 4.5).
// Prefetches are triggered by the access before which the copy must start.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& Capuchin();

}  // namespace spillway::scheduler
