// Why a plan does what it does: one entry per action and per recomputed operation, with the figures
// behind it.
//
// Called by the command line and the agent's page, on any thread. Pure. Figures come from the
// timeline that the cost model made of this plan; nothing is decided here.
#pragma once

#include <string>
#include <vector>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct Explanation {
  int32_t step = 0;
  std::string text;  // one sentence
};

// In the order of the steps. The plan must be valid and the timeline the model's for it.
std::vector<Explanation> ExplainPlan(const Problem& problem, const Plan& plan,
                                     const Timeline& timeline);

// "kept from ..." in a few words.
const char* ToString(Reason reason);

}  // namespace spillway::scheduler
