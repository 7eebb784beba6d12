// The smallest peak that swaps reach without any wait: greedy relief, then exchanges and annealing.
//
// The goal of AutoSwap's table II, evaluated by SwapSchedule. Pure, seeded by the problem, bounded
// by evaluations.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::papers {

struct HiddenSwaps {
  std::vector<bool> swapped;  // by interval
  int64_t peak_bytes = 0;
};

// Stops at a peak of `hoped_for_bytes`.
HiddenSwaps LowestHiddenPeak(const scheduler::Workbench& bench, int64_t hoped_for_bytes,
                             int64_t evaluations);

}  // namespace spillway::papers
