#include "scheduler/plan/strategies/spillway.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "scheduler/plan/strategies/improvement.h"
#include "scheduler/plan/strategies/registry.h"
#include "scheduler/plan/strategies/relief.h"

namespace spillway::scheduler {
namespace {

constexpr int64_t kWorkForSearch =
    3'000'000;  // evaluations x (operations + intervals), when the problem sets no limit
constexpr size_t kImprovedStarts = 3;
constexpr int64_t kLargeProblem = 20'000;  // operations + intervals: fewer starts are considered

int64_t SizeOf(const Workbench& bench) {
  return bench.timetable().operation_count() + bench.interval_count() + 1;
}

int64_t EvaluationsFor(const Workbench& bench) {
  if (bench.problem().node_limit > 0) return bench.problem().node_limit;
  return kWorkForSearch / SizeOf(bench);
}

// What is considered, as long as it runs.
class Starts {
 public:
  explicit Starts(Workbench& bench) : bench_(bench) {}

  void Consider(Choices choices) {
    const Prediction prediction = bench_.Price(bench_.Lower(choices));
    if (prediction.runs()) runs_.push_back({std::move(choices), prediction});
  }

  // As proposed, with its prefetches timed anew, and with the fastest workspaces that fit.
  void ConsiderVariants(const Choices& choices) {
    Consider(choices);
    if (SizeOf(bench_) > kLargeProblem) return;
    Choices retimed = choices;
    SetTriggers(bench_, retimed);
    if (retimed != choices) Consider(retimed);
    retimed.workspaces = WorkspacesThatFit(bench_, retimed);
    if (retimed.workspaces != choices.workspaces) Consider(std::move(retimed));
  }

  bool empty() const { return runs_.empty(); }

  std::vector<Priced> Best(size_t most) {
    std::stable_sort(runs_.begin(), runs_.end(),
                     [](const Priced& a, const Priced& b) { return RunsBetter(a.prediction, b.prediction); });
    runs_.resize(std::min(runs_.size(), most));
    return std::move(runs_);
  }

 private:
  Workbench& bench_;
  std::vector<Priced> runs_;
};

void ConsiderReliefs(Workbench& bench, Starts& starts) {
  using Waits = SwapSchedule::Waits;
  constexpr struct {
    Waits waits;
    int64_t copy_discount, permille;
  } kTrials[] = {{Waits::kNever, 64, 1000},
                 {Waits::kNever, 64, 970},
                 {Waits::kNever, 4, 990},
                 {Waits::kAsNeeded, 2, 1000},
                 {Waits::kAsNeeded, 1, 970}};
  for (const auto& trial : kTrials) {
    const ReliefOptions options{
        .target_bytes = base::scale(bench.problem().budget_bytes, trial.permille, 1000),
        .waits = trial.waits,
        .copy_discount = trial.copy_discount};
    if (const std::optional<Choices> choices = Relieve(bench, options, bench.NoChoices()))
      starts.ConsiderVariants(*choices);
    if (SizeOf(bench) > kLargeProblem) break;
  }
}

class OwnStrategy : public ChoosingStrategy {
 public:
  using ChoosingStrategy::ChoosingStrategy;

  std::optional<Choices> Choose(Workbench& bench) const override {
    Starts starts(bench);
    starts.ConsiderVariants(bench.NoChoices());
    if (starts.empty()) ConsiderReliefs(bench, starts);
    for (const ChoosingStrategy* strategy : PaperStrategies()) {
      if (const std::optional<Choices> choices = strategy->Choose(bench)) starts.ConsiderVariants(*choices);
    }
    if (starts.empty()) return std::nullopt;
    const size_t improved_starts = SizeOf(bench) > kLargeProblem ? 1 : kImprovedStarts;
    const int64_t evaluations = EvaluationsFor(bench) / static_cast<int64_t>(improved_starts);
    std::optional<Priced> best;
    for (Priced& start : starts.Best(improved_starts)) {
      Priced improved = Improve(bench, std::move(start), evaluations);
      if (!best || RunsBetter(improved.prediction, best->prediction)) best = std::move(improved);
    }
    return best->choices;
  }
};

}  // namespace

const ChoosingStrategy& SpillwayStrategy() {
  static const OwnStrategy strategy(
      "spillway", "Spillway: all means together, by relief per cost, improved on the model");
  return strategy;
}

}  // namespace spillway::scheduler
