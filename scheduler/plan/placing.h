// Gives a plan's buffers addresses: one offset for each time that a buffer is on the device.
//
// Called by whoever wants them (an option of `spillway plan`); plans run without, addresses are
// then left to the pool. Pure and deterministic. Residences follow the predicted timeline: from the
// step that brings the buffer to life or during which its copy back starts, to the step that ends
// it or during which its copy out ends. What stays over the iteration's end keeps its offset.
// Workspaces are not placed. The
// plan must run, and the timeline be its own; placements and arena_bytes are set anew, to nothing
// for plans that are too large.
#pragma once

#include "scheduler/plan/cost_model.h"

namespace spillway::scheduler {

// The arena can be higher than the peak of what is resident, by what no layout within `node_limit`
// nodes of search avoids.
void PlaceBuffers(const Problem& problem, const Timeline& timeline, int64_t node_limit, Plan& plan);

}  // namespace spillway::scheduler
