// What any plan must cost: the least memory at all, and the least time at a budget.
//
// Called by strategies (to know when to stop), the command line and the bench, on any thread. Pure;
// O(intervals) for each of a few dozen operations.
//
// Memory: while an operation runs, what it touches, what may not move and its smallest workspace
// are on the device.
//
// Time: at an operation where more lives than fits, the excess has left before and comes back
// after, by the link or by running its writer again (plan/least_recompute.h). What the link moves
// by then without waiting is bounded by when buffers become idle and are needed again; the rest
// stretches the iteration. The bound is the best trade between waiting and recomputing, buffers
// split at will, at the worst operation, or the sum of those at the worst operations of parts of
// the iteration that do not overlap. Rates are those of one direction alone, durations those of the
// fastest workspaces: both only make it lower.
//
// At one operation it binds a live job's executor too, not only plans as the model runs them: never
// is more than the budget on the device, so at that operation the excess, in footprints, is away.
// Its content was copied out since it was last written, or can be made again, and is copied back
// before it is touched: each byte crosses the link at its rate at most. A departure that is called
// off frees nothing. This rests on a profile whose sizes are contents: with granules for sizes
// copies are too dear and it is no bound.
#pragma once

#include <cstdint>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct LowerBound {
  int64_t memory_bytes = 0;  // no budget below this can hold the iteration
  OperationId memory_at;
  bool possible = true;      // the budget is not below memory_bytes
  int64_t iteration_ns = 0;  // meaningless where not possible
  OperationId time_at;       // the operation whose excess decides; index -1: none does alone
};

// Looks at single operations: quick.
LowerBound FindLowerBound(const Problem& problem);

// The better of that and the bound by prices (plan/price_bound.h), which looks at the whole
// iteration: some tenths of a second.
LowerBound FindTightBound(const Problem& problem);

// How far a time lies above the bound, in 1/100 of a per cent.
int64_t DistancePermyriad(int64_t iteration_ns, const LowerBound& bound);

}  // namespace spillway::scheduler
