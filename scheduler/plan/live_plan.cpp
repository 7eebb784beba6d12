#include "scheduler/plan/live_plan.h"

#include <algorithm>
#include <utility>

namespace spillway::scheduler {
namespace {

bool IsWithin(int32_t index, size_t size) {
  return index >= 0 && static_cast<size_t>(index) < size;
}

bool HasPatternSteps(const Plan& plan, const IterationProfile& profile) {
  int32_t next = 0;
  for (const Step& step : plan.steps) {
    if (!step.recomputes && step.operation.index != next++) return false;
    if (!step.recomputes) continue;
    if (!IsWithin(step.operation.index, static_cast<size_t>(next))) return false;
    if (profile.at(step.operation).writes.size() != 1) return false;
  }
  return static_cast<size_t>(next) == profile.operations.size() &&
         (plan.steps.empty() || !plan.steps.back().recomputes);
}

bool HasValidActions(const Plan& plan, const IterationPattern& pattern) {
  return std::all_of(plan.actions.begin(), plan.actions.end(), [&](const Action& action) {
    return IsWithin(action.step, plan.steps.size()) &&
           IsWithin(action.buffer.index, pattern.buffers.size());
  });
}

LiveActionKind KindOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kPrefetch:
      return LiveActionKind::kPrefetch;
    case ActionKind::kDrop:
      return LiveActionKind::kDrop;
    case ActionKind::kOffload:
      break;
  }
  return LiveActionKind::kOffload;
}

// For a rerun, the event of the next operation.
std::vector<int32_t> EventsOfSteps(const Plan& plan, const IterationPattern& pattern) {
  const std::vector<int32_t> event_of = OperationEvents(pattern);
  std::vector<int32_t> events(plan.steps.size());
  int32_t event = -1;
  for (size_t i = plan.steps.size(); i-- > 0;) {
    if (!plan.steps[i].recomputes)
      event = event_of[static_cast<size_t>(plan.steps[i].operation.index)];
    events[i] = event;
  }
  return events;
}

}  // namespace

std::vector<OperationId> OperationsToRerun(const IterationProfile& profile, const Plan& plan) {
  std::vector<OperationId> result, writers(profile.buffers.size());
  size_t next = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const BufferId written : profile.at(plan.steps[i].operation).writes)
      writers[static_cast<size_t>(written.index)] = plan.steps[i].operation;
    for (; next < plan.actions.size() && plan.actions[next].step == static_cast<int32_t>(i);
         ++next) {
      const BufferId buffer = plan.actions[next].buffer;
      const OperationId writer = writers[static_cast<size_t>(buffer.index)];
      const bool is_made_again = profile.at(buffer).kind != BufferKind::kWorkspace;
      if (plan.actions[next].kind == ActionKind::kDrop && is_made_again && writer.index >= 0)
        result.push_back(writer);
    }
  }
  return result;
}

void LivePlan::ByEvent::Sort(int32_t events) {
  std::stable_sort(added.begin(), added.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  begins.assign(static_cast<size_t>(events) + 1, 0);
  for (const auto& [event, action] : added) {
    actions.push_back(action);
    ++begins[static_cast<size_t>(event) + 1];
  }
  for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  added = {};
}

// Mapping the memory of the event's own prefetches would delay a rerun.
void LivePlan::AddPrefetches(const Plan& plan, const std::vector<int32_t>& events,
                             bool behind_reruns) {
  const auto is_behind = [&](int32_t step) {
    const auto at = static_cast<size_t>(step);
    return at > 0 && plan.steps[at - 1].recomputes && !plan.steps[at].recomputes;
  };
  for (const Action& action : plan.actions) {
    if (action.kind != ActionKind::kPrefetch || is_behind(action.step) != behind_reruns) continue;
    before_.Add(events[static_cast<size_t>(action.step)],
                {LiveActionKind::kPrefetch, action.buffer.index});
  }
}

void LivePlan::AddReruns(const Plan& plan, const std::vector<int32_t>& events) {
  size_t next = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.recomputes) {
      const BufferId made = pattern_->profile.at(step.operation).writes[0];
      before_.Add(events[i], {LiveActionKind::kRecompute, made.index});
    }
    for (; next < plan.actions.size() && plan.actions[next].step == static_cast<int32_t>(i);
         ++next) {
      const Action& action = plan.actions[next];
      if (action.kind == ActionKind::kPrefetch) continue;
      const bool is_between = step.recomputes && action.kind == ActionKind::kDrop;
      (is_between ? before_ : after_).Add(events[i], {KindOf(action.kind), action.buffer.index});
    }
  }
}

void LivePlan::NoteRecords(const Plan& plan) {
  const std::vector<int32_t> event_of = OperationEvents(*pattern_);
  is_rerun_later_.assign(static_cast<size_t>(pattern_->size()), false);
  for (const OperationId operation : OperationsToRerun(pattern_->profile, plan))
    is_rerun_later_[static_cast<size_t>(event_of[static_cast<size_t>(operation.index)])] = true;
}

void LivePlan::NoteDrops(const Plan& plan, const std::vector<int32_t>& events) {
  last_drops_.assign(pattern_->buffers.size(), -1);
  for (const Action& action : plan.actions) {
    if (action.kind != ActionKind::kDrop) continue;
    int32_t& last = last_drops_[static_cast<size_t>(action.buffer.index)];
    last = std::max(last, events[static_cast<size_t>(action.step)]);
  }
}

std::optional<LivePlan> LivePlan::Make(std::shared_ptr<const IterationPattern> pattern,
                                       const Plan& plan, int64_t predicted_ns,
                                       int64_t budget_bytes) {
  if (!HasPatternSteps(plan, pattern->profile) || !HasValidActions(plan, *pattern))
    return std::nullopt;
  LivePlan live;
  live.pattern_ = std::move(pattern);
  const std::vector<int32_t> events = EventsOfSteps(plan, *live.pattern_);
  live.AddPrefetches(plan, events, false);
  live.AddReruns(plan, events);
  live.AddPrefetches(plan, events, true);
  live.NoteRecords(plan);
  live.NoteDrops(plan, events);
  live.before_.Sort(live.pattern_->size());
  live.after_.Sort(live.pattern_->size());
  live.strategy_ = plan.strategy;
  live.predicted_ns_ = predicted_ns;
  for (const Operation& operation : live.pattern_->profile.operations)
    live.operations_ns_ += operation.duration_ns;
  for (const Step& step : plan.steps) {
    if (step.recomputes)
      live.repeated_ns_ +=
          live.pattern_->profile.operations[static_cast<size_t>(step.operation.index)].duration_ns;
  }
  live.budget_bytes_ = budget_bytes;
  return live;
}

}  // namespace spillway::scheduler
