// SuperNeurons (Wang et al., PPoPP 2018): liveness, a unified tensor pool, a tensor cache,
// cost-aware recomputation, and convolution workspaces from the rest.
//
// Checkpoints (convolutions, fully connected layers, joins, attention) are kept or moved; the
// layers between two of them are recomputed. A segment whose sum stays below the largest layer is
// recomputed once for all users (speed-centric), any other anew for each user (memory-centric,
// section 3.4). The tensor cache moves only what does not fit, least recently used first; without
// it every convolution output moves (3.3).
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& SuperNeuronsLiveness();  // workspaces from free memory
const ChoosingStrategy& SuperNeuronsOffload();
const ChoosingStrategy& SuperNeuronsCache();
const ChoosingStrategy& SuperNeuronsSpeed();      // nothing moves
const ChoosingStrategy& SuperNeuronsMemory();     // nothing moves
const ChoosingStrategy& SuperNeuronsCostAware();  // both, nothing moves
const ChoosingStrategy& SuperNeurons();

}  // namespace spillway::scheduler
