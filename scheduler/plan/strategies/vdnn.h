// vDNN (Rhu et al., MICRO 2016): what forward layers read leaves for the host and comes back layer
// by layer in backward.
//
// `all` moves the inputs of every forward operation, `conv` those of convolutions only, `dynamic`
// tries from the fastest arrangement (nothing moves, fastest algorithms) to the smallest
// (everything moves, smallest workspaces) and takes the first that fits (section III-C). A prefetch
// starts with the backward operation before which the search window of figure 10, which ends at the
// next convolution, first sees the buffer.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& VdnnAll();
const ChoosingStrategy& VdnnConv();
const ChoosingStrategy& VdnnDynamic();

}  // namespace spillway::scheduler
