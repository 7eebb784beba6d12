// SuperNeurons (Wang et al., PPoPP 2018): liveness, a unified tensor pool for convolution outputs,
// a tensor cache, cost-aware recomputation, and convolution workspaces from the rest.
//
// Checkpoints (convolutions, fully connected layers, joins, attention) are kept or moved; the
// layers between two of them are recomputed. A segment whose sum stays below the largest layer is
// recomputed once for all users (speed-centric), any other anew for each user (memory-centric,
// section 3.4). The tensor cache moves only what does not fit, least recently used first; without
// it every convolution output moves (3.3).
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& SuperNeuronsLiveness();   // nothing moves; workspaces from free memory
const ChoosingStrategy& SuperNeuronsOffload();    // convolution outputs move
const ChoosingStrategy& SuperNeuronsCache();      // moves only what does not fit
const ChoosingStrategy& SuperNeuronsSpeed();      // speed-centric recomputation, nothing moves
const ChoosingStrategy& SuperNeuronsMemory();     // memory-centric recomputation, nothing moves
const ChoosingStrategy& SuperNeuronsCostAware();  // the mixture of both, nothing moves
const ChoosingStrategy& SuperNeurons();           // everything

}  // namespace spillway::scheduler
