// DELTA (Tang et al., 2022): a runtime policy that releases tensors early, by swap or
// recomputation.
//
// Once memory in use exceeds three quarters of the budget, it releases tensors until that ends or
// none passes the filters. These take large idle tensors not needed soon, with the best ratio of
// size and remaining idle time to the cost of restoring. The director picks the cheaper of swap and
// recomputation; the prefetcher starts each restore in time.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& Delta();

}  // namespace spillway::scheduler
