// Local search on the cost model: gives up, adds and exchanges single choices as long as the model
// says that it pays.
//
// Used by Spillway's own strategy on choices that already run. Every accepted change makes the
// iteration shorter, or as long with less traffic; so the result is never worse than what it
// started from. Bounded by a number of evaluations.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

struct Priced {
  Choices choices;
  Prediction prediction;
};

// Whether the first runs better: it runs at all; it takes less time; it moves less.
bool RunsBetter(const Prediction& one, const Prediction& other);

// `start` must carry its own prediction. At most `evaluations` questions to the model.
Priced Improve(Workbench& bench, Priced start, int64_t evaluations);

}  // namespace spillway::scheduler
