// Local search on the cost model: removes, adds and exchanges single choices while that pays. Every
// accepted change shortens the iteration, or keeps its length with less traffic.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

struct Priced {
  Choices choices;
  Prediction prediction;
};

bool RunsBetter(const Prediction& one, const Prediction& other);

// `start` must run and carry its own prediction. At most `evaluations` calls of the model.
Priced Improve(Workbench& bench, Priced start, int64_t evaluations);

}  // namespace spillway::scheduler
