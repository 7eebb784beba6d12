// DELTA (Tang et al., 2022): a runtime policy that releases tensors early, each by swap or by
// recomputation.
//
// Walks the iteration as the runtime would. As soon as memory in use passes three quarters of the
// budget, tensors are released until it is below that or nothing passes the filters: idle now and
// large enough; not needed again soon; of those, the best ratio of size and remaining idle time to
// the cost of coming back. The director gives each the cheaper of swap and recomputation, and the
// prefetcher starts a swap's return early enough for its copy.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& Delta();

}  // namespace spillway::scheduler
