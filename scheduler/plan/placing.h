// Gives a plan's buffers addresses: one offset per residence.
//
// Pure. A residence begins with the step that creates the buffer or starts its copy back. It ends
// with the step that ends the buffer or during which its copy out ends. One across the iteration's
// end keeps its offset. Workspaces are not placed. Requires a plan that runs, and its own timeline.
// Leaves placements and arena_bytes empty for plans that are too large.
#pragma once

#include "scheduler/plan/cost_model.h"

namespace spillway::scheduler {

// The arena exceeds the peak only as far as a search of `node_limit` nodes cannot avoid.
void PlaceBuffers(const Problem& problem, const Timeline& timeline, int64_t node_limit, Plan& plan);

}  // namespace spillway::scheduler
