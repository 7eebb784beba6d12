// vDNN (Rhu et al., MICRO 2016): inputs of forward layers move out and return in backward.
//
// `all` moves the inputs of every forward operation, `conv` only those of convolutions. `dynamic`
// takes the first that fits, from the fastest arrangement (nothing moves, fastest algorithms) to
// the smallest (everything moves, smallest workspaces; section III-C). A prefetch starts with the
// backward operation whose search window first contains the buffer; the window ends at the next
// convolution (figure 10).
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& VdnnAll();
const ChoosingStrategy& VdnnConv();
const ChoosingStrategy& VdnnDynamic();

}  // namespace spillway::scheduler
