// SuperNeurons (Wang et al., PPoPP 2018): liveness, a unified tensor pool for convolutions'
// outputs, a tensor cache and cost-aware recomputation of everything cheap, and convolution
// workspaces from what is left.
//
// Checkpoints (convolutions, fully connected layers, joins, attention) are kept or moved; what lies
// between two of them is recomputed: in one go for all users (speed-centric) where the segment's
// sum stays below the largest single layer, anew for each user (memory-centric) where it does not
// (section 3.4). The tensor cache moves, least recently used first, only what does not fit; without
// it every convolution's output moves (3.3).
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& SuperNeuronsLiveness();  // nothing moves; workspaces from what is left
const ChoosingStrategy& SuperNeuronsOffload();   // convolutions' outputs move
const ChoosingStrategy& SuperNeuronsCache();   // what does not fit moves, least recently used first
const ChoosingStrategy& SuperNeuronsSpeed();   // speed-centric recomputation, nothing moves
const ChoosingStrategy& SuperNeuronsMemory();  // memory-centric recomputation, nothing moves
const ChoosingStrategy& SuperNeuronsCostAware();  // the mixture of both, nothing moves
const ChoosingStrategy& SuperNeurons();           // all of it together

}  // namespace spillway::scheduler
