#include "scheduler/plan/iteration_run.h"

#include <algorithm>

#include "base/units.h"

namespace spillway::scheduler {
namespace {

constexpr int kIterations = 3;  // two to reach the steady state

}  // namespace

IterationRun::IterationRun(const CostModel& model, const Problem& problem, const Plan& plan)
    : model_(model),
      problem_(problem),
      plan_(plan),
      profile_(problem.iteration()),
      states_(profile_.buffers.size()),
      engines_(problem.device),
      host_(model.mapping_costs_) {}

Prediction IterationRun::Run(Timeline* timeline) {
  if (!IsWellFormed()) {
    Fail(Verdict::kMalformed, -1);
    return result_;
  }
  timeline_ = timeline;
  if (timeline_) *timeline_ = {};
  SetFirstState();
  if (used_bytes_ > problem_.budget_bytes) {
    Fail(Verdict::kOverBudget, 0);
    return result_;
  }
  for (int i = 0; i < kIterations; ++i) {
    const std::vector<State> before = states_;
    const MappingHost::Backlog backlog = host_.backlog();
    if (!RunIteration() || (IsSteady(before) && host_.backlog() == backlog)) break;
  }
  return result_;
}

bool IterationRun::Fail(Verdict verdict, int32_t step) {
  result_.verdict = verdict;
  result_.stuck_step = step;
  return false;
}

bool IterationRun::IsWellFormed() const {
  int32_t next_original = 0;
  for (const Step& step : plan_.steps) {
    if (step.operation.index < 0 ||
        static_cast<size_t>(step.operation.index) >= profile_.operations.size())
      return false;
    const auto choices = static_cast<int32_t>(profile_.at(step.operation).workspaces.size());
    if (step.workspace < 0 || step.workspace >= std::max(1, choices)) return false;
    if (!step.recomputes && step.operation.index != next_original++) return false;
  }
  if (static_cast<size_t>(next_original) != profile_.operations.size()) return false;
  const auto in_range = [&](const Action& action) {
    return action.step >= 0 && static_cast<size_t>(action.step) < plan_.steps.size() &&
           action.buffer.index >= 0 &&
           static_cast<size_t>(action.buffer.index) < profile_.buffers.size();
  };
  return std::all_of(plan_.actions.begin(), plan_.actions.end(), in_range) &&
         std::is_sorted(plan_.actions.begin(), plan_.actions.end(),
                        [](const Action& a, const Action& b) { return a.step < b.step; });
}

void IterationRun::SetStateAtEnd(const Action& action) {
  if (!profile_.at(action.buffer).persistent) return;
  State& it = state(action.buffer);
  it.host_valid |= action.kind == ActionKind::kOffload;
  it.where = action.kind == ActionKind::kPrefetch ? Where::kResident
             : it.host_valid                      ? Where::kOnHost
                                                  : Where::kAbsent;
}

// R7.
void IterationRun::SetFirstState() {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (profile_.buffers[i].persistent) states_[i].where = Where::kResident;
  }
  size_t next = 0;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    for (BufferId id : profile_.at(step.operation).writes) {
      if (profile_.at(id).persistent)
        state(id) = {Where::kResident, step.recomputes && state(id).host_valid, false, false};
    }
    for (; next < plan_.actions.size() && plan_.actions[next].step == static_cast<int32_t>(i);
         ++next)
      SetStateAtEnd(plan_.actions[next]);
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].where == Where::kResident) Use(footprint({static_cast<int32_t>(i)}));
  }
}

bool IterationRun::RunIteration() {
  result_ = {};
  if (timeline_) timeline_->iteration_start_ns.push_back(now_ns_);
  iteration_start_ns_ = now_ns_;
  next_action_ = 0;
  Use(0);
  OverwriteInputs();
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (!RunStep(static_cast<int32_t>(i))) return false;
  }
  result_.iteration_ns = now_ns_ - iteration_start_ns_;
  return true;
}

