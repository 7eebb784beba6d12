#include "tests/bench/planner/judge.h"

#include "scheduler/plan/decisions.h"
#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::papers {

using namespace scheduler;

namespace {

std::optional<int64_t> RunsRightly(const Problem& problem, const Plan& plan) {
  if (ValidatePlan(problem, plan)) return std::nullopt;
  Timeline timeline;
  const Prediction prediction = CostModel(problem).Predict(plan, &timeline);
  if (!prediction.runs() || ValidateTimeline(problem, plan, timeline)) return std::nullopt;
  return prediction.iteration_ns;
}

}  // namespace

std::optional<int64_t> PlannedTime(const Strategy& strategy, const Problem& problem) {
  const StrategyOutcome outcome = strategy.MakePlan(problem);
  return outcome.plan ? RunsRightly(problem, *outcome.plan) : std::nullopt;
}

std::optional<int64_t> OwnPlannedTime(const Problem& problem) {
  if (!FindLowerBound(problem).possible) return std::nullopt;
  return PlannedTime(*FindStrategy(kDefaultStrategy), problem);
}

bool AnyPlanRuns(const Problem& problem) {
  if (!FindLowerBound(problem).possible) return false;
  const std::vector<IdleInterval> intervals =
      IdleIntervals(problem.iteration(), problem.min_movable_bytes);
  std::vector<Decision> decisions;
  for (size_t i = 0; i < intervals.size(); ++i)
    decisions.push_back(
        {static_cast<int32_t>(i), Treatment::kSwap, intervals[i].to, true, Reason::kStrategyRule});
  const RecomputeChains chains(problem);
  const Plan plan = LowerDecisions(problem, chains, intervals, decisions, {}).plan;
  if (RunsRightly(problem, plan)) return true;
  return OwnPlannedTime(problem).has_value();
}

}  // namespace spillway::papers
