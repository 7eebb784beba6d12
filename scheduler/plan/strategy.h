// The one interface of all strategies: a problem in, a plan or a reason out.
//
// Strategies are stateless, pure and deterministic: called on any thread, several at once. Each
// paper's strategy is one file in plan/strategies/, made by a function there and listed in
// strategies/registry.h. A strategy never judges its own plan: the caller prices it with the cost
// model and checks it with the validator.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct StrategyOutcome {
  // May exceed the budget where the paper's rule knows no budget: the model tells.
  base::Result<Plan> plan = base::Error{"no plan was made"};
  int64_t evaluations = 0;  // how often the cost model was asked
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const = 0;     // as `--strategy` names it: "vdnn-conv"
  virtual std::string_view summary() const = 0;  // one line, with its source
  virtual StrategyOutcome MakePlan(const Problem& problem) const = 0;
  // The same plan where it runs within the budget; otherwise one in which what the rule leaves
  // undone is repaired, marked Reason::kRepair. No plan only where not even swapping everything
  // runs.
  virtual StrategyOutcome MakeRunnablePlan(const Problem& problem) const = 0;
};

}  // namespace spillway::scheduler