void IterationRun::OverwriteInputs() {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (profile_.buffers[i].kind != BufferKind::kInput) continue;
    State& it = states_[i];
    const bool away = (it.where == Where::kOnHost || it.where == Where::kLeaving) && !it.awaited;
    it.host_valid &= away;
  }
}

bool IterationRun::IsSteady(const std::vector<State>& before) const {
  return !engines_.busy(Direction::kToHost) && !engines_.busy(Direction::kToDevice) &&
         to_host_.empty() && to_device_.empty() && states_ == before;
}

bool IterationRun::RunStep(int32_t index) {
  const Step& step = plan_.steps[static_cast<size_t>(index)];
  step_stalls_ = {};
  StartTriggeredPrefetches(index);
  if (!WaitForStart(index, step)) return false;
  BeginStep(step);
  AwaitLaunch();
  const int64_t start_ns = now_ns_ + step_stalls_.launch_ns;
  RunEnginesUntil(start_ns);
  PumpToDevice();
  const int64_t end_ns = start_ns + duration_ns(step);
  RunEnginesUntil(end_ns);
  now_ns_ = end_ns;
  if (step.recomputes) result_.recompute_ns += end_ns - start_ns;
  if (timeline_) {
    timeline_->step_start_ns.push_back(start_ns);
    timeline_->step_end_ns.push_back(end_ns);
    timeline_->step_stalls.push_back(step_stalls_);
  }
  EndStep(step);
  ActAfter(index);
  return true;
}

// R8, R9: the host waited for memory before it launched, or is still mapping.
void IterationRun::AwaitLaunch() {
  if (step_stalls_.memory_ns > 0) step_stalls_.launch_ns = problem_.device.launch_ns;
  step_stalls_.launch_ns = std::max(step_stalls_.launch_ns, host_.ready_ns() - now_ns_);
  result_.stalls.launch_ns += step_stalls_.launch_ns;
}

int64_t IterationRun::duration_ns(const Step& step) const {
  const Operation& operation = profile_.at(step.operation);
  return operation.workspaces.empty()
             ? operation.duration_ns
             : operation.workspaces[static_cast<size_t>(step.workspace)].duration_ns;
}

int64_t IterationRun::WorkspaceBytes(const Step& step) const {
  const Operation& operation = profile_.at(step.operation);
  if (operation.workspaces.empty()) return 0;
  return FootprintOf(problem_,
                     operation.workspaces[static_cast<size_t>(step.workspace)].size_bytes);
}

IterationRun::Blocked IterationRun::BlockReason(const Step& step) const {
  const auto state_of = [&](BufferId id) { return states_[static_cast<size_t>(id.index)]; };
  Blocked blocked = Blocked::kNo;
  for (const BufferId* id = model_.reads_.first(step.operation);
       id != model_.reads_.last(step.operation); ++id) {
    if (state_of(*id).where == Where::kAbsent) return Blocked::kNever;
    if (state_of(*id).where != Where::kResident) blocked = Blocked::kRestore;
  }
  // An overwritten buffer needs no content, but no copy of it may be running.
  for (const BufferId* id = model_.overwrites_.first(step.operation);
       id != model_.overwrites_.last(step.operation); ++id) {
    const State it = state_of(*id);
    if (it.where == Where::kLeaving || it.where == Where::kArriving || it.awaited)
      blocked = Blocked::kRestore;
  }
  if (blocked != Blocked::kNo) return blocked;
  return MissingBytes(step) > free_bytes() ? Blocked::kMemory : Blocked::kNo;
}

