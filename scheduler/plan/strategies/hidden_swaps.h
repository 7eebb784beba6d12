// The smallest peak that swaps alone reach without anything waiting: greedy relief, then exchanges
// and annealing.
//
// The aim of AutoSwap's table II, pursued with SwapSchedule as the judge. Works towards one target
// after another, each between what was reached and what is hoped for. Pure, seeded by the problem,
// bounded by evaluations.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

struct HiddenSwaps {
  std::vector<bool> swapped;  // by interval
  int64_t peak_bytes = 0;
};

// `hoped_for_bytes`: no lower peak is looked for.
HiddenSwaps LowestHiddenPeak(const Workbench& bench, int64_t hoped_for_bytes, int64_t evaluations);

}  // namespace spillway::scheduler
