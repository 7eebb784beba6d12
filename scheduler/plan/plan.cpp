#include "scheduler/plan/plan.h"

namespace spillway::scheduler {

Plan PlanWithoutActions(const IterationProfile& profile) {
  Plan plan;
  plan.steps.reserve(profile.operations.size());
  for (size_t i = 0; i < profile.operations.size(); ++i)
    plan.steps.push_back({OperationId{static_cast<int32_t>(i)}, false, 0});
  return plan;
}

}  // namespace spillway::scheduler
