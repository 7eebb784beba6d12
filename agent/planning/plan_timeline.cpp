#include "agent/planning/plan_timeline.h"

#include <algorithm>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {
namespace {

using scheduler::Action;
using scheduler::ActionKind;
using scheduler::At;
using scheduler::BufferId;
using scheduler::IterationProfile;
using scheduler::Operation;
using scheduler::Step;

// Walks the plan's steps and keeps where each buffer is.
class TimelineWalk {
 public:
  explicit TimelineWalk(const scheduler::StoredPlan& stored)
      : plan_(stored.plan),
        profile_(stored.pattern.profile),
        buffers_(profile_.buffers.size()),
        born_(profile_.operations.size()),
        dies_(profile_.operations.size()) {
    for (int32_t i = 0; i < static_cast<int32_t>(profile_.buffers.size()); ++i) {
      const scheduler::Buffer& buffer = profile_.at(BufferId{i});
      if (buffer.persistent) {
        SetAlive(BufferId{i}, true);
        SetResident(BufferId{i}, true);
      } else {
        born_[At(buffer.born)].push_back(BufferId{i});
        dies_[At(buffer.dies)].push_back(BufferId{i});
      }
    }
    for (const Step& step : plan_.steps) AddTo(result_.iteration_ns, DurationNs(step));
    result_.iteration_ns = std::max<int64_t>(result_.iteration_ns, 1);
    result_.parts.resize(kTimelineParts);
  }

  // The iteration repeats: the second walk begins where the first one ends.
  PlanTimeline Walk() {
    for (const bool is_recorded : {false, true}) {
      is_recorded_ = is_recorded;
      now_ns_ = 0;
      next_action_ = 0;
      for (int32_t i = 0; i < static_cast<int32_t>(plan_.steps.size()); ++i) TakeStep(i);
    }
    std::stable_sort(moves_.begin(), moves_.end(), [](const PlanMove& a, const PlanMove& b) {
      return a.size_bytes > b.size_bytes;
    });
    moves_.resize(std::min(moves_.size(), kLargestMoves));
    result_.largest = std::move(moves_);
    return std::move(result_);
  }

 private:
  struct State {
    bool is_alive = false, is_resident = false;
    bool has_host_copy = false;  // an equal one
  };

  void TakeStep(int32_t index) {
    const Step& step = plan_.steps[At(index)];
    const Operation& operation = profile_.at(step.operation);
    const size_t first = next_action_;
    while (next_action_ < plan_.actions.size() && plan_.actions[next_action_].step == index)
      ++next_action_;
    for (size_t i = first; i < next_action_; ++i) Prefetch(plan_.actions[i]);
    if (!step.recomputes) SetAll(born_[At(step.operation)], true);
    for (const BufferId id : operation.writes) {
      SetResident(id, true);
      buffers_[At(id)].has_host_copy = false;
    }
    const int64_t begin_ns = now_ns_;
    AddTo(now_ns_, DurationNs(step));
    NoteMemory(begin_ns, WorkspaceBytes(step));
    if (is_recorded_ && step.recomputes) ++result_.recomputed;
    if (!step.recomputes) SetAll(dies_[At(step.operation)], false);
    for (size_t i = first; i < next_action_; ++i) Evict(plan_.actions[i]);
  }

  void Prefetch(const Action& action) {
    if (action.kind != ActionKind::kPrefetch || buffers_[At(action.buffer)].is_resident) return;
    SetResident(action.buffer, true);
    NoteMove(action, &TimelinePart::to_device_bytes, &result_.to_device_bytes);
  }

  void Evict(const Action& action) {
    State& state = buffers_[At(action.buffer)];
    if (action.kind == ActionKind::kPrefetch || !state.is_resident) return;
    SetResident(action.buffer, false);
    if (action.kind == ActionKind::kOffload && !state.has_host_copy) {
      state.has_host_copy = true;
      return NoteMove(action, &TimelinePart::to_host_bytes, &result_.to_host_bytes);
    }
    NoteMove(action, &TimelinePart::dropped_bytes, &result_.dropped_bytes);
  }

