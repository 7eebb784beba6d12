// The common data of strategies. One per call of Strategy::MakePlan(), on the caller's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/decisions.h"
#include "scheduler/plan/strategy.h"
#include "scheduler/plan/swap_schedule.h"
#include "scheduler/plan/timetable.h"

namespace spillway::scheduler {

struct Choices {
  std::vector<Decision> decisions;  // by interval, which is its own index
  std::vector<int32_t> workspaces;  // by operation

  bool operator==(const Choices&) const = default;
};

// In operations and intervals visited: some seconds, equal on every machine. The larger limit is
// for problems with a node limit (live jobs) that are not large.
inline constexpr int64_t kMostWork = 120'000'000, kMostWorkWhenAsked = 300'000'000;
inline constexpr int64_t kLargeIteration = 10'000;  // operations + intervals

constexpr bool IsLargeSize(int64_t operations, int64_t intervals) {
  return operations + intervals >= kLargeIteration;
}
bool IsLarge(const Problem& problem);

class Workbench {
 public:
  explicit Workbench(const Problem& problem);

  const Problem& problem() const { return problem_; }
  const IterationProfile& profile() const { return problem_.iteration(); }
  const Timetable& timetable() const { return timetable_; }
  const RecomputeChains& chains() const { return chains_; }
  const std::vector<IdleInterval>& intervals() const { return intervals_; }
  const SwapOrder& swap_order() const { return swap_order_; }
  const IdleInterval& interval(int32_t index) const {
    return intervals_[static_cast<size_t>(index)];
  }
  int32_t interval_count() const { return static_cast<int32_t>(intervals_.size()); }
  int64_t footprint_bytes(int32_t interval_index) const {
    return timetable_.footprint_bytes(interval(interval_index).buffer);
  }

  // Dead content is dropped, but a live job's program may still read it: it is copied unless it can
  // be recomputed.
  bool IsCopied(int32_t index) const { return !chains_.IsRecomputableUntilFree(interval(index)); }

  Choices NoChoices() const;
  // Intervals that chains cannot rebuild stay.
  Plan Lower(const Choices& choices) const;
  // Drops are its only actions: cheaper, and enough for the memory effect of recomputation.
  Plan LowerForLoads(const Choices& choices) const;
  Prediction Price(const Plan& plan, Timeline* timeline = nullptr);
  int64_t evaluations() const { return evaluations_; }
  // Searches then end.
  bool is_spent() const {
    const bool is_asked = problem_.node_limit > 0 && !is_large();
    return work_ >= (is_asked ? kMostWorkWhenAsked : kMostWork);
  }
  bool is_large() const { return IsLargeSize(timetable_.operation_count(), interval_count()); }
  int64_t work() const { return work_; }
  void AddWork(int64_t work) const { work_ += work; }
  // Of one visit to all operations and intervals.
  int64_t size() const { return timetable_.operation_count() + interval_count() + 1; }
  // A bound on every plan: nothing moves and every workspace is granted.
  int64_t fastest_ns() const { return fastest_ns_; }

  // With all other buffers present; negative: not recomputable.
  int64_t ChainNs(int32_t interval_index) const {
    return chains_ns_[static_cast<size_t>(interval_index)];
  }
  int64_t DurationNs(OperationId operation, int32_t workspace) const {
    const Operation& it = profile().at(operation);
    return it.workspaces.empty() ? it.duration_ns
                                 : it.workspaces[static_cast<size_t>(workspace)].duration_ns;
  }
  std::span<const BufferId> BornWith(OperationId operation) const { return born_.At(operation); }
  std::span<const BufferId> DyingWith(OperationId operation) const { return dying_.At(operation); }
  bool IsEvictedBefore(const Choices& choices, BufferId buffer, OperationId before) const;

 private:
  struct Lists {
    std::vector<BufferId> buffers;
    std::vector<int32_t> begins;  // one more than operations
    std::span<const BufferId> At(OperationId operation) const {
      const auto i = static_cast<size_t>(operation.index);
      return std::span(buffers).subspan(static_cast<size_t>(begins[i]),
                                        static_cast<size_t>(begins[i + 1] - begins[i]));
    }
  };
  static Lists ListsBy(const IterationProfile& profile, OperationId Buffer::*when);

  int64_t MeasureChain(const IdleInterval& interval) const;

  const Problem& problem_;
  Timetable timetable_;
  RecomputeChains chains_;
  std::vector<IdleInterval> intervals_;
  const SwapOrder swap_order_;
  std::vector<int32_t> first_of_;  // by buffer: its first interval, plus the end
  std::vector<int64_t> chains_ns_;
  const Lists born_, dying_;
  CostModel model_;
  int64_t evaluations_ = 0;
  mutable int64_t work_ = 0;
  int64_t fastest_ns_ = 0;
};

class ChoosingStrategy : public Strategy {
 public:
  ChoosingStrategy(std::string_view name, std::string_view summary)
      : name_(name), summary_(summary) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }
  StrategyOutcome MakePlan(const Problem& problem) const override;
  StrategyOutcome MakeRunnablePlan(const Problem& problem) const override;

  // Nullopt if it finds no choices that could fit.
  virtual std::optional<Choices> Choose(Workbench& bench) const = 0;

 private:
  StrategyOutcome OutcomeOf(const Workbench& bench, const std::optional<Choices>& choices) const;

  const std::string_view name_, summary_;
};

// The smaller on a tie. The first if none fits.
int32_t FastestWorkspace(const Operation& operation, int64_t most_bytes);

// If copies took no time: a cheap lower estimate of the model's.
std::vector<int64_t> InstantLoads(const Workbench& bench, const Plan& plan);

std::vector<int32_t> WorkspacesThatFit(const Workbench& bench, const Choices& choices);

}  // namespace spillway::scheduler
