// What making a buffer's content again costs at least, whatever else a plan does: for lower bounds.
//
// Pure; any thread. The writer runs again, and with it the writers of its inputs that are freed for
// good by the time the interval begins. One run can serve several intervals, so its time is shared
// among all that may need it, by their buffers' sizes: the shares of one run never add up to more
// than the run. What is merely away may be back for other reasons and costs nothing here.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan/problem.h"
#include "scheduler/plan/recompute_chain.h"

namespace spillway::scheduler {

// The operation's time with the fastest of its workspaces that leaves `room_bytes` unexceeded; its
// own time when none does.
int64_t FastestWithin(const Problem& problem, const Operation& operation, int64_t room_bytes);

// By interval; -1: cannot be made again.
std::vector<int64_t> LeastRecomputeNs(const Problem& problem, const RecomputeChains& chains,
                                      const std::vector<IdleInterval>& intervals);

}  // namespace spillway::scheduler
