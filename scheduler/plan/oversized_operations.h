// Operations that touch more memory than the budget, such as an optimiser's step over all weights.
//
// A live job serves them: what does not fit is used where it lies on the host (execute/restores.h).
// To the plan such an operation touches only what fits. Its measured duration holds the time on the
// link already. That other copies are slower meanwhile is not predicted. Pure.
#pragma once

#include <optional>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

// Buffers that other operations touch, too, go first, and of these the largest. Nullopt if every
// operation fits, or if one cannot be made to fit.
std::optional<IterationProfile> WithinBudget(const Problem& problem);

}  // namespace spillway::scheduler
