// Finds the lowest layout within a node limit: placement heuristics first, then exact search. Pure;
// any thread. The height exceeds the optimum by at most its distance from `peak_load_bytes`.
#pragma once

#include "scheduler/plan/address/layout.h"

namespace spillway::scheduler::address {

struct AddressPlan {
  Layout layout;
  int64_t peak_load_bytes = 0;
  int64_t nodes = 0;  // of the exact search
};

// Ignores `problem.capacity_bytes` and goes as low as it can; the caller compares.
AddressPlan PlanAddresses(const Problem& problem, int64_t node_limit);

}  // namespace spillway::scheduler::address
