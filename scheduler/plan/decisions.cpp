#include "scheduler/plan/decisions.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/units.h"

namespace spillway::scheduler {
namespace {

enum class Content : uint8_t { kPresent, kOnHost, kGone };

// Numbers grouped by index, in insertion order.
class Buckets {
 public:
  explicit Buckets(size_t count) : begins_(count + 1, 0) {}

  void Add(size_t index, int32_t value) {
    added_.emplace_back(index, value);
    ++begins_[index + 1];
  }
  // Call after the last Add and before the first At.
  void Close() {
    for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    values_.resize(added_.size());
    std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
    for (const auto& [index, value] : added_) values_[next[index]++] = value;
  }
  std::span<int32_t> At(size_t index) {
    return std::span(values_).subspan(begins_[index], begins_[index + 1] - begins_[index]);
  }
  std::span<const int32_t> At(size_t index) const {
    return std::span(values_).subspan(begins_[index], begins_[index + 1] - begins_[index]);
  }

 private:
  std::vector<std::pair<size_t, int32_t>> added_;
  std::vector<size_t> begins_;
  std::vector<int32_t> values_;
};

class PlanWriter {
 public:
  PlanWriter(const Problem& problem, const RecomputeChains& chains,
             const std::vector<IdleInterval>& intervals, const std::vector<Decision>& decisions,
             const std::vector<int32_t>& workspaces)
      : problem_(problem),
        profile_(problem.iteration()),
        chains_(chains),
        intervals_(intervals),
        decisions_(decisions),
        workspaces_(workspaces),
        leaving_(profile_.operations.size()),
        ending_(profile_.operations.size()),
        arriving_(profile_.operations.size()),
        decisions_of_(profile_.buffers.size()),
        fetched_(decisions.size(), false),
        content_(profile_.buffers.size(), Content::kPresent),
        open_(profile_.buffers.size(), -1),
        marks_(profile_.operations.size()) {}

  Lowering Write() {
    SortByOperation();
    result_.plan.steps.reserve(profile_.operations.size());
    for (size_t i = 0; i < profile_.operations.size(); ++i)
      WriteOperation(OperationId{static_cast<int32_t>(i)});
    std::stable_sort(result_.plan.actions.begin(), result_.plan.actions.end(),
                     [](const Action& a, const Action& b) { return a.step < b.step; });
    return std::move(result_);
  }

 private:
  const IdleInterval& interval_of(int32_t decision) const {
    return intervals_[static_cast<size_t>(decisions_[static_cast<size_t>(decision)].interval)];
  }

  void SortByOperation() {
    std::vector<int32_t> late_swaps, late_decisions;
    for (size_t i = 0; i < decisions_.size(); ++i) {
      const auto index = static_cast<int32_t>(i);
      const Decision& decision = decisions_[i];
      const IdleInterval& interval = interval_of(index);
      if (decision.treatment == Treatment::kStay) continue;
      if (interval.wraps && decision.treatment == Treatment::kRecompute && !interval.content_dead) {
        result_.refused.push_back(decision.interval);  // no chain can run before the iteration
        continue;
      }
      leaving_.Add(At(interval.from), index);
      decisions_of_.Add(At(interval.buffer), index);
      if (interval.wraps) StartAway(index);
      if (interval.content_dead) continue;
      if (decision.treatment == Treatment::kRecompute) {
        ending_.Add(At(interval.to), index);
      } else if (decision.prefetch_at.index >= 0) {
        Arrive(index, decision.prefetch_at);
      } else {
        late_swaps.push_back(decision.interval);
        late_decisions.push_back(index);
      }
    }
    const std::vector<OperationId> triggers = LatestTriggers(problem_, intervals_, late_swaps);
    for (size_t i = 0; i < triggers.size(); ++i) Arrive(late_decisions[i], triggers[i]);
    for (Buckets* buckets : {&leaving_, &ending_, &arriving_, &decisions_of_}) buckets->Close();
    for (size_t i = 0; i < profile_.operations.size(); ++i) SortByNeed(arriving_.At(i));
  }

  void Arrive(int32_t decision, OperationId trigger) {
    arriving_.Add(At(trigger), decision);
    const IdleInterval& interval = interval_of(decision);
    const bool before_the_end = interval.wraps && trigger > interval.from;
    if (before_the_end) content_[At(interval.buffer)] = Content::kPresent;
  }

  bool Drops(int32_t decision) const {
    if (interval_of(decision).content_dead)
      return chains_.IsRecomputableUntilFree(interval_of(decision));
    return decisions_[static_cast<size_t>(decision)].treatment == Treatment::kRecompute;
  }

