// The slow, obvious validator of plans. Shares no code with planners or the cost model. Any thread;
// pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

enum class PlanFault : uint8_t {
  kUnknownId,
  kStepsIncomplete,
  kActionsOutOfOrder,
  kMovesTheUnmovable,
  kReadsEvicted,
  kReadsLost,              // a step reads content that was dropped or never made
  kRecomputesForbidden,    // not replayable, or changes a buffer in place
  kRecomputesFromChanged,  // an input was written after the operation first ran
  kRecomputesIntoChanged,  // an output was written after the operation first ran
  kEvictsNonResident,      // offload or drop of a buffer that is not resident
  kPrefetchesNothing,      // prefetch of a buffer without a host copy
  kNeverDropped,           // recomputed outside its lifetime and never dropped
  // Live jobs:
  kRecomputesIntoFreed,  // an output is freed or not yet allocated
  // A dropped buffer is overwritten, freed while not recomputable, or lost at the iteration's end.
  kDropsForGood,
  // Timelines:
  kTimelineShape,  // steps differ from the plan's, or times run backwards
  kStepTooShort,
  kStepsOverlap,
  kTouchesNonResident,  // not yet resident, or still leaving
  kCopyTooFast,         // faster than the link, alone or both ways
  kCopiesOverlap,       // two at once on one engine
  // Before its step ended, its trigger was reached, or its content was on the host.
  kCopyTooEarly,
  kCopyUnplanned,
  kMapsTooFast,  // before the host's mapping calls can be done
  kOverBudget,
  // Placements:
  kNotPlaced,          // a step or copy uses a buffer outside its placements
  kPlacementsOverlap,  // two buffers share bytes during one step
  kOutsideTheArena,
};

struct PlanOffence {
  PlanFault fault = PlanFault::kUnknownId;
  int32_t step = -1;
  BufferId buffer;
  int64_t bytes = 0;  // kOverBudget: in use
  std::string what;
};

// That every step finds the right inputs, whatever the timing. Walks three iterations.
std::optional<PlanOffence> ValidatePlan(const Problem& problem, const Plan& plan);

// That the times are possible on the problem's device and budget. The plan must be valid.
std::optional<PlanOffence> ValidateTimeline(const Problem& problem, const Plan& plan,
                                            const Timeline& timeline);

// Compares each pair in the timeline's last iteration. A plan without placements passes.
std::optional<PlanOffence> ValidatePlacements(const Problem& problem, const Plan& plan,
                                              const Timeline& timeline);

}  // namespace spillway::scheduler
