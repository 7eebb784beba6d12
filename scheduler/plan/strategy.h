// From a problem to a plan. Strategies are stateless, pure and deterministic; any thread. Each is
// one file in plan/strategies/, listed in strategies/registry.h. Callers price and check the plans.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct StrategyOutcome {
  // May exceed the budget if the paper's rule ignores budgets.
  base::Result<Plan> plan = base::Error{"no plan was made"};
  int64_t evaluations = 0;  // calls of the cost model
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const = 0;     // as for `--strategy`: "vdnn-conv"
  virtual std::string_view summary() const = 0;  // one line with its source
  virtual StrategyOutcome MakePlan(const Problem& problem) const = 0;
  // The same plan if it runs within the budget, else a repaired one (Reason::kRepair). No plan only
  // if even swapping everything fails.
  virtual StrategyOutcome MakeRunnablePlan(const Problem& problem) const = 0;
};

}  // namespace spillway::scheduler