  // At the iteration's start a wrapping interval's content is evicted, unless its prefetch is
  // triggered before the end.
  void StartAway(int32_t decision) {
    const IdleInterval& interval = interval_of(decision);
    content_[At(interval.buffer)] = Drops(decision) ? Content::kGone : Content::kOnHost;
  }

  void SortByNeed(std::span<int32_t> arrivals) const {
    if (arrivals.size() < 2) return;
    const auto distance = [&](int32_t decision) {
      const IdleInterval& interval = interval_of(decision);
      const auto count = static_cast<int64_t>(profile_.operations.size());
      return interval.wraps ? interval.to.index + count : int64_t{interval.to.index};
    };
    std::stable_sort(arrivals.begin(), arrivals.end(),
                     [&](int32_t a, int32_t b) { return distance(a) < distance(b); });
  }

  void WriteOperation(OperationId id) {
    for (int32_t decision : arriving_.At(At(id)))
      content_[At(interval_of(decision).buffer)] = Content::kPresent;
    WriteChain(id);
    const int32_t step = AppendStep(id, false);
    for (int32_t decision : arriving_.At(At(id))) {
      if (fetched_[static_cast<size_t>(decision)]) continue;
      Act(ActionKind::kPrefetch, interval_of(decision).buffer, first_step_at_, decision);
    }
    for (BufferId written : profile_.at(id).writes) content_[At(written)] = Content::kPresent;
    for (int32_t decision : leaving_.At(At(id))) TakeAway(decision, step);
    first_step_at_ = step + 1;
  }

  void TakeAway(int32_t decision, int32_t step) {
    const IdleInterval& interval = interval_of(decision);
    const bool drops = Drops(decision);
    if (drops && !interval.content_dead && !IsRestorable(interval)) {
      result_.refused.push_back(decisions_[static_cast<size_t>(decision)].interval);
      return;
    }
    Act(drops ? ActionKind::kDrop : ActionKind::kOffload, interval.buffer, step, decision);
    content_[At(interval.buffer)] = drops ? Content::kGone : Content::kOnHost;
    open_[At(interval.buffer)] = decision;
  }

  // From resident or host content.
  bool IsRestorable(const IdleInterval& interval) {
    const auto stays_until = [&](BufferId buffer) {
      return chains_.LivesBefore(buffer, interval.to) && !IsDroppedOver(buffer, interval.to);
    };
    return !chains_.Find({interval.buffer}, interval.to, stays_until, marks_).empty();
  }

  bool IsDroppedOver(BufferId buffer, OperationId id) const {
    const std::span<const int32_t> decisions = decisions_of_.At(At(buffer));
    return std::any_of(decisions.begin(), decisions.end(), [&](int32_t decision) {
      const IdleInterval& interval = interval_of(decision);
      if (!Drops(decision)) return false;
      if (interval.wraps) return id > interval.from || id <= interval.to;
      return interval.from < id && id <= interval.to;
    });
  }

  void WriteChain(OperationId id) {
    std::vector<BufferId> targets;
    for (int32_t decision : ending_.At(At(id))) {
      if (content_[At(interval_of(decision).buffer)] == Content::kGone)
        targets.push_back(interval_of(decision).buffer);
    }
    if (targets.empty()) return;
    const auto present = [&](BufferId buffer) {
      return content_[At(buffer)] != Content::kGone && chains_.LivesBefore(buffer, id);
    };
    const std::vector<OperationId> chain = chains_.Find(targets, id, present, marks_);
    FetchInputs(chain);
    WriteChainSteps(id, targets, chain);
  }

  // They stay resident from then on.
  void FetchInputs(const std::vector<OperationId>& chain) {
    for (OperationId operation : chain) {
      for (BufferId read : profile_.at(operation).reads) {
        const int32_t decision = open_[At(read)];
        if (content_[At(read)] != Content::kOnHost || decision < 0) continue;
        Act(ActionKind::kPrefetch, read, static_cast<int32_t>(result_.plan.steps.size()), decision);
        content_[At(read)] = Content::kPresent;
        fetched_[static_cast<size_t>(decision)] = true;
      }
    }
  }

  // A rebuilt buffer stays if it is a target, or if its own decision, still open, says so.
  bool Stays(BufferId buffer, OperationId id, const std::vector<BufferId>& targets) const {
    if (std::find(targets.begin(), targets.end(), buffer) != targets.end()) return true;
    const int32_t decision = open_[At(buffer)];
    if (decision < 0 || content_[At(buffer)] != Content::kGone) return false;
    return decisions_[static_cast<size_t>(decision)].keep_when_rebuilt &&
           !interval_of(decision).content_dead && interval_of(decision).to > id;
  }

