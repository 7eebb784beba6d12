#include "interposer/execute/plan_follower.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/schedule_point.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/call_recorder.h"
#include "interposer/record/trace_names.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;
using scheduler::JobEvent;

void PlanFollower::Adopt(std::shared_ptr<const scheduler::LivePlan> plan) {
  {
    const StateLock lock(state_.locks);
    if (!state_.executor.IsOn()) state_.executor.Begin();
  }
  if (JobTrace::IsOn()) TraceAdopted(*plan);
  state_.walk.Adopt(std::move(plan));
}

void PlanFollower::TraceDropped(std::int64_t planned_ns, std::int64_t without_ns) {
  state_.trace.Now({.kind = TraceKind::kPlanDropped, .values = {planned_ns, without_ns}});
}

bool PlanFollower::Parks() {
  const StateLock lock(state_.locks);
  return state_.residency.parking();
}

void PlanFollower::ReportToPlan(Effect effect, TouchSet* set) {
  if (set->step) return;
  const CallRecorder::Operation operation(*set, effect);
  state_.walk.Observe(JobEvent::Operation(operation.shape(), operation.touches()),
                      &set->step.emplace());
}

void PlanFollower::FollowPlan(StreamName stream, Effect effect, TouchSet* set) {
  ReportToPlan(effect, set);
  if (set->step->began_iteration) BeginIteration(stream, *set->step);
  AskFor(set->step->prefetch, effect);
}

// A launch does not wait until memory is mapped for others: that happens after it (EndPlanned). A
// copy call may itself wait, so memory is mapped before it.
void PlanFollower::AskFor(const PlanStep::Allocations& allocations, Effect effect) {
  if (effect != Effect::kLaunches && (!allocations.empty() || state_.executor.HasPending()))
    return RestoreQueued(allocations);
  if (allocations.empty()) return;
  const StateLock lock(state_.locks);
  state_.executor.AskFor(allocations);
}

// The program waits: prefetches are restored as memory becomes free.
void PlanFollower::RestoreDuringWait(const std::vector<Use>& awaited) {
  if (!state_.executor.HasPending()) return;
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const auto is_over = [&] {
    return std::all_of(awaited.begin(), awaited.end(),
                       [](Use use) { return Timeline::KnownDone(use); });
  };
  for (;; base::YieldToOthers()) {
    const StateLock lock(state_.locks);
    for (Use use : awaited) state_.timeline.EventFor(use);
    state_.executor.RestoreQueued();
    const bool may_come =
        state_.residency.departures().AreUnderWay() || state_.executor.WaitsForTurn();
    if (!state_.executor.HasPending() || !may_come || is_over()) return;
  }
}

bool PlanFollower::AnyToRerun(const PlanStep& step) {
  const StateLock lock(state_.locks);
  return std::any_of(step.recompute.begin(), step.recompute.end(),
                     [this](const PlanStep::Rerun& rerun) SPILLWAY_REQUIRES(kStateLock) {
                       const Range* const range = state_.executor.Find(rerun.allocation);
                       return range && (rerun.drops ? IsMapped(range) : IsDropped(range));
                     });
}

void PlanFollower::Rerun(const PlanStep& step, StreamName stream) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  {
    const StateLock lock(state_.locks);
    state_.executor.AskFor(step.prefetch);
  }
  for (const PlanStep::Rerun& rerun : step.recompute) {
    Range* range;
    StreamState* state;
    {
      const StateLock lock(state_.locks);
      range = state_.executor.Find(rerun.allocation);
      state = state_.timeline.Of(stream);
      if (rerun.drops && range) {
        PlanStep::Allocations one;
        one.push_back(rerun.allocation);
        records_.DropOrEvict(one);
      }
    }
    if (range && !rerun.drops) replays_.RecomputeRange(range, state, TraceCause::kPlan);
  }
}

void PlanFollower::TraceAdopted(const scheduler::LivePlan& plan) {
  const char* const strategy = plan.strategy().c_str();
  state_.trace.Now(
      {.kind = TraceKind::kPlanAdopted,
       .name = KeepTraceName(ShapeOfName(strategy), strategy),
       .values = {plan.predicted_ns(), plan.budget_bytes(), plan.action_count(),
                  static_cast<std::int64_t>(plan.pattern().profile.operations.size())}});
}

void PlanFollower::BeginIteration(StreamName stream, const PlanStep& step) {
  if (step.is_planned && step.last_misses == 0) state_.timeline.CheckpointWhenAsked();
  state_.trace.At(HandleOf(stream), {.kind = TraceKind::kIteration,
                                     .values = {static_cast<std::int64_t>(step.last_misses)}});
  const CurrentContext current(state_.context);
  const bool was_stopped = NoteIteration(step);
  if (!driver::KnownContexts::HasSeveral())
    state_.recorder.IterationBegan(stream.handle, {.pattern = step.pattern,
                                                   .is_planned = step.is_planned,
                                                   .moved_bytes = MovedBytes(),
                                                   .last_misses = step.last_misses,
                                                   .last_was_stopped = was_stopped});
}

std::uint64_t PlanFollower::MovedBytes() {
  const StateLock lock(state_.locks);
  return state_.counters.offloaded_bytes + state_.counters.restored_bytes;
}

// Whether a full scan was made in the iteration before.
bool PlanFollower::NoteIteration(const PlanStep& step) {
  const StateLock lock(state_.locks);
  const std::uint64_t now_ns = base::MonotonicNs();
  const driver::MappingCalls calls = driver::ReadMappingCalls();
  const driver::MappingCalls of_last = calls.Since(std::exchange(calls_at_iteration_, calls));
  if (state_.counters.planned_iterations > 0 && step.last_misses == 0) iteration_calls_ = of_last;
  state_.residency.laid_out().IterationEnded(
      {.misses = static_cast<std::int64_t>(step.last_misses),
       .mapped_chunks = static_cast<std::int64_t>(of_last.maps),
       .duration_ns = began_ns_ == 0 ? 0 : static_cast<std::int64_t>(now_ns - began_ns_)});
  began_ns_ = now_ns;
  state_.executor.IterationBegan();
  state_.counters.planned_iterations += step.is_planned;
  state_.counters.planned_iterations_missed += step.is_planned && step.last_misses > 0;
  return std::exchange(full_scans_at_iteration_, state_.counters.full_scans) !=
         state_.counters.full_scans;
}

void PlanFollower::RestoreQueued(const PlanStep::Allocations& asked_for) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.executor.AskFor(asked_for);
  state_.executor.RestoreQueued();
}

void PlanFollower::StartEvictions(const PlanStep& step) {
  if (CapturesGoOn()) return;
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.executor.StartEvictions(step.leave);
  records_.DropOrEvict(step.drop);
}

}  // namespace spillway::interposer
