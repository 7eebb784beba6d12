#include "scheduler/plan/job_planner.h"

#include <utility>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/prefetch_times.h"

namespace spillway::scheduler {
namespace {

// A strategy bounds its search by what large iterations take. Of a small one more than this is not worth the wait; one of some
// thousand operations (ResNet-152) needs more than the strategy's own for what runs again.
constexpr std::size_t kFewOperations = 400, kManyOperations = 5'000;
constexpr std::int64_t kEvaluationsForFew = 4'000, kEvaluations = 2'000;

std::int64_t EvaluationsFor(std::size_t operations) {
  if (operations >= kManyOperations) return 0;  // the strategy's own
  return operations < kFewOperations ? kEvaluationsForFew : kEvaluations;
}

Problem ProblemOf(const PlanRequest& request) {
  const IterationProfile& profile = request.pattern->profile;
  return {.profile = &profile,
          .device = request.device,
          .budget_bytes = request.budget_bytes,
          .is_live = true,
          .node_limit = EvaluationsFor(profile.operations.size())};
}

const char* WhyNot(Verdict verdict) {
  switch (verdict) {
    case Verdict::kDeadlock:
      return "the plan would wait for what never comes";
    case Verdict::kOverBudget:
      return "the plan exceeds the budget";
    case Verdict::kMalformed:
      return "the plan names what is not there";
    case Verdict::kRuns:
      break;
  }
  return "";
}

PlanAnswer Refused(std::string why_not, bool is_invalid) {
  return {.live = nullptr,
          .plan = {},
          .lower_bound_ns = 0,
          .is_invalid = is_invalid,
          .why_not = std::move(why_not)};
}

std::string WhyNone(const Problem& problem, std::string why_not) {
  const LowerBound bound = FindLowerBound(problem);
  if (bound.possible) return why_not;
  return "one operation touches " + std::to_string(bound.memory_bytes) + " bytes, of a budget of " +
         std::to_string(problem.budget_bytes);
}

}  // namespace

PlanAnswer Accept(const PlanRequest& request, Plan plan) {
  const Problem problem = ProblemOf(request);
  if (const auto offence = ValidatePlan(problem, plan)) return Refused(offence->what, true);
  Timeline timeline;
  const Prediction prediction = CostModel(problem).Predict(plan, &timeline);
  if (!prediction.runs()) return Refused(WhyNot(prediction.verdict), false);
  if (const auto offence = ValidateTimeline(problem, plan, timeline)) return Refused(offence->what, true);
  const Plan timed = WithPrefetchesWhenTheyStart(*problem.profile, plan, timeline);
  auto live = LivePlan::Make(request.pattern, timed, prediction.iteration_ns, request.budget_bytes);
  if (!live) return Refused("the plan is not one that a job can follow", false);
  return {.live = std::make_shared<const LivePlan>(std::move(*live)),
          .plan = std::move(plan),
          .lower_bound_ns = FindLowerBound(problem).iteration_ns,
          .is_invalid = false,
          .why_not = {}};
}

PlanAnswer PlanFor(const PlanRequest& request) {
  StrategyOutcome outcome = request.strategy->MakeRunnablePlan(ProblemOf(request));
  if (!outcome.plan) return Refused(WhyNone(ProblemOf(request), std::move(outcome.why_not)), false);
  return Accept(request, std::move(*outcome.plan));
}

}  // namespace spillway::scheduler
