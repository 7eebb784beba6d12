// Explains a plan: one sentence per action and recomputed operation, with the cost model's figures.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct Explanation {
  int32_t step = 0;
  std::string text;
};

// In step order. Requires a valid plan.
std::vector<Explanation> ExplainPlan(const Problem& problem, const Plan& plan,
                                     const Timeline& timeline);

// A few words, like "kept from ...".
const char* ToString(Reason reason);

}  // namespace spillway::scheduler
