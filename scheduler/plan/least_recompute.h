// The least cost of recomputing a buffer's content under any plan, for lower bounds. Pure.
//
// It counts the writer, and the writers of inputs freed for good by the interval's start. Intervals
// that one run serves share its time in proportion to their buffers' sizes. Merely evicted inputs
// cost nothing: other steps may restore them.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan/problem.h"
#include "scheduler/plan/recompute_chain.h"

namespace spillway::scheduler {

// The operation's own time if no workspace fits.
int64_t FastestWithin(const Problem& problem, const Operation& operation, int64_t room_bytes);

// By interval; -1: cannot be recomputed.
std::vector<int64_t> LeastRecomputeNs(const Problem& problem, const RecomputeChains& chains,
                                      const std::vector<IdleInterval>& intervals);

}  // namespace spillway::scheduler
