// Small random changes on the cost model, of which bad ones are accepted too, less and less often:
// simulated annealing.
//
// Used by Spillway's own strategy after improvement, which changes one thing at a time and never
// for the worse. What only pays together is found here: a prefetch that starts a little later so
// that a faster algorithm has room, two buffers that change places. Deterministic for equal seeds;
// the result is never worse than the start.
#pragma once

#include "base/prng.h"
#include "scheduler/plan/strategies/improvement.h"

namespace spillway::scheduler {

enum class Refits { kNo, kYes };

// Asks the model `evaluations` times at most. kYes: now and then all algorithms are chosen anew for
// the room that is left, and all prefetches timed anew; worth its time where iterations are small.
Priced Anneal(Workbench& bench, Priced start, int64_t evaluations, Refits refits,
              base::Prng& random);

}  // namespace spillway::scheduler
