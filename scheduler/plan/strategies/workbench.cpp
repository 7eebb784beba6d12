#include "scheduler/plan/strategies/workbench.h"

#include <algorithm>
#include <utility>

#include "scheduler/plan/strategies/repair.h"

namespace spillway::scheduler {

bool IsLarge(const Problem& problem) {
  const auto operations = static_cast<int64_t>(problem.iteration().operations.size());
  const auto intervals = IdleIntervals(problem.iteration(), problem.min_movable_bytes).size();
  return IsLargeSize(operations, static_cast<int64_t>(intervals));
}

Workbench::Workbench(const Problem& problem)
    : problem_(problem),
      timetable_(problem),
      chains_(problem),
      intervals_(IdleIntervals(problem.iteration(), problem.min_movable_bytes)),
      swap_order_(intervals_),
      first_of_(problem.iteration().buffers.size() + 1, 0),
      born_(ListsBy(problem.iteration(), &Buffer::born)),
      dying_(ListsBy(problem.iteration(), &Buffer::dies)),
      model_(problem) {
  for (const IdleInterval& it : intervals_) {
    ++first_of_[static_cast<size_t>(it.buffer.index) + 1];
    chains_ns_.push_back(MeasureChain(it));
  }
  for (size_t i = 1; i < first_of_.size(); ++i) first_of_[i] += first_of_[i - 1];
  for (const Operation& operation : problem.iteration().operations) {
    const int32_t fastest = FastestWorkspace(operation, kMostBytes);
    fastest_ns_ += operation.workspaces.empty()
                       ? operation.duration_ns
                       : operation.workspaces[static_cast<size_t>(fastest)].duration_ns;
  }
}

Workbench::Lists Workbench::ListsBy(const IterationProfile& profile, OperationId Buffer::*when) {
  Lists lists;
  lists.begins.assign(profile.operations.size() + 1, 0);
  for (const Buffer& buffer : profile.buffers) {
    if (!buffer.persistent) ++lists.begins[static_cast<size_t>((buffer.*when).index) + 1];
  }
  for (size_t i = 1; i < lists.begins.size(); ++i) lists.begins[i] += lists.begins[i - 1];
  std::vector<int32_t> next = lists.begins;
  lists.buffers.resize(static_cast<size_t>(lists.begins.back()));
  for (size_t i = 0; i < profile.buffers.size(); ++i) {
    const Buffer& buffer = profile.buffers[i];
    if (buffer.persistent) continue;
    int32_t& at = next[static_cast<size_t>((buffer.*when).index)];
    lists.buffers[static_cast<size_t>(at++)] = {static_cast<int32_t>(i)};
  }
  return lists;
}

Choices Workbench::NoChoices() const {
  Choices choices;
  choices.decisions.resize(intervals_.size());
  for (size_t i = 0; i < intervals_.size(); ++i)
    choices.decisions[i].interval = static_cast<int32_t>(i);
  choices.workspaces.assign(profile().operations.size(), 0);
  return choices;
}

Plan Workbench::Lower(const Choices& choices) const {
  AddWork(size());
  std::vector<Decision> taken;
  for (const Decision& decision : choices.decisions) {
    if (decision.treatment != Treatment::kStay) taken.push_back(decision);
  }
  return LowerDecisions(problem_, chains_, intervals_, taken, choices.workspaces).plan;
}

Plan Workbench::LowerForLoads(const Choices& choices) const {
  AddWork(size());
  std::vector<Decision> taken;
  for (const Decision& decision : choices.decisions) {
    if (decision.treatment == Treatment::kStay) continue;
    taken.push_back(decision);
    taken.back().prefetch_at = interval(decision.interval).to;
  }
  Plan plan = LowerDecisions(problem_, chains_, intervals_, taken, choices.workspaces).plan;
  std::erase_if(plan.actions,
                [](const Action& action) { return action.kind != ActionKind::kDrop; });
  return plan;
}

Prediction Workbench::Price(const Plan& plan, Timeline* timeline) {
  ++evaluations_;
  AddWork(size());
  return model_.Predict(plan, timeline);
}

int64_t Workbench::MeasureChain(const IdleInterval& interval) const {
  if (interval.wraps || interval.content_dead) return -1;
  const auto present = [&](BufferId id) {
    return id != interval.buffer && chains_.LivesBefore(id, interval.to);
  };
  int64_t sum_ns = -1;
  for (const OperationId id : chains_.Find({interval.buffer}, interval.to, present))
    sum_ns = std::max<int64_t>(sum_ns, 0) + timetable_.duration_ns(id.index);
  return sum_ns;
}

bool Workbench::IsEvictedBefore(const Choices& choices, BufferId buffer, OperationId before) const {
  const int32_t end = first_of_[static_cast<size_t>(buffer.index) + 1];
  for (int32_t i = first_of_[static_cast<size_t>(buffer.index)]; i < end; ++i) {
    if (choices.decisions[static_cast<size_t>(i)].treatment == Treatment::kStay) continue;
    const IdleInterval& it = interval(i);
    const bool within =
        it.wraps ? before > it.from || before <= it.to : it.from < before && before <= it.to;
    if (within) return true;
  }
  return false;
}

StrategyOutcome ChoosingStrategy::OutcomeOf(const Workbench& bench,
                                            const std::optional<Choices>& choices) const {
  StrategyOutcome outcome;
  outcome.evaluations = bench.evaluations();
  if (!choices) {
    outcome.plan =
        base::Error{"no choice of what moves and what is recomputed keeps within the budget"};
    return outcome;
  }
  outcome.plan = bench.Lower(*choices);
  outcome.plan->strategy = name_;
  return outcome;
}

StrategyOutcome ChoosingStrategy::MakePlan(const Problem& problem) const {
  Workbench bench(problem);
  const std::optional<Choices> choices = Choose(bench);
  return OutcomeOf(bench, choices);
}

StrategyOutcome ChoosingStrategy::MakeRunnablePlan(const Problem& problem) const {
  Workbench bench(problem);
  std::optional<Choices> choices = Choose(bench);
  choices = Repair(bench, choices ? std::move(*choices) : bench.NoChoices());
  return OutcomeOf(bench, choices);
}

int32_t FastestWorkspace(const Operation& operation, int64_t most_bytes) {
  int32_t best = 0;
  for (size_t i = 1; i < operation.workspaces.size(); ++i) {
    const WorkspaceChoice& choice = operation.workspaces[i];
    if (choice.size_bytes > most_bytes) continue;
    if (choice.duration_ns < operation.workspaces[static_cast<size_t>(best)].duration_ns)
      best = static_cast<int32_t>(i);
  }
  return best;
}

namespace {

class InstantWalk {
 public:
  InstantWalk(const Workbench& bench, const Plan& plan)
      : bench_(bench),
        profile_(bench.profile()),
        timetable_(bench.timetable()),
        plan_(plan),
        resident_(profile_.buffers.size(), 0) {
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      if (profile_.buffers[i].persistent) Bring({static_cast<int32_t>(i)});
    }
    for (const Action& action : plan.actions) {
      if (profile_.at(action.buffer).persistent) Act(action);
    }
  }

