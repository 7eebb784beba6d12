// Decisions per idle interval, the unit in which most strategies think, and their lowering to a
// plan.
//
// Called by strategies on any thread; pure.
#pragma once

#include <vector>

#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"
#include "scheduler/plan/recompute_chain.h"

namespace spillway::scheduler {

enum class Treatment : uint8_t { kStay, kSwap, kRecompute };

struct Decision {
  int32_t interval = -1;  // index into the strategy's list of idle intervals
  Treatment treatment = Treatment::kStay;
  // kSwap: the operation with which the prefetch may start. Index -1: as late as fits when nothing
  // stalls.
  OperationId prefetch_at;
  // kRecompute: when an earlier chain rebuilds this buffer on its way, keep it from then on (true:
  // faster) or drop it again and rebuild it when its own time comes (false: smaller).
  bool keep_when_rebuilt = true;
  Reason reason = Reason::kStrategyRule;

  bool operator==(const Decision&) const = default;
};

struct Lowering {
  Plan plan;
  std::vector<int32_t>
      refused;  // intervals decided kRecompute whose content cannot be recomputed: they stay
};

// Lowers decisions to steps and actions; at most one decision per interval. A buffer with dead
// content leaves without return whatever the treatment (but kStay): dropped, in a live job
// offloaded. Chains run just before the operation that ends the interval; what a chain rebuilt for
// itself only is dropped after its last use there. `workspaces` has one index per operation, or is
// empty: all 0.
Lowering LowerDecisions(const Problem& problem, const RecomputeChains& chains,
                        const std::vector<IdleInterval>& intervals,
                        const std::vector<Decision>& decisions,
                        const std::vector<int32_t>& workspaces);

// For each swap (an index into `intervals`) the operation with which its prefetch may start so
// that, one after another and without stalls, each copy ends by the time its buffer is touched:
// backward list scheduling at the host-to-device rate.
std::vector<OperationId> LatestTriggers(const Problem& problem,
                                        const std::vector<IdleInterval>& intervals,
                                        const std::vector<int32_t>& swaps);

}  // namespace spillway::scheduler
