// The least peak that swaps alone can reach without any waiting: a lower bound by Lagrangian
// relaxation.
//
// Memory during each operation has a weight (their sum is one), and each nanosecond of each engine
// during each operation has a price. At these prices, every idle interval independently takes the
// absence that saves most. Its copies may be cut into pieces where the link is cheapest. But, as in
// any real swap, the buffer is evicted only between the end of its offload and the start of its
// prefetch.
//
// Weights and prices then move against overuse. Their sum is always a valid bound, and the best one
// is kept. It is at least as high as that of a linear program in which parts of buffers may be
// evicted.
#pragma once

#include <vector>

#include "scheduler/plan/timetable.h"

namespace spillway::papers {

double LeastPeakBytes(const scheduler::Timetable& timetable,
                      const std::vector<scheduler::IdleInterval>& intervals, int iterations);

}  // namespace spillway::papers
