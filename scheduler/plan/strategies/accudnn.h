// AccUDNN (Guo et al., ICCD 2019): everything that spans the turn from forward to backward is
// swapped, then as much of it as the budget allows is pinned, first what makes backward wait.
//
// Computation times, memory and link are modelled; t_ready of a feature map is when its prefetch
// has ended if all prefetches follow each other from the beginning of backward. Where t_ready is
// later than the layer that needs it, the algorithm pins the map whose absence helps least and
// costs most link time before that layer; what budget is left then pins more. (The paper's
// algorithm 2 by its description.) The minibatch and learning-rate advice of the same paper is
// plan/advice.h.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& AccUdnn();

}  // namespace spillway::scheduler
