// What strategies work with: one problem, its idle intervals, timetable, recompute chains and model, made once.
//
// One workbench per call of Strategy::plan(), on the caller's thread; not shared. Counts how often the model was asked.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/decisions.h"
#include "scheduler/plan/strategy.h"
#include "scheduler/plan/timetable.h"

namespace spillway::scheduler {

// One treatment per idle interval and one workspace per operation: the form in which plans are compared and improved.
struct Choices {
  std::vector<Decision> decisions;  // by interval; interval == its own index
  std::vector<int32_t> workspaces;  // by operation

  bool operator==(const Choices&) const = default;
};

class Workbench {
 public:
  // The problem must outlive the workbench.
  explicit Workbench(const Problem& problem);

  const Problem& problem() const { return problem_; }
  const IterationProfile& profile() const { return problem_.iteration(); }
  const Timetable& timetable() const { return timetable_; }
  const RecomputeChains& chains() const { return chains_; }
  const std::vector<IdleInterval>& intervals() const { return intervals_; }
  const IdleInterval& interval(int32_t index) const { return intervals_[static_cast<size_t>(index)]; }
  int32_t interval_count() const { return static_cast<int32_t>(intervals_.size()); }
  int64_t footprint_bytes(int32_t interval_index) const {
    return timetable_.footprint_bytes(interval(interval_index).buffer);
  }

  // Everything stays, smallest workspaces.
  Choices NoChoices() const;
  // Choices without a plan of their own change: what chains refuse to rebuild stays.
  Plan Lower(const Choices& choices) const;
  Prediction Price(const Plan& plan, Timeline* timeline = nullptr);
  int64_t evaluations() const { return evaluations_; }

  // What it would cost to run the chain of one interval, all else being present; negative: it cannot be recomputed.
  int64_t ChainNs(int32_t interval_index) const;
  bool LinkCanHide(int32_t interval_index) const;

  StrategyOutcome Finish(std::string_view strategy, const Choices& choices) const;

 private:
  const Problem& problem_;
  Timetable timetable_;
  RecomputeChains chains_;
  std::vector<IdleInterval> intervals_;
  CostModel model_;
  int64_t evaluations_ = 0;
};

// The index of the fastest workspace of an operation that needs at most `most_bytes`; of equals the smallest. The first one
// when none fits; 0 where the operation has none.
int32_t FastestWorkspace(const Operation& operation, int64_t most_bytes);

// Bytes in use during each step if every copy took no time: less than the model will see at worst, and much cheaper to know.
std::vector<int64_t> InstantLoads(const Problem& problem, const Timetable& timetable, const Plan& plan);

// For each operation the fastest workspace that fits into what the plan leaves free there; loads as InstantLoads() of a plan
// with the smallest workspaces.
std::vector<int32_t> WorkspacesThatFit(const Workbench& bench, const Choices& choices);

}  // namespace spillway::scheduler
