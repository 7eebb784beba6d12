// Operations that touch more memory than the budget, such as an optimiser's step over all weights.
//
// A live job serves them: what does not fit is used where it lies on the host (execute/restores.h).
// So the plan covers the rest of the iteration. It treats such an operation as one that touches
// only what fits. The measured duration holds the time on the link already. That other copies are
// slower meanwhile is not predicted. Pure.
#pragma once

#include <optional>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

// The profile without the touches that do not fit. Buffers that other operations touch, too, go
// first, and of these the largest. Nullopt if every operation fits, or if one cannot be made to
// fit.
std::optional<IterationProfile> WithinBudget(const Problem& problem);

}  // namespace spillway::scheduler
