// The least peak that swaps alone can reach without any waiting: a lower bound by Lagrangian
// relaxation.
//
// Memory during each operation has a weight (they sum to one), each nanosecond of each engine
// during each operation a price. Given these, every idle interval for itself takes the absence that
// saves most: its copies may be cut into pieces and laid where the link is cheapest, but the buffer
// is away only between the end of the one and the start of the other, as for any real swap. Weights
// and prices are then moved against what was overused. Whatever they are, the sum is a valid bound;
// the best is kept. It is at least as high as that of a linear program that lets parts of buffers
// be away.
#pragma once

#include <vector>

#include "scheduler/plan/timetable.h"

namespace spillway::papers {

double LeastPeakBytes(const scheduler::Timetable& timetable,
                      const std::vector<scheduler::IdleInterval>& intervals, int iterations);

}  // namespace spillway::papers
