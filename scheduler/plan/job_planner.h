// From a learned iteration to a plan that a job may follow: made by a strategy, priced by the cost
// model, checked by the validator.
//
// Called by the pipeline, without a lock: it may take a second. Pure.
//
// Invariants
//  1. A plan that the validator refuses or that does not run within the budget is not given. So
//  none runs an operation again that
//     the request's pattern does not call replayable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/plan/live_plan.h"
#include "scheduler/plan/problem.h"
#include "scheduler/plan/strategy.h"

namespace spillway::scheduler {

struct PlanRequest {
  std::shared_ptr<const IterationPattern> pattern;
  DeviceModel device;
  std::int64_t budget_bytes = 0;  // for what may move
  const Strategy* strategy = nullptr;
};

struct PlanAnswer {
  std::shared_ptr<const LivePlan> live;  // null: `status` says why
  Plan plan;
  std::int64_t lower_bound_ns =
      0;  // what any plan's iteration takes at least, by the quick bound: a job waits for its plan
  bool is_invalid = false;  // the validator refused it: a strategy is at fault
  base::Status status;
};

PlanAnswer PlanFor(const PlanRequest& request);

// The same checks for a plan that was made elsewhere.
PlanAnswer Accept(const PlanRequest& request, Plan plan);

}  // namespace spillway::scheduler