  void WriteChainSteps(OperationId id, const std::vector<BufferId>& targets,
                       const std::vector<OperationId>& chain) {
    std::map<BufferId, int32_t> last_use;  // of buffers that only the chain needs
    std::vector<BufferId> kept;
    for (OperationId operation : chain) {
      const int32_t step = AppendStep(operation, true);
      for (BufferId read : profile_.at(operation).reads) {
        if (auto use = last_use.find(read); use != last_use.end()) use->second = step;
      }
      for (BufferId written : profile_.at(operation).writes) {
        if (content_[At(written)] == Content::kPresent && chains_.LivesBefore(written, id))
          continue;
        if (Stays(written, id, targets))
          kept.push_back(written);
        else
          last_use[written] = step;
      }
    }
    for (const auto& [buffer, step] : last_use)
      result_.plan.actions.push_back({ActionKind::kDrop, buffer, step, Reason::kChainTemporary});
    for (BufferId buffer : kept) content_[At(buffer)] = Content::kPresent;
  }

  void Act(ActionKind kind, BufferId buffer, int32_t step, int32_t decision) {
    result_.plan.actions.push_back(
        {kind, buffer, step, decisions_[static_cast<size_t>(decision)].reason});
  }

  int32_t AppendStep(OperationId id, bool recomputes) {
    const int32_t workspace = workspaces_.empty() ? 0 : workspaces_[At(id)];
    result_.plan.steps.push_back({id, recomputes, workspace});
    return static_cast<int32_t>(result_.plan.steps.size()) - 1;
  }

  const Problem& problem_;
  const IterationProfile& profile_;
  const RecomputeChains& chains_;
  const std::vector<IdleInterval>& intervals_;
  const std::vector<Decision>& decisions_;
  const std::vector<int32_t>& workspaces_;
  // Decisions by operation: after it the buffer leaves, before it the content must exist, with it
  // the prefetch starts.
  Buckets leaving_, ending_, arriving_;
  Buckets decisions_of_;       // by buffer
  std::vector<bool> fetched_;  // by decision: a chain prefetched it early
  std::vector<Content> content_;
  std::vector<int32_t> open_;  // by buffer: the last decision that evicted it
  RecomputeChains::Marks marks_;
  int32_t first_step_at_ = 0;  // the first step of the current operation, or of its chain
  Lowering result_;
};

}  // namespace

std::vector<OperationId> LatestTriggers(const Problem& problem,
                                        const std::vector<IdleInterval>& intervals,
                                        const std::vector<int32_t>& swaps) {
  if (swaps.empty()) return {};
  const IterationProfile& profile = problem.iteration();
  const auto count = static_cast<int32_t>(profile.operations.size());
  std::vector<int64_t> start_ns(static_cast<size_t>(count) * 2 + 1, 0);  // two iterations
  for (size_t i = 0; i + 1 < start_ns.size(); ++i)
    start_ns[i + 1] = start_ns[i] + profile.operations[i % static_cast<size_t>(count)].duration_ns;
  const int64_t rate = base::scale(problem.device.to_device_bytes_per_second,
                                   problem.device.link_share_permille, 1000);

  std::vector<size_t> order(swaps.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto interval_at = [&](size_t i) -> const IdleInterval& {
    return intervals[static_cast<size_t>(swaps[i])];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return interval_at(a).to > interval_at(b).to; });

  // The second round accounts for copies that spill into the preceding iteration.
  const int64_t iteration_ns = start_ns[static_cast<size_t>(count)];
  std::vector<OperationId> triggers(swaps.size());
  int64_t free_until_ns = start_ns.back();
  for (int round = 0; round < 2; ++round) {
    if (round == 1) free_until_ns = std::min(free_until_ns + iteration_ns, start_ns.back());
    for (size_t i : order) {
      const IdleInterval& interval = interval_at(i);
      const int64_t deadline_ns = start_ns[static_cast<size_t>(interval.to.index + count)];
      const int64_t copy_ns = base::transfer_ns(profile.at(interval.buffer).size_bytes, rate) +
                              problem.device.copy_latency_ns;
      free_until_ns = std::min(free_until_ns, deadline_ns) - copy_ns;
      const auto after = std::upper_bound(start_ns.begin(), start_ns.end(), free_until_ns);
      const int32_t last_start =
          std::max<int32_t>(0, static_cast<int32_t>(after - start_ns.begin()) - 1);
      const int32_t earliest = interval.from.index + 1 + (interval.wraps ? 0 : count);
      triggers[i].index = std::clamp(last_start, earliest, interval.to.index + count) % count;
    }
  }
  return triggers;
}

Lowering LowerDecisions(const Problem& problem, const RecomputeChains& chains,
                        const std::vector<IdleInterval>& intervals,
                        const std::vector<Decision>& decisions,
                        const std::vector<int32_t>& workspaces) {
  return PlanWriter(problem, chains, intervals, decisions, workspaces).Write();
}

}  // namespace spillway::scheduler
