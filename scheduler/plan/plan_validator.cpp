#include "scheduler/plan/plan_validator.h"

#include <algorithm>

#include "scheduler/plan/lifetimes.h"

namespace spillway::scheduler {
namespace {

using Offence = std::optional<PlanOffence>;

constexpr int64_t kNothing = -1;

// Versions count a buffer's writes. A rerun must read and produce those of the first run.
struct Content {
  int64_t version = 0;
  int64_t on_device = kNothing;
  int64_t on_host = kNothing;
  bool is_alive = false;
  bool is_to_be_made = false;  // dropped without a host copy: reruns may make it
  OperationId writer{};        // the last one in this iteration
};

struct FirstRun {
  std::vector<int64_t> read;
  std::vector<int64_t> written;
};

class Walk {
 public:
  Walk(const Problem& problem, const Plan& plan)
      : is_live_(problem.is_live),
        profile_(problem.iteration()),
        plan_(plan),
        contents_(profile_.buffers.size()),
        first_runs_(profile_.operations.size()),
        readers_(profile_.buffers.size()),
        lives_(profile_) {
    for (size_t i = 0; i < profile_.operations.size(); ++i) {
      for (BufferId id : profile_.operations[i].reads)
        readers_[static_cast<size_t>(id.index)].push_back({static_cast<int32_t>(i)});
    }
  }

  Offence Run() {
    if (Offence offence = CheckIds()) return offence;
    if (Offence offence = CheckOrder()) return offence;
    Start();
    for (int iteration = 0; iteration < 3; ++iteration) {
      size_t action = 0;
      if (Offence offence = OverwriteInputs()) return offence;
      for (size_t i = 0; i < plan_.steps.size(); ++i) {
        if (Offence offence = WalkStep(static_cast<int32_t>(i), action)) return offence;
      }
      if (Offence offence = CheckNothingLeft()) return offence;
    }
    return std::nullopt;
  }

 private:
  static Offence MakeOffence(PlanFault fault, int32_t step, BufferId buffer, std::string what) {
    return PlanOffence{fault, step, buffer, 0, std::move(what)};
  }
  const std::string& name(BufferId id) const { return profile_.at(id).name; }
  Content& content(BufferId id) { return contents_[static_cast<size_t>(id.index)]; }
  static bool Contains(const std::vector<BufferId>& ids, BufferId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  }

  Offence CheckIds() const {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      const auto at = static_cast<int32_t>(i);
      if (step.operation.index < 0 ||
          step.operation.index >= static_cast<int32_t>(profile_.operations.size()))
        return MakeOffence(PlanFault::kUnknownId, at, {},
                           "a step runs an operation that does not exist");
      const size_t choices = profile_.at(step.operation).workspaces.size();
      if (step.workspace < 0 ||
          (step.workspace > 0 && step.workspace >= static_cast<int32_t>(choices)))
        return MakeOffence(PlanFault::kUnknownId, at, {},
                           "a step uses a workspace that does not exist");
    }
    for (const Action& action : plan_.actions) {
      if (action.step < 0 || action.step >= static_cast<int32_t>(plan_.steps.size()))
        return MakeOffence(PlanFault::kUnknownId, -1, {},
                           "an action is tied to a step that does not exist");
      if (action.buffer.index < 0 ||
          action.buffer.index >= static_cast<int32_t>(profile_.buffers.size()))
        return MakeOffence(PlanFault::kUnknownId, action.step, {},
                           "an action moves a buffer that does not exist");
    }
    return std::nullopt;
  }

  Offence CheckOrder() const {
    int32_t next = 0;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (plan_.steps[i].recomputes) continue;
      if (plan_.steps[i].operation.index != next++)
        return MakeOffence(PlanFault::kStepsIncomplete, static_cast<int32_t>(i), {},
                           "operations are not all there in order");
    }
    if (next != static_cast<int32_t>(profile_.operations.size()))
      return MakeOffence(PlanFault::kStepsIncomplete, -1, {}, "the last operations are missing");
    for (size_t i = 1; i < plan_.actions.size(); ++i) {
      if (plan_.actions[i].step < plan_.actions[i - 1].step)
        return MakeOffence(PlanFault::kActionsOutOfOrder, plan_.actions[i].step,
                           plan_.actions[i].buffer, "actions are not ordered by step");
    }
    for (const Action& action : plan_.actions) {
      if (!profile_.at(action.buffer).movable && LivesAfter(action.buffer, action.step))
        return MakeOffence(PlanFault::kMovesTheUnmovable, action.step, action.buffer,
                           "buffer '" + name(action.buffer) + "' must stay");
    }
    return std::nullopt;
  }

  // Outside its lifetime a buffer exists only as the result of a recomputation.
  bool LivesAfter(BufferId id, int32_t at) const {
    const Buffer& buffer = profile_.at(id);
    int32_t ended = -1;  // the last operation that ran for the first time
    for (int32_t i = 0; i <= at; ++i) {
      if (!plan_.steps[static_cast<size_t>(i)].recomputes) ++ended;
    }
    return buffer.persistent || (buffer.born.index <= ended && ended < buffer.dies.index);
  }

