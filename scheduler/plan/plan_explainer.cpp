#include "scheduler/plan/plan_explainer.h"

#include <algorithm>
#include <cstdio>

#include "base/units.h"

namespace spillway::scheduler {
namespace {

std::string WithUnit(int64_t value, int64_t unit, const char* name) {
  char text[48];
  std::snprintf(text, sizeof text, "%lld.%lld %s", static_cast<long long>(value / unit),
                static_cast<long long>(value % unit * 10 / unit), name);
  return text;
}

std::string SizeText(int64_t bytes) {
  if (bytes >= base::kMebibyte) return WithUnit(bytes, base::kMebibyte, "MiB");
  return WithUnit(bytes, base::kKibibyte, "KiB");
}

std::string TimeText(int64_t nanos) {
  return nanos >= 1'000'000 ? WithUnit(nanos, 1'000'000, "ms") : WithUnit(nanos, 1'000, "us");
}

class Explainer {
 public:
  Explainer(const Problem& problem, const Plan& plan, const Timeline& timeline)
      : profile_(problem.iteration()),
        plan_(plan),
        timeline_(timeline),
        first_(timeline.last_iteration_step()) {}

  std::vector<Explanation> Explain() {
    size_t action = 0;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto step = static_cast<int32_t>(i);
      if (plan_.steps[i].recomputes) Add(step, RecomputeText(plan_.steps[i]));
      if (plan_.steps[i].workspace > 0) Add(step, WorkspaceText(plan_.steps[i]));
      for (; action < plan_.actions.size() && plan_.actions[action].step == step; ++action)
        Add(step, ActionText(plan_.actions[action]));
    }
    return std::move(result_);
  }

 private:
  void Add(int32_t step, std::string text) { result_.push_back({step, std::move(text)}); }
  const std::string& operation_name(int32_t step) const {
    return profile_.at(plan_.steps[static_cast<size_t>(step)].operation).name;
  }

  bool Touches(int32_t step, BufferId id) const {
    const Operation& operation = profile_.at(plan_.steps[static_cast<size_t>(step)].operation);
    return std::find(operation.reads.begin(), operation.reads.end(), id) != operation.reads.end() ||
           std::find(operation.writes.begin(), operation.writes.end(), id) !=
               operation.writes.end();
  }

  // Possibly in the next iteration; -1: none.
  int32_t NextTouch(BufferId id, int32_t after) const {
    const auto count = static_cast<int32_t>(plan_.steps.size());
    for (int32_t i = 1; i <= count; ++i) {
      if (Touches((after + i) % count, id)) return (after + i) % count;
    }
    return -1;
  }

  std::string ActionText(const Action& action) const {
    const std::string what = "'" + profile_.at(action.buffer).name + "' (" +
                             SizeText(profile_.at(action.buffer).size_bytes) + ")";
    switch (action.kind) {
      case ActionKind::kOffload:
        return "offload " + what + LeaveText(action) + CopyText(action, timeline_.to_host, true);
      case ActionKind::kDrop:
        return "drop " + what + LeaveText(action) + "; " + ToString(action.reason);
      case ActionKind::kPrefetch:
        return "prefetch " + what + ReturnText(action) +
               CopyText(action, timeline_.to_device, false);
    }
    return what;
  }

  std::string LeaveText(const Action& action) const {
    const int32_t next = NextTouch(action.buffer, action.step);
    std::string text = " after '" + operation_name(action.step) + "'";
    if (next >= 0)
      text += ", idle for " + TimeText(IdleNs(action.step, next)) + " until '" +
              operation_name(next) + "'";
    return text;
  }

  std::string ReturnText(const Action& action) const {
    const bool now = Touches(action.step, action.buffer);
    const int32_t next = now ? action.step : NextTouch(action.buffer, action.step);
    std::string text = " with '" + operation_name(action.step) + "'";
    if (next < 0) return text;
    text += now ? ", which waits for it" : ", for '" + operation_name(next) + "'";
    const StallCauses& stalls = timeline_.step_stalls[first_ + static_cast<size_t>(next)];
    if (stalls.restore_ns > 0) text += " (waits " + TimeText(stalls.restore_ns) + ")";
    return text;
  }

  int64_t IdleNs(int32_t from, int32_t to) const {
    const int64_t left_ns = timeline_.step_end_ns[first_ + static_cast<size_t>(from)];
    const int64_t back_ns = timeline_.step_start_ns[first_ + static_cast<size_t>(to)];
    const int64_t iteration_ns = timeline_.step_end_ns.back() - timeline_.iteration_start_ns.back();
    return back_ns >= left_ns ? back_ns - left_ns : back_ns + iteration_ns - left_ns;
  }

  // A clean buffer is not copied out.
  std::string CopyText(const Action& action, const std::vector<CopyTime>& copies, bool out) const {
    const auto copy = std::find_if(copies.rbegin(), copies.rend(), [&](const CopyTime& candidate) {
      return candidate.buffer == action.buffer;
    });
    std::string text = "; ";
    if (copy != copies.rend())
      text += "copy takes " + TimeText(copy->end_ns - copy->start_ns) + ", ";
    else if (out)
      text += "its host copy is still good, ";
    return text + ToString(action.reason);
  }

  std::string RecomputeText(const Step& step) const {
    const Operation& operation = profile_.at(step.operation);
    std::string text =
        "run '" + operation.name + "' again, " + TimeText(operation.duration_ns) + ", for";
    for (BufferId id : operation.writes)
      text += " '" + profile_.at(id).name + "' (" + SizeText(profile_.at(id).size_bytes) + ")";
    return text;
  }

  std::string WorkspaceText(const Step& step) const {
    const Operation& operation = profile_.at(step.operation);
    const WorkspaceChoice& choice = operation.workspaces[static_cast<size_t>(step.workspace)];
    return "'" + operation.name + "' uses " + choice.name + " with " + SizeText(choice.size_bytes) +
           " of workspace: " + TimeText(choice.duration_ns) + " instead of " +
           TimeText(operation.workspaces[0].duration_ns);
  }

  const IterationProfile& profile_;
  const Plan& plan_;
  const Timeline& timeline_;
  const size_t first_;
  std::vector<Explanation> result_;
};

}  // namespace

std::vector<Explanation> ExplainPlan(const Problem& problem, const Plan& plan,
                                     const Timeline& timeline) {
  return Explainer(problem, plan, timeline).Explain();
}

const char* ToString(Reason reason) {
  switch (reason) {
    case Reason::kStrategyRule:
      return "the strategy's rule asks for it";
    case Reason::kHidden:
      return "its copies fit behind computation";
    case Reason::kCheapestRelief:
      return "it relieves the peak most per time lost";
    case Reason::kRepair:
      return "without it the budget would not hold";
    case Reason::kImprovement:
      return "the model was faster with it";
    case Reason::kContentDead:
      return "its content is overwritten next";
    case Reason::kChainTemporary:
      return "only another buffer's recomputation needed it";
  }
  return "?";
}

}  // namespace spillway::scheduler
