#include "tests/bench/planner/judge.h"

#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::papers {

using namespace scheduler;

std::optional<int64_t> PlannedTime(const Strategy& strategy, const Problem& problem) {
  const StrategyOutcome outcome = strategy.plan(problem);
  if (!outcome.plan || validate_plan(problem, *outcome.plan)) return std::nullopt;
  Timeline timeline;
  const Prediction prediction = CostModel(problem).predict(*outcome.plan, &timeline);
  if (!prediction.runs() || validate_timeline(problem, *outcome.plan, timeline)) return std::nullopt;
  return prediction.iteration_ns;
}

std::optional<int64_t> OwnPlannedTime(const Problem& problem) {
  if (!lower_bound(problem).possible) return std::nullopt;
  return PlannedTime(*FindStrategy(kDefaultStrategy), problem);
}

bool OwnPlanRuns(const Problem& problem) { return OwnPlannedTime(problem).has_value(); }

}  // namespace spillway::papers
