// The same iteration with its minibatch in pieces: what a plan could do with parts of buffers.
//
// The lower bound divides buffers freely, but plans move whole ones. This shows whether that
// explains a plan's distance from the bound. Pure.
#pragma once

#include <cstdint>

#include "scheduler/trace/profile.h"

namespace spillway::papers {

// Cuts everything that belongs to samples (activations, data kept beside them, their gradients)
// into equal pieces, and each operation on them with its time and workspaces. Parameters stay
// whole, and later pieces add to their gradients.
scheduler::IterationProfile InPieces(const scheduler::IterationProfile& whole, int32_t pieces);

}  // namespace spillway::papers
