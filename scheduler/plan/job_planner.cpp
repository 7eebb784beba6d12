#include "scheduler/plan/job_planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/held_inputs.h"
#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/oversized_operations.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/prefetch_times.h"
#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {
namespace {

// Small iterations gain little beyond these evaluations. Some thousand operations (ResNet-152) need
// the strategy's own bound because of recomputation.
constexpr std::size_t kFewOperations = 400, kManyOperations = 5'000;
constexpr std::int64_t kEvaluationsForFew = 4'000, kEvaluations = 2'000;

std::int64_t EvaluationsFor(std::size_t operations) {
  if (operations >= kManyOperations) return 0;
  return operations < kFewOperations ? kEvaluationsForFew : kEvaluations;
}

Problem ProblemOf(const PlanRequest& request, const IterationProfile& profile) {
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
          .status = base::Error{std::move(why_not)}};
}

std::string WhyNone(const Problem& problem, std::string why_not) {
  const LowerBound bound = FindLowerBound(problem);
  if (bound.possible) return why_not;
  return "one operation touches " + std::to_string(bound.memory_bytes) + " bytes, of a budget of " +
         std::to_string(problem.budget_bytes);
}

bool IsNearItsBound(const PlanAnswer& answer) {
  return answer.live &&
         answer.live->predicted_ns() <= answer.lower_bound_ns + answer.lower_bound_ns / 100;
}

constexpr int64_t kUnknownNs = 0;

// `bound_ns`: of plans that hold nothing, where it is known. A plan that holds inputs may beat the
// bound for plans that hold none.
int64_t LowerBoundOf(const PlanRequest& request, const IterationProfile& profile,
                     const std::optional<IterationProfile>& held, int64_t bound_ns) {
  if (bound_ns == kUnknownNs) bound_ns = FindLowerBound(ProblemOf(request, profile)).iteration_ns;
  return held ? std::min(bound_ns, FindLowerBound(ProblemOf(request, *held)).iteration_ns)
              : bound_ns;
}

IterationProfile PlannableProfile(const PlanRequest& request) {
  const IterationProfile& profile = request.pattern->profile;
  std::optional<IterationProfile> less = WithinBudget(ProblemOf(request, profile));
  return less ? std::move(*less) : profile;
}

PlanAnswer AcceptFor(const IterationProfile& profile, const PlanRequest& request, Plan plan,
                     int64_t bound_ns = kUnknownNs) {
  std::optional<IterationProfile> held;
  if (ReliesOnHeldInputs(profile, plan)) held = WithInputsHeld(ProblemOf(request, profile));
  const Problem problem = ProblemOf(request, held ? *held : profile);
  if (const auto offence = ValidatePlan(problem, plan)) return Refused(offence->what, true);
  Timeline timeline;
  const Prediction prediction = CostModel(problem).Predict(plan, &timeline);
  if (!prediction.runs()) return Refused(WhyNot(prediction.verdict), false);
  if (const auto offence = ValidateTimeline(problem, plan, timeline))
    return Refused(offence->what, true);
  const Plan timed = WithTimedPrefetches(*problem.profile, plan, timeline);
  auto live = LivePlan::Make(request.pattern, timed, prediction.iteration_ns, request.budget_bytes);
  if (!live) return Refused("the plan is not one that a job can follow", false);
  return {.live = std::make_shared<const LivePlan>(std::move(*live)),
          .plan = std::move(plan),
          .lower_bound_ns = LowerBoundOf(request, profile, held, bound_ns),
          .is_invalid = false,
          .status = base::Ok()};
}

PlanAnswer PlanFrom(const PlanRequest& request, const IterationProfile& plannable,
                    const IterationProfile& profile, int64_t bound_ns) {
  const Problem problem = ProblemOf(request, profile);
  StrategyOutcome outcome = request.strategy->MakeRunnablePlan(problem);
  if (!outcome.plan) return Refused(WhyNone(problem, outcome.plan.text()), false);
  return AcceptFor(plannable, request, std::move(*outcome.plan), bound_ns);
}

bool IsRepaired(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(),
                     [](const Action& action) { return action.reason == Reason::kRepair; });
}

const PlanAnswer& Faster(const PlanAnswer& plain, const PlanAnswer& holding) {
  const bool is_faster =
      holding.live && (!plain.live || holding.live->predicted_ns() < plain.live->predicted_ns());
  return is_faster ? holding : plain;
}

}  // namespace

PlanAnswer Accept(const PlanRequest& request, Plan plan) {
  return AcceptFor(PlannableProfile(request), request, std::move(plan));
}

// Also tries a plan with inputs held. Accept() checks it without them if it does not rely on them.
// For a large iteration one plan must do: the one with all such inputs held, if it needs no repair.
PlanAnswer PlanFor(const PlanRequest& request) {
  const IterationProfile profile = PlannableProfile(request);
  const bool is_large = IsLarge(ProblemOf(request, profile));
  PlanAnswer plain;
  if (!is_large) plain = PlanFrom(request, profile, profile, kUnknownNs);
  if (plain.is_invalid || IsNearItsBound(plain)) return plain;
  const std::optional<IterationProfile> held = WithInputsHeld(ProblemOf(request, profile));
  PlanAnswer holding;
  if (held) holding = PlanFrom(request, profile, *held, plain.lower_bound_ns);
  const bool is_enough = holding.live && !IsRepaired(holding.plan);
  if (is_large && !is_enough) plain = PlanFrom(request, profile, profile, kUnknownNs);
  return Faster(plain, holding);
}

}  // namespace spillway::scheduler
