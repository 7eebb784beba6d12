// Plans a learned iteration for a job: a strategy makes the plan, the cost model prices it, and the
// validator checks it. Pure. Called without a lock: it may take a second.
//
// It returns no plan that the validator refuses or that exceeds the budget. So no plan reruns an
// operation unless the pattern calls it replayable.
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
  std::int64_t budget_bytes = 0;  // for movable memory
  const Strategy* strategy = nullptr;
};

struct PlanAnswer {
  std::shared_ptr<const LivePlan> live;  // null: see `status`
  Plan plan;
  // The quick bound, as a job waits for its plan.
  std::int64_t lower_bound_ns = 0;
  bool is_invalid = false;  // the strategy has a defect
  base::Status status;
};

PlanAnswer PlanFor(const PlanRequest& request);

// The same checks for a plan made elsewhere.
PlanAnswer Accept(const PlanRequest& request, Plan plan);

}  // namespace spillway::scheduler
