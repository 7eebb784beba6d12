// Follows a plan: reports each operation to the walk, and does what the plan asks for.
//
// Owns what is counted from one iteration to the next.
//
// Invariants
//  1. A plan is a hint: what it asks for never takes memory from a call.
// Never: holds the state lock while a call's memory is made.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/recompute_recording.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/state/plan_walk.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class PlanFollower {
 public:
  PlanFollower(JobState& state, RecomputeRecording& records, Replays& replays)
      : state_(state), records_(records), replays_(replays) {}

  // Takes effect with the next iteration. What the plan does not say happens as without one.
  void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) SPILLWAY_EXCLUDES(kStateLock);
  // For the trace: an iteration's time with the plan and without it; 0: unknown.
  void TraceDropped(std::int64_t planned_ns, std::int64_t without_ns);
  // Plans are not carried out now.
  bool Parks() SPILLWAY_EXCLUDES(kStateLock);

  void ReportToPlan(Effect effect, TouchSet* set);
  void FollowPlan(StreamName stream, Effect effect, TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  void AskFor(const PlanStep::Allocations& allocations, Effect effect)
      SPILLWAY_EXCLUDES(kStateLock);
  void EndPlanned(const PlanStep& step) SPILLWAY_EXCLUDES(kStateLock) {
    if (!step.leave.empty() || !step.drop.empty()) StartEvictions(step);
  }
  void RestorePending() SPILLWAY_EXCLUDES(kStateLock) {
    if (state_.executor.HasPending()) RestoreQueued({});
  }
  void RestoreDuringWait(const std::vector<Use>& awaited) SPILLWAY_EXCLUDES(kStateLock);

  // Whether there is anything to recompute or drop before the operation.
  bool AnyToRerun(const PlanStep& step) SPILLWAY_EXCLUDES(kStateLock);
  void Rerun(const PlanStep& step, StreamName stream) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Of the last iteration that matched its plan event for event.
  const driver::MappingCalls& iteration_calls() const SPILLWAY_REQUIRES(kStateLock) {
    return iteration_calls_;
  }

 private:
  void TraceAdopted(const scheduler::LivePlan& plan);
  void BeginIteration(StreamName stream, const PlanStep& step) SPILLWAY_EXCLUDES(kStateLock);
  std::uint64_t MovedBytes() SPILLWAY_EXCLUDES(kStateLock);
  bool NoteIteration(const PlanStep& step) SPILLWAY_EXCLUDES(kStateLock);
  void RestoreQueued(const PlanStep::Allocations& asked_for) SPILLWAY_EXCLUDES(kStateLock);
  void StartEvictions(const PlanStep& step) SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  RecomputeRecording& records_;
  Replays& replays_;
  driver::MappingCalls calls_at_iteration_ SPILLWAY_GUARDED_BY(kStateLock);
  std::uint64_t began_ns_ SPILLWAY_GUARDED_BY(kStateLock) = 0;  // the iteration; 0: none yet
  driver::MappingCalls iteration_calls_ SPILLWAY_GUARDED_BY(kStateLock);
  std::uint64_t full_scans_at_iteration_ SPILLWAY_GUARDED_BY(kStateLock) = 0;
};

}  // namespace spillway::interposer
