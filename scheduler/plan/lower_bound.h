// What any plan must cost: the least memory, and the least time at a budget. Pure; any thread.
//
// Memory: while an operation runs, its buffers, the immovable memory and its smallest workspace are
// resident.
//
// Time: at an operation where live memory exceeds the budget, the excess must leave before and
// return afterwards, over the link or by recomputation (plan/least_recompute.h). The times at
// which buffers become idle and are needed again bound what the link moves without waiting. The
// rest stretches the iteration. The bound is the best trade between waiting and recomputing, with
// buffers split at will, at the worst operation or summed over disjoint parts of the iteration.
// Rates are one-directional and workspaces the fastest, which only lowers it.
//
// The bound at one operation also binds a live job's executor. The device never holds more than the
// budget, so the excess, in footprints, is evicted there. Its content was copied out after its last
// write, or is recomputable, and is restored before its next touch. A cancelled eviction frees
// nothing. This requires a profile whose sizes are contents: granules as sizes make copies too
// expensive.
#pragma once

#include <cstdint>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct LowerBound {
  int64_t memory_bytes = 0;  // the smallest budget that can hold the iteration
  OperationId memory_at;
  bool possible = true;      // the budget is at least memory_bytes
  int64_t iteration_ns = 0;  // meaningless unless `possible`
  OperationId time_at;       // index -1: no single one
};

// By single operations; quick.
LowerBound FindLowerBound(const Problem& problem);

// Uses prices too (plan/price_bound.h). Takes some tenths of a second.
LowerBound FindTightBound(const Problem& problem);

// The distance above the bound, in 1/10,000.
int64_t DistancePermyriad(int64_t iteration_ns, const LowerBound& bound);

}  // namespace spillway::scheduler
