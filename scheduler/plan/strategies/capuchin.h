// Capuchin (Peng et al., ASPLOS 2020): swaps what the link can hide, and recomputes what frees the
// most memory per second.
//
// Candidates cross the highest load. Free time is idle time less both copies. While the load
// exceeds the budget, it swaps the candidate with the largest free time that is not negative. Then
// swaps and recomputations compete by bytes saved per second of overhead (sections 4.3 to 4.5). The
// access before which a copy must start triggers its prefetch.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& Capuchin();

}  // namespace spillway::scheduler
