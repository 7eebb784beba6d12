#include "scheduler/plan/prefetch_times.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

class LastIteration {
 public:
  LastIteration(const Plan& plan, const Timeline& timeline)
      : steps_(static_cast<int32_t>(plan.steps.size())),
        first_(timeline.last_iteration_step()),
        timeline_(timeline) {}

  // The last step if that copy is in the next iteration or missing.
  int32_t StepOfCopy(BufferId buffer, int32_t from_step) const {
    const int64_t reached_ns = ReachedNs(from_step);
    const auto starts_copy = [&](const CopyTime& copy) {
      return copy.buffer == buffer && copy.start_ns >= reached_ns;
    };
    const auto& copies = timeline_.to_device;
    const auto copy = std::find_if(FirstFrom(reached_ns), copies.end(), starts_copy);
    return copy == copies.end() ? steps_ - 1 : std::max(from_step, StepAt(copy->start_ns));
  }

 private:
  int64_t ReachedNs(int32_t step) const {
    const size_t entry = first_ + static_cast<size_t>(step);
    return entry == 0 ? 0 : timeline_.step_end_ns[entry - 1];
  }
  std::vector<CopyTime>::const_iterator FirstFrom(int64_t when_ns) const {
    return std::lower_bound(
        timeline_.to_device.begin(), timeline_.to_device.end(), when_ns,
        [](const CopyTime& copy, int64_t time_ns) { return copy.start_ns < time_ns; });
  }
  // The last step that took its memory by then. At equal times a step precedes a copy.
  int32_t StepAt(int64_t when_ns) const {
    const auto begin = timeline_.step_start_ns.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto after = std::upper_bound(begin, timeline_.step_start_ns.end(), when_ns);
    return static_cast<int32_t>(after - begin) - 1;
  }

  const int32_t steps_;
  const size_t first_;
  const Timeline& timeline_;
};

// The last step if none does.
std::vector<int32_t> NextTouchSteps(const IterationProfile& profile, const Plan& plan) {
  const auto steps = static_cast<int32_t>(plan.steps.size());
  std::vector<int32_t> next(profile.buffers.size(), steps - 1), needed_at(plan.actions.size());
  size_t action = plan.actions.size();
  for (int32_t step = steps - 1; step >= 0; --step) {
    const Operation& operation = profile.at(plan.steps[static_cast<size_t>(step)].operation);
    for (const auto* touched : {&operation.reads, &operation.writes}) {
      for (BufferId id : *touched) next[static_cast<size_t>(id.index)] = step;
    }
    for (; action > 0 && plan.actions[action - 1].step == step; --action)
      needed_at[action - 1] = next[static_cast<size_t>(plan.actions[action - 1].buffer.index)];
  }
  return needed_at;
}

}  // namespace

Plan WithTimedPrefetches(const IterationProfile& profile, const Plan& plan,
                         const Timeline& timeline) {
  Plan timed = plan;
  const LastIteration last(plan, timeline);
  const std::vector<int32_t> needed_at = NextTouchSteps(profile, plan);
  int32_t latest = 0;  // one engine starts them in order
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    Action& action = timed.actions[i];
    if (action.kind != ActionKind::kPrefetch) continue;
    latest = std::max(latest, last.StepOfCopy(action.buffer, action.step));
    action.step = std::max(action.step, std::min(latest, needed_at[i]));
  }
  std::stable_sort(timed.actions.begin(), timed.actions.end(),
                   [](const Action& a, const Action& b) { return a.step < b.step; });
  return timed;
}

}  // namespace spillway::scheduler