int64_t IterationRun::MissingBytes(const Step& step) const {
  int64_t sum_bytes = WorkspaceBytes(step);
  const auto holds = [&](BufferId id) {
    const Where where = states_[static_cast<size_t>(id.index)].where;
    return where != Where::kAbsent && where != Where::kOnHost;
  };
  for (const BufferId* id = model_.overwrites_.first(step.operation);
       id != model_.overwrites_.last(step.operation); ++id)
    sum_bytes += holds(*id) ? 0 : footprint(*id);
  if (step.recomputes) return sum_bytes;
  // Born here, but first touched later.
  for (const BufferId* id = model_.born_.first(step.operation);
       id != model_.born_.last(step.operation); ++id) {
    const bool counted =
        std::find(model_.overwrites_.first(step.operation), model_.overwrites_.last(step.operation),
                  *id) != model_.overwrites_.last(step.operation);
    sum_bytes += counted || holds(*id) ? 0 : footprint(*id);
  }
  return sum_bytes;
}

bool IterationRun::WaitForStart(int32_t index, const Step& step) {
  while (true) {
    const Blocked blocked = BlockReason(step);
    if (blocked == Blocked::kNo) break;
    if (blocked == Blocked::kNever) return Fail(Verdict::kMalformed, index);
    step_wants_memory_ = blocked == Blocked::kMemory;
    PumpToDevice();
    const int64_t next_ns = engines_.NextEndNs();
    if (next_ns == kNeverNs)
      return Fail(
          step_wants_memory_ && to_device_.empty() ? Verdict::kOverBudget : Verdict::kDeadlock,
          index);
    (step_wants_memory_ ? step_stalls_.memory_ns : step_stalls_.restore_ns) += next_ns - now_ns_;
    RunEnginesUntil(next_ns);
  }
  step_wants_memory_ = false;
  result_.stalls.restore_ns += step_stalls_.restore_ns;
  result_.stalls.memory_ns += step_stalls_.memory_ns;
  return true;
}

void IterationRun::GiveMemory(BufferId id) {
  State& it = state(id);
  if (it.where == Where::kResident) return;
  host_.Give(id, free_bytes(),
             it.where == Where::kAbsent ? MappingHost::Content::kNew : MappingHost::Content::kKept);
  it.where = Where::kResident;
  it.ends_on_copy = false;
  Use(footprint(id));
}

void IterationRun::BeginStep(const Step& step) {
  BringToLife(step);
  Use(WorkspaceBytes(step));
}

void IterationRun::BringToLife(const Step& step) {
  for (const BufferId* id = model_.overwrites_.first(step.operation);
       id != model_.overwrites_.last(step.operation); ++id)
    GiveMemory(*id);
  if (step.recomputes) return;
  for (const BufferId* id = model_.born_.first(step.operation);
       id != model_.born_.last(step.operation); ++id) {
    GiveMemory(*id);
    state(*id).host_valid = false;
  }
  for (const BufferId* id = model_.writes_.first(step.operation);
       id != model_.writes_.last(step.operation); ++id)
    state(*id).host_valid = false;
}

void IterationRun::EndStep(const Step& step) {
  if (const int64_t bytes = WorkspaceBytes(step)) {
    host_.Freed(bytes, now_ns_);
    Use(-bytes);
  }
  if (step.recomputes) return;
  for (const BufferId* id = model_.dying_.first(step.operation);
       id != model_.dying_.last(step.operation); ++id)
    Die(*id);
}

void IterationRun::Die(BufferId id) {
  State& it = state(id);
  it.host_valid = false;
  if (it.where == Where::kLeaving || it.where == Where::kArriving) {
    it.ends_on_copy = true;
    return;
  }
  if (it.where == Where::kResident) ReleaseDead(id);
  it.where = Where::kAbsent;
}

void IterationRun::StartTriggeredPrefetches(int32_t index) {
  for (size_t i = next_action_; i < plan_.actions.size() && plan_.actions[i].step == index; ++i) {
    if (plan_.actions[i].kind != ActionKind::kPrefetch) continue;
    State& it = state(plan_.actions[i].buffer);
    if (it.where != Where::kOnHost && it.where != Where::kLeaving) continue;
    it.awaited = true;
    to_device_.Push(plan_.actions[i].buffer);
  }
}

