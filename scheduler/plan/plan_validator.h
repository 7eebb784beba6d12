// The slow, obvious judge of plans: walks them step by step and shares no code with planners or the
// cost model.
//
// Called by tests, by the command line on every plan, and by the executor before it takes one up;
// any thread; pure. Never repairs anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

enum class PlanFault : uint8_t {
  kUnknownId,          // a step, action or workspace names what is not there
  kStepsIncomplete,    // an operation is missing, doubled or out of order
  kActionsOutOfOrder,  // actions are not sorted by step
  kMovesTheUnmovable,
  kReadsWhatIsAway,  // a step reads a buffer that is on the host, and nothing brings it back before
  kReadsWhatIsGone,  // a step reads content that was dropped or never made
  kRecomputesForbidden,    // the operation is not replayable, or changes a buffer in place
  kRecomputesFromChanged,  // an input has been written since the operation first ran
  kRecomputesIntoChanged,  // an output has been written since the operation first ran
  kTakesWhatIsNotThere,    // offload or drop of a buffer that is not on the device
  kFetchesNothing,         // prefetch of a buffer that has no content on the host
  kLeftBehind,             // rebuilt outside its lifetime and never dropped
  // Of a plan for a live job:
  kRecomputesIntoFreed,  // an output has been freed, or is not allocated yet
  kDropsForGood,  // a dropped buffer is overwritten before it is made again, freed when it could
                  // not be, or gone when the iteration ends
  // Of a timeline:
  kTimelineShape,  // other steps than the plan's, or times that run backwards
  kStepTooShort,
  kStepsOverlap,
  kTouchesWhileAway,  // a step runs while a buffer it touches is not there yet, or still leaving
  kCopyTooFast,       // faster than the link allows, alone or both ways
  kCopiesOverlap,     // two at once on one engine
  kCopyTooEarly,  // before its step has ended, its trigger is reached or its content is on the host
  kCopyUnplanned,
  kMapsTooFast,  // the host's calls for memory take longer than it had
  kOverBudget,
  // Of placements:
  kNotPlaced,          // a step touches a buffer, or a copy runs, outside its placements
  kPlacementsOverlap,  // two buffers have the same bytes during one step
  kOutsideTheArena,
};

struct PlanOffence {
  PlanFault fault = PlanFault::kUnknownId;
  int32_t step = -1;  // of the plan
  BufferId buffer;    // where one is to blame
  int64_t bytes = 0;  // kOverBudget: in use
  std::string what;   // one sentence
};

// Does every step find its inputs, and the right ones, whatever the timing? Walks three iterations.
std::optional<PlanOffence> ValidatePlan(const Problem& problem, const Plan& plan);

// Could the times be true on the problem's device, within its budget? The plan must be valid.
std::optional<PlanOffence> ValidateTimeline(const Problem& problem, const Plan& plan,
                                            const Timeline& timeline);

// Does every buffer have bytes of its own while steps touch it and copies of the timeline's last
// iteration run? Slow and obvious: compares every pair of placements at every step. A plan without
// placements is right.
std::optional<PlanOffence> ValidatePlacements(const Problem& problem, const Plan& plan,
                                              const Timeline& timeline);

}  // namespace spillway::scheduler
