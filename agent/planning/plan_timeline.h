// What a plan moves, and when within an iteration, in a few hundred parts. Pure.
//
// Operations take the time that the job measured, one after another; waits for copies are not
// priced (scheduler/plan/cost_model.h does that, for a known device).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "scheduler/plan/plan_codec.h"

namespace spillway::agent {

inline constexpr size_t kTimelineParts = 240, kLargestMoves = 20;

struct PlanMove {
  scheduler::Action action;
  int32_t operation = -1;  // of the action's step
  int64_t at_ns = 0;       // the step's end; of a prefetch its begin
  int64_t size_bytes = 0;
};

struct TimelinePart {
  // The most within the part: memory of the program's buffers, and of those that the plan leaves.
  int64_t wanted_bytes = 0, resident_bytes = 0;
  int64_t to_host_bytes = 0, to_device_bytes = 0, dropped_bytes = 0;
};

struct PlanTimeline {
  int64_t iteration_ns = 0;  // parts of equal length
  std::vector<TimelinePart> parts;
  int64_t to_host_bytes = 0, to_device_bytes = 0, dropped_bytes = 0;
  int32_t recomputed = 0;              // steps that run an operation again
  std::vector<PlanMove> largest = {};  // by size
};

// The error: the plan names what its iteration does not have. Decode checks the iteration alone.
base::Result<PlanTimeline> TimelineOf(const scheduler::StoredPlan& stored);

}  // namespace spillway::agent
