// Decisions per idle interval, as most strategies make them, and their lowering to a plan. Pure.
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
  // kSwap: the operation that triggers the prefetch. -1: as late as possible.
  OperationId prefetch_at;
  // kRecompute, if an earlier chain rebuilds this buffer: true keeps it (faster), false drops it
  // and rebuilds it in time (smaller).
  bool keep_when_rebuilt = true;
  Reason reason = Reason::kStrategyRule;

  bool operator==(const Decision&) const = default;
};

struct Lowering {
  Plan plan;
  // Their content cannot be recomputed; they stay resident.
  std::vector<int32_t> refused;
};

// At most one decision per interval. Dead content leaves for good under any treatment but kStay:
// dropped, or offloaded in a live job. Chains run just before the operation that ends the interval;
// their temporary buffers are dropped after the last use. `workspaces` is by operation, or empty:
// all 0.
Lowering LowerDecisions(const Problem& problem, const RecomputeChains& chains,
                        const std::vector<IdleInterval>& intervals,
                        const std::vector<Decision>& decisions,
                        const std::vector<int32_t>& workspaces);

// The triggers with which all swaps' copies end in time without stalls, by backward list
// scheduling. `swaps` are indices into `intervals`.
std::vector<OperationId> LatestTriggers(const Problem& problem,
                                        const std::vector<IdleInterval>& intervals,
                                        const std::vector<int32_t>& swaps);

}  // namespace spillway::scheduler