  // Persistent buffers start as the plan leaves them.
  void Start() {
    for (size_t i = 0; i < contents_.size(); ++i) {
      if (!profile_.buffers[i].persistent) continue;
      contents_[i].on_device = 0;
      contents_[i].is_alive = true;
    }
    size_t next = 0;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (BufferId id : profile_.at(plan_.steps[i].operation).writes) {
        if (!profile_.at(id).persistent) continue;
        content(id).on_device = 0;
        if (!plan_.steps[i].recomputes) content(id).on_host = kNothing;
      }
      for (; next < plan_.actions.size() && plan_.actions[next].step == static_cast<int32_t>(i);
           ++next)
        LeaveAtEnd(plan_.actions[next]);
    }
  }

  void LeaveAtEnd(const Action& action) {
    if (!profile_.at(action.buffer).persistent) return;
    Content& it = content(action.buffer);
    it.on_device = action.kind == ActionKind::kPrefetch ? 0 : kNothing;
    if (action.kind == ActionKind::kOffload) it.on_host = 0;
  }

  // They invalidate their host copies.
  Offence OverwriteInputs() {
    for (size_t i = 0; i < contents_.size(); ++i) {
      const Buffer& buffer = profile_.buffers[i];
      if (buffer.kind != BufferKind::kInput || !buffer.persistent) continue;
      if (contents_[i].on_device == kNothing)
        return MakeOffence(PlanFault::kReadsEvicted, 0, {static_cast<int32_t>(i)},
                           "input '" + buffer.name + "' is away when the next one arrives");
      contents_[i].on_host = kNothing;
    }
    return std::nullopt;
  }

  Offence WalkStep(int32_t at, size_t& action) {
    const Step& step = plan_.steps[static_cast<size_t>(at)];
    size_t after = action;
    while (after < plan_.actions.size() && plan_.actions[after].step == at) ++after;
    for (size_t i = action; i < after; ++i) {
      if (plan_.actions[i].kind != ActionKind::kPrefetch) continue;
      if (Offence offence = Fetch(plan_.actions[i])) return offence;
    }
    if (Offence offence = step.recomputes ? Recompute(at, step) : Compute(at, step)) return offence;
    for (; action < after; ++action) {
      if (plan_.actions[action].kind == ActionKind::kPrefetch) continue;
      if (Offence offence = Take(plan_.actions[action])) return offence;
    }
    return std::nullopt;
  }

  Offence Fetch(const Action& action) {
    Content& it = content(action.buffer);
    if (it.on_device == it.version) return std::nullopt;
    if (it.on_host != it.version)
      return MakeOffence(PlanFault::kPrefetchesNothing, action.step, action.buffer,
                         "the host has no content of buffer '" + name(action.buffer) + "'");
    it.on_device = it.version;
    return std::nullopt;
  }

  Offence Take(const Action& action) {
    Content& it = content(action.buffer);
    if (it.on_device == kNothing)
      return MakeOffence(PlanFault::kEvictsNonResident, action.step, action.buffer,
                         "buffer '" + name(action.buffer) + "' is not on the device");
    if (action.kind == ActionKind::kOffload) it.on_host = it.on_device;
    it.on_device = kNothing;
    it.is_to_be_made = it.on_host != it.version;
    return std::nullopt;
  }

  Offence CheckReads(int32_t at, const Operation& operation) {
    for (BufferId id : operation.reads) {
      const Content& it = content(id);
      if (it.on_device != kNothing) continue;
      const bool away = it.on_host == it.version;
      return MakeOffence(away ? PlanFault::kReadsEvicted : PlanFault::kReadsLost, at, id,
                         "operation '" + operation.name + "' reads buffer '" + name(id) +
                             "', which is " + (away ? "on the host" : "gone"));
    }
    return std::nullopt;
  }

  Offence Compute(int32_t at, const Step& step) {
    const Operation& operation = profile_.at(step.operation);
    if (Offence offence = ClearForBirth(at, step.operation)) return offence;
    if (Offence offence = CheckReads(at, operation)) return offence;
    for (BufferId id : operation.presumed_reads) ForgetWhatIsMadeFrom(id);
    FirstRun& first = first_runs_[static_cast<size_t>(step.operation.index)];
    first = {};
    for (BufferId id : operation.reads) first.read.push_back(content(id).version);
    for (BufferId id : operation.writes) {
      if (Offence offence = CheckNotDropped(at, id, "overwritten")) return offence;
      Content& it = content(id);
      it.on_device = ++it.version;
      it.writer = step.operation;
      first.written.push_back(it.version);
    }
    const std::vector<BufferId>& dying = lives_.dies_at[static_cast<size_t>(step.operation.index)];
    for (BufferId id : dying) {
      if (IsStillRecomputable(id)) continue;
      if (Offence offence = CheckNotDropped(at, id, "freed")) return offence;
    }
    for (BufferId id : dying) content(id) = {.version = content(id).version};
    return std::nullopt;
  }

  // The buffer may be written now. What was made from it and is on the device stays as it was.
  void ForgetWhatIsMadeFrom(BufferId input) {
    for (const OperationId user : readers_[static_cast<size_t>(input.index)]) {
      const std::vector<BufferId>& made = profile_.at(user).writes;
      const bool is_there = std::all_of(
          made.begin(), made.end(), [&](BufferId id) { return content(id).on_device != kNothing; });
      if (!is_there) first_runs_[static_cast<size_t>(user.index)] = {};
    }
  }

  // By one run of its writer. The inputs must exist somewhere or be recomputable; a dropped input
  // faces the same check when it ends.
  bool IsStillRecomputable(BufferId id) {
    const OperationId writer = content(id).writer;
    if (writer.index < 0) return false;
    const Operation& operation = profile_.at(writer);
    const FirstRun& first = first_runs_[static_cast<size_t>(writer.index)];
    if (!operation.replayable || Contains(operation.reads, id) ||
        first.read.size() != operation.reads.size())
      return false;
    for (size_t i = 0; i < operation.reads.size(); ++i) {
      const Content& input = content(operation.reads[i]);
      if (!input.is_alive || input.version != first.read[i]) return false;
    }
    return true;
  }

  Offence ClearForBirth(int32_t at, OperationId operation) {
    for (BufferId id : lives_.born_at[static_cast<size_t>(operation.index)]) {
      content(id).is_alive = true;
      if (content(id).on_device == kNothing) continue;
      return MakeOffence(
          PlanFault::kNeverDropped, at, id,
          "buffer '" + name(id) + "' is born while an older one of it is still there");
    }
    return std::nullopt;
  }

  Offence CheckNotDropped(int32_t at, BufferId id, const std::string& what_happens) {
    const bool is_lost = is_live_ && profile_.at(id).kind != BufferKind::kWorkspace;
    if (!is_lost || !content(id).is_to_be_made) return std::nullopt;
    return MakeOffence(PlanFault::kDropsForGood, at, id,
                       "buffer '" + name(id) + "' is dropped, and " + what_happens +
                           " before it is made again: a live job cannot know that");
  }

  Offence Recompute(int32_t at, const Step& step) {
    const Operation& operation = profile_.at(step.operation);
    const std::string again = "operation '" + operation.name + "' cannot run again: ";
    if (!operation.replayable)
      return MakeOffence(PlanFault::kRecomputesForbidden, at, {}, again + "it is not replayable");
    for (BufferId id : operation.writes) {
      if (Contains(operation.reads, id))
        return MakeOffence(PlanFault::kRecomputesForbidden, at, id,
                           again + "it changes '" + name(id) + "' in place");
    }
    if (Offence offence = CheckReads(at, operation)) return offence;
    const FirstRun& first = first_runs_[static_cast<size_t>(step.operation.index)];
    if (first.read.size() != operation.reads.size() ||
        first.written.size() != operation.writes.size())
      return MakeOffence(PlanFault::kRecomputesForbidden, at, {}, again + "it has not run yet");
    for (size_t i = 0; i < operation.reads.size(); ++i) {
      if (content(operation.reads[i]).on_device != first.read[i])
        return MakeOffence(PlanFault::kRecomputesFromChanged, at, operation.reads[i],
                           again + "its input '" + name(operation.reads[i]) + "' has changed");
    }
    for (size_t i = 0; i < operation.writes.size(); ++i) {
      Content& it = content(operation.writes[i]);
      if (it.version != first.written[i])
        return MakeOffence(PlanFault::kRecomputesIntoChanged, at, operation.writes[i],
                           again + "its output '" + name(operation.writes[i]) + "' has changed");
      if (is_live_ && !it.is_alive)
        return MakeOffence(
            PlanFault::kRecomputesIntoFreed, at, operation.writes[i],
            again + "its output '" + name(operation.writes[i]) + "' is not allocated");
      it.on_device = it.version;
      it.is_to_be_made = false;
    }
    return std::nullopt;
  }

  Offence CheckNothingLeft() {
    for (FirstRun& first : first_runs_) first = {};
    const auto end = static_cast<int32_t>(plan_.steps.size()) - 1;
    for (size_t i = 0; i < contents_.size(); ++i) {
      if (Offence offence = CheckNotDropped(end, {static_cast<int32_t>(i)}, "left behind"))
        return offence;
      if (!profile_.buffers[i].persistent && contents_[i].on_device != kNothing)
        return MakeOffence(PlanFault::kNeverDropped, -1, {static_cast<int32_t>(i)},
                           "buffer '" + profile_.buffers[i].name + "' outlives the iteration");
    }
    return std::nullopt;
  }

  const bool is_live_;
  const IterationProfile& profile_;
  const Plan& plan_;
  std::vector<Content> contents_;
  std::vector<FirstRun> first_runs_;
  std::vector<std::vector<OperationId>> readers_;  // by buffer
  const Lifetimes lives_;
};

}  // namespace

std::optional<PlanOffence> ValidatePlan(const Problem& problem, const Plan& plan) {
  return Walk(problem, plan).Run();
}

}  // namespace spillway::scheduler
