#include "scheduler/plan/live_plan.h"

#include <algorithm>
#include <utility>

namespace spillway::scheduler {
namespace {

bool RunsTheProfileOnce(const Plan& plan, const IterationProfile& profile) {
  if (plan.steps.size() != profile.operations.size()) return false;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].recomputes || plan.steps[i].operation.index != static_cast<int32_t>(i)) return false;
  }
  return true;
}

LiveActionKind KindOf(ActionKind kind) {
  return kind == ActionKind::kPrefetch ? LiveActionKind::kPrefetch : LiveActionKind::kOffload;
}

bool IsWithin(int32_t index, size_t size) { return index >= 0 && static_cast<size_t>(index) < size; }

}  // namespace

LivePlan::ByEvent LivePlan::Sort(int32_t events, std::vector<std::pair<int32_t, LiveAction>> actions) {
  std::stable_sort(actions.begin(), actions.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  ByEvent list;
  list.begins.assign(static_cast<size_t>(events) + 1, 0);
  for (const auto& [event, action] : actions) {
    list.actions.push_back(action);
    ++list.begins[static_cast<size_t>(event) + 1];
  }
  for (size_t i = 1; i < list.begins.size(); ++i) list.begins[i] += list.begins[i - 1];
  return list;
}

std::optional<LivePlan> LivePlan::Make(std::shared_ptr<const IterationPattern> pattern, const Plan& plan,
                                       int64_t predicted_ns, int64_t budget_bytes) {
  if (!RunsTheProfileOnce(plan, pattern->profile)) return std::nullopt;
  const std::vector<int32_t> event_of = OperationEvents(*pattern);
  std::vector<std::pair<int32_t, LiveAction>> before, after;
  for (const Action& action : plan.actions) {
    if (!IsWithin(action.step, event_of.size()) || !IsWithin(action.buffer.index, pattern->buffers.size()))
      return std::nullopt;
    auto& list = action.kind == ActionKind::kPrefetch ? before : after;
    list.push_back({event_of[static_cast<size_t>(action.step)], {KindOf(action.kind), action.buffer.index}});
  }
  LivePlan live;
  live.runs_again_.assign(static_cast<size_t>(pattern->size()), false);
  live.before_ = Sort(pattern->size(), std::move(before));
  live.after_ = Sort(pattern->size(), std::move(after));
  live.pattern_ = std::move(pattern);
  live.strategy_ = plan.strategy;
  live.predicted_ns_ = predicted_ns;
  live.budget_bytes_ = budget_bytes;
  return live;
}

}  // namespace spillway::scheduler
