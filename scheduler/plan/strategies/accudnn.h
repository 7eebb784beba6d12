// AccUDNN (Guo et al., ICCD 2019): swaps everything that spans the turn from forward to backward,
// then pins what the budget allows.
//
// t_ready of a feature map is the end of its prefetch if all prefetches run back to back from the
// start of backward. While some t_ready is too late for its layer, the algorithm pins an earlier
// map: the one whose absence helps least and costs the most link time. The remaining budget pins
// more. (The paper's algorithm 2 by its description; its batch advice is plan/advice.h.)
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& AccUdnn();

}  // namespace spillway::scheduler