  std::vector<int64_t> Walk() {
    std::vector<int64_t> loads;
    loads.reserve(plan_.steps.size());
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      loads.push_back(WalkStep(static_cast<int32_t>(i)));
    return loads;
  }

 private:
  int64_t WalkStep(int32_t index) {
    const Step& step = plan_.steps[static_cast<size_t>(index)];
    const Operation& operation = profile_.at(step.operation);
    const size_t first_action = next_action_;
    for (; next_action_ < plan_.actions.size() && plan_.actions[next_action_].step == index;
         ++next_action_) {
      if (plan_.actions[next_action_].kind == ActionKind::kPrefetch)
        Bring(plan_.actions[next_action_].buffer);
    }
    for (const BufferId id : operation.writes) Bring(id);
    for (const BufferId id : operation.reads) Bring(id);
    if (!step.recomputes) {
      for (const BufferId id : bench_.BornWith(step.operation)) Bring(id);
    }
    int64_t load_bytes = used_bytes_;
    if (!operation.workspaces.empty())
      load_bytes += operation.workspaces[static_cast<size_t>(step.workspace)].size_bytes;
    if (!step.recomputes) {
      for (const BufferId id : bench_.DyingWith(step.operation)) TakeAway(id);
    }
    for (size_t i = first_action; i < next_action_; ++i) {
      if (plan_.actions[i].kind != ActionKind::kPrefetch) TakeAway(plan_.actions[i].buffer);
    }
    return load_bytes;
  }

  void Act(const Action& action) {
    if (action.kind == ActionKind::kPrefetch)
      Bring(action.buffer);
    else
      TakeAway(action.buffer);
  }

  void Bring(BufferId id) {
    if (resident_[static_cast<size_t>(id.index)]) return;
    resident_[static_cast<size_t>(id.index)] = 1;
    used_bytes_ += timetable_.footprint_bytes(id);
  }

  void TakeAway(BufferId id) {
    if (!resident_[static_cast<size_t>(id.index)]) return;
    resident_[static_cast<size_t>(id.index)] = 0;
    used_bytes_ -= timetable_.footprint_bytes(id);
  }

  const Workbench& bench_;
  const IterationProfile& profile_;
  const Timetable& timetable_;
  const Plan& plan_;
  std::vector<uint8_t> resident_;  // by buffer; bytes, because they are read so often
  size_t next_action_ = 0;
  int64_t used_bytes_ = 0;
};

}  // namespace

std::vector<int64_t> InstantLoads(const Workbench& bench, const Plan& plan) {
  return InstantWalk(bench, plan).Walk();
}

std::vector<int32_t> WorkspacesThatFit(const Workbench& bench, const Choices& choices) {
  Choices smallest = choices;
  smallest.workspaces.assign(choices.workspaces.size(), 0);
  const Plan plan = bench.Lower(smallest);
  const std::vector<int64_t> loads = InstantLoads(bench, plan);
  std::vector<int64_t> highest(choices.workspaces.size(), 0);  // by operation, over all its steps
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    int64_t& load = highest[static_cast<size_t>(plan.steps[i].operation.index)];
    load = std::max(load, loads[i]);
  }
  std::vector<int32_t> workspaces(choices.workspaces.size(), 0);
  for (size_t i = 0; i < workspaces.size(); ++i) {
    const Operation& operation = bench.profile().operations[i];
    if (operation.workspaces.empty()) continue;
    const int64_t free_bytes =
        bench.problem().budget_bytes - highest[i] + operation.workspaces.front().size_bytes;
    const int64_t chunk_bytes = bench.problem().device.chunk_bytes;
    workspaces[i] = FastestWorkspace(operation, free_bytes / chunk_bytes * chunk_bytes);
  }
  return workspaces;
}

}  // namespace spillway::scheduler
