// Simulated annealing on the cost model, after improvement, which only makes single changes.
//
// It finds changes that pay only together, such as two buffers that trade places. Deterministic for
// equal seeds; never worse than the start.
#pragma once

#include "base/prng.h"
#include "scheduler/plan/strategies/improvement.h"

namespace spillway::scheduler {

enum class Refits { kNo, kYes };

// At most `evaluations` calls of the model. kYes: sometimes rechooses all algorithms and retimes
// all prefetches; worth it for small iterations.
Priced Anneal(Workbench& bench, Priced start, int64_t evaluations, Refits refits,
              base::Prng& random);

}  // namespace spillway::scheduler