void IterationRun::ActAfter(int32_t index) {
  for (; next_action_ < plan_.actions.size() && plan_.actions[next_action_].step == index;
       ++next_action_) {
    const Action& action = plan_.actions[next_action_];
    if (action.kind == ActionKind::kOffload) Offload(action.buffer);
    if (action.kind == ActionKind::kDrop) Drop(action.buffer);
  }
}

void IterationRun::Offload(BufferId id) {
  State& it = state(id);
  if (it.where != Where::kResident) return;
  if (it.host_valid) {
    Drop(id);
    return;
  }
  it.where = Where::kLeaving;
  to_host_.Push(id);
  PumpToHost();
}

void IterationRun::Drop(BufferId id) {
  State& it = state(id);
  if (it.where != Where::kResident) return;
  it.where = it.host_valid ? Where::kOnHost : Where::kAbsent;
  ReleaseEvicted(id);
}

void IterationRun::PumpToHost() {
  if (engines_.busy(Direction::kToHost) || to_host_.empty()) return;
  engines_.Start(Direction::kToHost, to_host_.head(), profile_.at(to_host_.head()).size_bytes,
                 now_ns_, now_ns_);
  to_host_.Pop();
}

// R5. Only the head may start. A step that waits for memory goes first.
void IterationRun::PumpToDevice() {
  if (step_wants_memory_) return;
  while (!engines_.busy(Direction::kToDevice) && !to_device_.empty()) {
    const BufferId id = to_device_.head();
    State& it = state(id);
    if (it.where == Where::kLeaving) return;
    if (it.where == Where::kOnHost) {
      if (footprint(id) > free_bytes()) return;
      StartPrefetch(id);
    }
    it.awaited = false;
    to_device_.Pop();
  }
}

// R9: not before the host has mapped its memory.
void IterationRun::StartPrefetch(BufferId id) {
  host_.Give(id, free_bytes(), MappingHost::Content::kKept);
  state(id).where = Where::kArriving;
  Use(footprint(id));
  engines_.Start(Direction::kToDevice, id, profile_.at(id).size_bytes, now_ns_,
                 std::max(now_ns_, host_.ready_ns()));
}

void IterationRun::RunEnginesUntil(int64_t time_ns) {
  while (engines_.NextEndNs() <= time_ns) FinishCopy();
  now_ns_ = std::max(now_ns_, time_ns);
}

void IterationRun::FinishCopy() {
  now_ns_ = std::max(now_ns_, engines_.NextEndNs());
  const Direction direction = engines_.FinishNext();
  const BufferId id = engines_.copying(direction);
  State& it = state(id);
  const bool to_host = direction == Direction::kToHost;
  (to_host ? result_.to_host_bytes : result_.to_device_bytes) += profile_.at(id).size_bytes;
  if (timeline_) {
    const CopyTime copy{id, engines_.started_ns(direction), now_ns_};
    (to_host ? timeline_->to_host : timeline_->to_device).push_back(copy);
  }
  if (to_host || it.ends_on_copy) ReleaseEvicted(id);
  it.where = it.ends_on_copy ? Where::kAbsent : to_host ? Where::kOnHost : Where::kResident;
  it.host_valid = (it.host_valid || to_host) && !it.ends_on_copy;
  it.ends_on_copy = false;
  PumpToHost();
  PumpToDevice();
}

void IterationRun::ReleaseEvicted(BufferId id) {
  host_.Left(id, footprint(id), now_ns_);
  Use(-footprint(id));
}

void IterationRun::ReleaseDead(BufferId id) {
  host_.Died(id, footprint(id), now_ns_);
  Use(-footprint(id));
}

void IterationRun::Use(int64_t change_bytes) {
  used_bytes_ += change_bytes;
  result_.peak_bytes = std::max(result_.peak_bytes, used_bytes_);
  if (timeline_ && change_bytes != 0) timeline_->used_bytes.emplace_back(now_ns_, used_bytes_);
}

}  // namespace spillway::scheduler