  void SetAll(const std::vector<BufferId>& ids, bool is_alive) {
    for (const BufferId id : ids) {
      SetAlive(id, is_alive);
      SetResident(id, is_alive);
      buffers_[At(id)].has_host_copy = false;
    }
  }
  void SetAlive(BufferId id, bool is_alive) { Set(id, is_alive, &State::is_alive, &alive_bytes_); }
  void SetResident(BufferId id, bool is_resident) {
    Set(id, is_resident, &State::is_resident, &resident_bytes_);
  }
  void Set(BufferId id, bool value, bool State::*place, int64_t* sum_bytes) {
    bool& now = buffers_[At(id)].*place;
    if (now != value) *sum_bytes += (value ? 1 : -1) * profile_.at(id).size_bytes;
    now = value;
  }

  size_t PartAt(int64_t ns) const {
    const double share = static_cast<double>(ns) / static_cast<double>(result_.iteration_ns);
    return std::min(static_cast<size_t>(share * kTimelineParts), kTimelineParts - 1);
  }

  void NoteMemory(int64_t begin_ns, int64_t workspace_bytes) {
    if (!is_recorded_) return;
    for (size_t i = PartAt(begin_ns); i <= PartAt(now_ns_); ++i) {
      TimelinePart& part = result_.parts[i];
      part.wanted_bytes = std::max(part.wanted_bytes, alive_bytes_ + workspace_bytes);
      part.resident_bytes = std::max(part.resident_bytes, resident_bytes_ + workspace_bytes);
    }
  }

  void NoteMove(const Action& action, int64_t TimelinePart::*place, int64_t* sum_bytes) {
    if (!is_recorded_) return;
    const int64_t size_bytes = profile_.at(action.buffer).size_bytes;
    AddTo(result_.parts[PartAt(now_ns_)].*place, size_bytes);
    AddTo(*sum_bytes, size_bytes);
    moves_.push_back({action, plan_.steps[At(action.step)].operation.index, now_ns_, size_bytes});
  }

  int64_t DurationNs(const Step& step) const {
    const Operation& operation = profile_.at(step.operation);
    return operation.workspaces.empty() ? operation.duration_ns
                                        : operation.workspaces[At(step.workspace)].duration_ns;
  }
  int64_t WorkspaceBytes(const Step& step) const {
    const Operation& operation = profile_.at(step.operation);
    return operation.workspaces.empty() ? 0 : operation.workspaces[At(step.workspace)].size_bytes;
  }

  const scheduler::Plan& plan_;
  const IterationProfile& profile_;
  std::vector<State> buffers_;
  std::vector<std::vector<BufferId>> born_, dies_;  // by operation
  PlanTimeline result_;
  std::vector<PlanMove> moves_;
  bool is_recorded_ = false;
  size_t next_action_ = 0;
  int64_t now_ns_ = 0, alive_bytes_ = 0, resident_bytes_ = 0;
};

bool IsIndex(int32_t index, size_t size) { return index >= 0 && static_cast<size_t>(index) < size; }

bool IsSound(const Step& step, const IterationProfile& profile) {
  if (!IsIndex(step.operation.index, profile.operations.size())) return false;
  const size_t workspaces = profile.at(step.operation).workspaces.size();
  return workspaces == 0 || IsIndex(step.workspace, workspaces);
}

bool IsSound(const scheduler::Plan& plan, const IterationProfile& profile) {
  const auto by_step = [](const Action& a, const Action& b) { return a.step < b.step; };
  return std::all_of(plan.steps.begin(), plan.steps.end(),
                     [&](const Step& step) { return IsSound(step, profile); }) &&
         std::all_of(plan.actions.begin(), plan.actions.end(),
                     [&](const Action& action) {
                       return IsIndex(action.step, plan.steps.size()) &&
                              IsIndex(action.buffer.index, profile.buffers.size());
                     }) &&
         std::is_sorted(plan.actions.begin(), plan.actions.end(), by_step);
}

}  // namespace

base::Result<PlanTimeline> TimelineOf(const scheduler::StoredPlan& stored) {
  if (!IsSound(stored.plan, stored.pattern.profile))
    return base::Error{"the plan names what its iteration does not have"};
  return TimelineWalk(stored).Walk();
}

}  // namespace spillway::agent
