// A strategy's plan, priced and checked: what a row of a table needs.
//
// Pure; one thread.
#pragma once

#include <optional>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/strategy.h"

namespace spillway::papers {

// The iteration's time under the strategy's plan; nothing when there is no plan, it does not run,
// or the validator refuses it.
std::optional<int64_t> PlannedTime(const scheduler::Strategy& strategy,
                                   const scheduler::Problem& problem);

// Spillway's own.
std::optional<int64_t> OwnPlannedTime(const scheduler::Problem& problem);

// Is there a plan at all? The simplest is tried first: everything that rests leaves, and is fetched
// when it is needed.
bool AnyPlanRuns(const scheduler::Problem& problem);

}  // namespace spillway::papers
