// The same iteration with its minibatch in pieces: what a plan could do if it need not take buffers
// whole.
//
// For strategy_figures only: where a plan stays above the lower bound, which shares buffers out at
// will, it tells whether that is because buffers are whole. Pure.
#pragma once

#include <cstdint>

#include "scheduler/trace/profile.h"

namespace spillway::papers {

// What belongs to samples (activations, what is kept beside them, their gradients) is cut into
// equal pieces, and so is each operation on it, with its time and workspaces. What belongs to
// parameters stays whole, and pieces after the first add to it.
scheduler::IterationProfile InPieces(const scheduler::IterationProfile& whole, int32_t pieces);

}  // namespace spillway::papers
