// A strategy's plan, priced and checked, as the rows of tables need it.
//
// Pure; one thread.
#pragma once

#include <optional>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/strategy.h"

namespace spillway::papers {

// Empty when there is no plan, it does not run, or the validator refuses it.
std::optional<int64_t> PlannedTime(const scheduler::Strategy& strategy,
                                   const scheduler::Problem& problem);

std::optional<int64_t> OwnPlannedTime(const scheduler::Problem& problem);

// Tries the simplest first: every idle buffer is evicted, and fetched on demand.
bool AnyPlanRuns(const scheduler::Problem& problem);

}  // namespace spillway::papers
