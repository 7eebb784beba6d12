// The lowest layout that can be found within a node limit: placement heuristics first, exact search
// for what they leave.
//
// Called by whoever plans addresses (strategies, the planner, `spillway plan`), on any thread; pure
// and deterministic. The layout's distance from `peak_load_bytes` is its distance from the best
// possible at most.
#pragma once

#include "scheduler/plan/address/layout.h"

namespace spillway::scheduler::address {

struct AddressPlan {
  Layout layout;
  int64_t peak_load_bytes = 0;
  int64_t nodes = 0;  // of exact search
};

// `problem.capacity_bytes` is not a limit here: the plan is as low as can be found, the caller
// compares.
AddressPlan PlanAddresses(const Problem& problem, int64_t node_limit);

}  // namespace spillway::scheduler::address
