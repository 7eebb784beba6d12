// What strategies work with: one problem, its idle intervals, timetable, recompute chains and
// model, made once.
//
// One workbench per call of Strategy::MakePlan(), on the caller's thread; not shared. Counts how
// often the model was asked.
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

// One treatment per idle interval and one workspace per operation: the form in which plans are
// compared and improved.
struct Choices {
  std::vector<Decision> decisions;  // by interval; interval == its own index
  std::vector<int32_t> workspaces;  // by operation

  bool operator==(const Choices&) const = default;
};

// What one plan may take, in operations and intervals looked at: some seconds on any iteration, the
// same on every machine. More where the problem says how many evaluations it is worth, as a live
// job's does, and is not large.
inline constexpr int64_t kMostWork = 120'000'000, kMostWorkWhenAsked = 300'000'000;
inline constexpr int64_t kLargeIteration = 20'000;  // operations + intervals

class Workbench {
 public:
  // The problem must outlive the workbench.
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

  // Whether its swap takes the link's time. What is dead is dropped; but a live job, whose program
  // may still read it, copies what it cannot make again.
  bool IsCopied(int32_t index) const { return !chains_.MayLeaveForGood(interval(index)); }

  // Everything stays, smallest workspaces.
  Choices NoChoices() const;
  // Choices without a plan of their own change: what chains refuse to rebuild stays.
  Plan Lower(const Choices& choices) const;
  // The same with drops as its only actions: what recomputation alone does to memory. Cheaper, as
  // no copy needs its time.
  Plan LowerForLoads(const Choices& choices) const;
  Prediction Price(const Plan& plan, Timeline* timeline = nullptr);
  int64_t evaluations() const { return evaluations_; }
  // Searches end when it is spent; what was found by then counts.
  bool is_spent() const {
    const bool is_asked = problem_.node_limit > 0 && !is_large();
    return work_ >= (is_asked ? kMostWorkWhenAsked : kMostWork);
  }
  bool is_large() const { return size() > kLargeIteration; }
  int64_t work() const { return work_; }
  // For looks at everything that neither lower nor price.
  void AddWork(int64_t work) const { work_ += work; }
  // Operations and intervals: what one look costs.
  int64_t size() const { return timetable_.operation_count() + interval_count() + 1; }
  // The iteration with nothing moved and every workspace granted: no plan is faster.
  int64_t fastest_ns() const { return fastest_ns_; }

  // What it would cost to run the chain of one interval, all else being present; negative: it
  // cannot be recomputed.
  int64_t ChainNs(int32_t interval_index) const {
    return chains_ns_[static_cast<size_t>(interval_index)];
  }
  int64_t DurationNs(OperationId operation, int32_t workspace) const {
    const Operation& it = profile().at(operation);
    return it.workspaces.empty() ? it.duration_ns
                                 : it.workspaces[static_cast<size_t>(workspace)].duration_ns;
  }
  // Buffers that are born with an operation, and that die with it; persistent ones are in neither.
  std::span<const BufferId> BornWith(OperationId operation) const { return born_.At(operation); }
  std::span<const BufferId> DyingWith(OperationId operation) const { return dying_.At(operation); }
  // Has a choice taken the buffer away (and not yet back) when the operation is about to run?
  bool IsTaken(const Choices& choices, BufferId buffer, OperationId before) const;

 private:
  // Lists by operation, one after another.
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
  std::vector<int32_t> first_of_;  // by buffer: its first interval; one more at the end
  std::vector<int64_t> chains_ns_;
  const Lists born_, dying_;
  CostModel model_;
  int64_t evaluations_ = 0;
  mutable int64_t work_ = 0;
  int64_t fastest_ns_ = 0;
};

// A strategy that thinks in choices per idle interval, as all of them do.
class ChoosingStrategy : public Strategy {
 public:
  ChoosingStrategy(std::string_view name, std::string_view summary)
      : name_(name), summary_(summary) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }
  StrategyOutcome MakePlan(const Problem& problem) const override;
  StrategyOutcome MakeRunnablePlan(const Problem& problem) const override;

  // Nothing, when it finds none that could fit.
  virtual std::optional<Choices> Choose(Workbench& bench) const = 0;

 private:
  StrategyOutcome OutcomeOf(const Workbench& bench, const std::optional<Choices>& choices) const;

  const std::string_view name_, summary_;
};

// The index of the fastest workspace of an operation that needs at most `most_bytes`; of equals the
// smallest. The first one when none fits; 0 where the operation has none.
int32_t FastestWorkspace(const Operation& operation, int64_t most_bytes);

// Bytes in use during each step if every copy took no time: less than the model will see at worst,
// and much cheaper to know.
std::vector<int64_t> InstantLoads(const Workbench& bench, const Plan& plan);

// For each operation the fastest workspace that fits into what the plan leaves free there; loads as
// InstantLoads() of a plan with the smallest workspaces.
std::vector<int32_t> WorkspacesThatFit(const Workbench& bench, const Choices& choices);

}  // namespace spillway::scheduler
