// Relief (relief.h) for iterations of many thousand operations: each round takes all that helps.
//
// A round chooses greedily, by relief per cost, against the load that is left: every choice lowers
// it and takes its time on the link, before the next is valued. So one round does what single
// exact evaluations do in hundreds. What a round misjudges (chains that grow, copies that come
// late) shows in the exact load with which the next begins.
//
// Work: at most kBulkRounds x (operations + intervals) x kMostValuations.
#pragma once

#include <optional>

#include "scheduler/plan/strategies/relief.h"

namespace spillway::scheduler {

// As Relieve().
std::optional<Choices> RelieveInBulk(const Workbench& bench, ReliefOptions options,
                                     Choices choices);

}  // namespace spillway::scheduler
