#include "interposer/planning/plan_making.h"

#include <utility>

#include "base/clock.h"

namespace spillway::interposer {
namespace {

// Returns nothing if no source or no acceptable plan exists.
PlanAnswer PlanFromSource(const PlanningRequest& request) {
  if (!request.elsewhere) return {};
  scheduler::PlanOrder order = {.device = request.asked.device,
                                .job = {.pattern = *request.asked.pattern,
                                        .plan = {},
                                        .budget_bytes = request.asked.budget_bytes,
                                        .job_budget_bytes = request.job_budget_bytes}};
  order.job.plan.strategy = request.asked.strategy->name();
  std::optional<scheduler::Plan> plan =
      request.elsewhere->Make(request.device_number, request.program, order);
  return plan ? scheduler::Accept(request.asked, std::move(*plan)) : PlanAnswer{};
}

}  // namespace

PlanningAnswer MakeOrTakePlan(const PlanningRequest& request) {
  if (request.known) {
    PlanAnswer answer = scheduler::Accept(request.asked, *request.known);
    if (answer.live)
      return {.plan = std::move(answer), .is_stored = request.is_stored, .reason = request.reason};
  }
  const std::uint64_t began_ns = base::MonotonicNs();
  PlanAnswer answer = PlanFromSource(request);
  const bool is_from_elsewhere = answer.live != nullptr;
  if (!is_from_elsewhere) answer = scheduler::PlanFor(request.asked);
  if (request.rival) {
    // Measurements or proofs have changed since the former plan. Both are priced anew.
    PlanAnswer former = scheduler::Accept(request.asked, *request.rival);
    const bool is_better =
        former.live && (!answer.live || former.live->predicted_ns() <= answer.live->predicted_ns());
    if (is_better) return {.plan = std::move(former), .reason = request.reason};
  }
  return {.plan = std::move(answer),
          .is_new = true,
          .is_stored = request.is_stored,
          .is_from_elsewhere = is_from_elsewhere,
          .planning_ns = base::MonotonicNs() - began_ns,
          .reason = request.reason};
}

std::shared_ptr<const scheduler::LivePlan> RestingPlan(
    const std::shared_ptr<const scheduler::IterationPattern>& pattern, std::int64_t budget_bytes) {
  scheduler::Plan plan = scheduler::PlanWithoutActions(pattern->profile);
  plan.strategy = "none";
  auto live = scheduler::LivePlan::Make(pattern, plan, 0, budget_bytes);
  return live ? std::make_shared<const scheduler::LivePlan>(std::move(*live)) : nullptr;
}

}  // namespace spillway::interposer
