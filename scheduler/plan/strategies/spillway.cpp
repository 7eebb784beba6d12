#include "scheduler/plan/strategies/spillway.h"

#include <algorithm>
#include <utility>

#include "base/prng.h"
#include "base/units.h"
#include "scheduler/plan/strategies/annealing.h"
#include "scheduler/plan/strategies/improvement.h"
#include "scheduler/plan/strategies/registry.h"
#include "scheduler/plan/strategies/relief.h"

namespace spillway::scheduler {
namespace {

// Evaluations x (operations + intervals), if the problem sets no limit.
constexpr int64_t kWorkForSearch = 3'000'000;
constexpr int64_t kApproachSteps = 6;
constexpr int64_t kSmallProblem = 400;  // few large intervals: combined changes matter more

struct Effort {
  size_t improved_starts = 1;
  int64_t for_each_start = 0;
  int64_t renewals = 0, for_each_renewal = 0;
};

constexpr int64_t kWorkForRenewals = 40'000;  // renewals x (operations + intervals)
constexpr int64_t kLeastRenewals = 4, kMostRenewals = 40, kRenewalsOfLarge = 1;
// Single changes try too few of a long iteration's thousands of choices, so renewals pay more.
// ResNet-152 twice over at a quarter of its peak: 15 instead of 22 per cent in about the same time.
constexpr int64_t kLongIteration = 3'000, kEvaluationsForLong = 1'000;

Effort EffortFor(const Workbench& bench, int64_t evaluations) {
  if (bench.is_large())
    return {.improved_starts = 1,
            .for_each_start = evaluations / 32,
            .renewals = kRenewalsOfLarge,
            .for_each_renewal = 1};
  if (bench.size() >= kLongIteration && evaluations >= kEvaluationsForLong)
    return {.improved_starts = 1,
            .for_each_start = evaluations / 20,
            .renewals = evaluations / 200,
            .for_each_renewal = 400};
  const int64_t renewals =
      std::clamp(kWorkForRenewals / bench.size(), kLeastRenewals, kMostRenewals);
  return {.improved_starts = 3,
          .for_each_start = evaluations / 3,
          .renewals = std::min(renewals, evaluations / 90),
          .for_each_renewal = 120};
}

int64_t EvaluationsFor(const Workbench& bench) {
  if (bench.problem().node_limit > 0) return bench.problem().node_limit;
  return kWorkForSearch / bench.size();
}

class Starts {
 public:
  explicit Starts(Workbench& bench) : bench_(bench) {}

  void Consider(Choices choices) {
    const Prediction prediction = bench_.Price(bench_.Lower(choices));
    if (prediction.runs()) runs_.push_back({std::move(choices), prediction});
  }

  void ConsiderVariants(const Choices& choices) {
    Consider(choices);
    Choices retimed = choices;
    SetTriggers(bench_, retimed);
    if (retimed != choices) Consider(retimed);
    retimed.workspaces = WorkspacesThatFit(bench_, retimed);
    if (retimed.workspaces != choices.workspaces) Consider(std::move(retimed));
  }

  bool empty() const { return runs_.empty(); }

  std::vector<Priced> Best(size_t most) {
    std::stable_sort(runs_.begin(), runs_.end(), [](const Priced& a, const Priced& b) {
      return RunsBetter(a.prediction, b.prediction);
    });
    runs_.resize(std::min(runs_.size(), most));
    return std::move(runs_);
  }

 private:
  Workbench& bench_;
  std::vector<Priced> runs_;
};

std::vector<int32_t> FastestPossible(const Workbench& bench) {
  std::vector<int32_t> workspaces;
  for (const Operation& operation : bench.profile().operations) {
    int64_t touched_bytes = 0;
    for (const BufferId id : operation.reads)
      touched_bytes += bench.timetable().footprint_bytes(id);
    for (const BufferId id : operation.writes) {
      if (std::find(operation.reads.begin(), operation.reads.end(), id) == operation.reads.end())
        touched_bytes += bench.timetable().footprint_bytes(id);
    }
    const int64_t room_bytes = (bench.problem().budget_bytes - touched_bytes) / 10 * 9;
    workspaces.push_back(FastestWorkspace(operation, room_bytes));
  }
  return workspaces;
}

// Only the plan's prediction shows which is better.
std::vector<SwapCosts> SwapCostsOf(const Workbench& bench) {
  if (!bench.problem().device.mapping.AnyIsPaid()) return {SwapCosts::kCopies};
  return {SwapCosts::kCopies, SwapCosts::kCopiesAndCalls};
}

void ConsiderReliefs(Workbench& bench, const Choices& from, SwapCosts costs, Starts& starts) {
  using Waits = SwapSchedule::Waits;
  constexpr struct {
    Waits waits;
    int64_t copy_discount, permille;
    bool of_large, of_large_with_calls;
  } kTrials[] = {{Waits::kNever, 64, 1000, false, false},
                 {Waits::kNever, 64, 970, true, true},
                 {Waits::kNever, 4, 990, true, false},
                 {Waits::kAsNeeded, 2, 1000, true, true},
                 {Waits::kAsNeeded, 1, 970, false, false}};
  const bool with_calls = costs == SwapCosts::kCopiesAndCalls;
  for (const auto& trial : kTrials) {
    if (bench.is_large() && !(with_calls ? trial.of_large_with_calls : trial.of_large)) continue;
    const ReliefOptions options{
        .target_bytes = base::scale(bench.problem().budget_bytes, trial.permille, 1000),
        .waits = trial.waits,
        .copy_discount = trial.copy_discount,
        .swap_costs = costs};
    if (const std::optional<Choices> choices = Relieve(bench, options, from))
      starts.ConsiderVariants(*choices);
  }
}

// Choices that are good with more memory are mostly good with less.
std::optional<Choices> Approach(const Workbench& real, Choices from, SwapCosts costs,
                                int64_t evaluations) {
  const Problem& problem = real.problem();
  const int64_t peak_bytes = real.timetable().peak_bytes();
  std::optional<Choices> choices = std::move(from);
  for (int64_t step = 1; step <= kApproachSteps; ++step) {
    Problem easier = problem;
    easier.budget_bytes =
        peak_bytes - base::scale(peak_bytes - problem.budget_bytes, step, kApproachSteps);
    Workbench bench(easier);
    bench.AddWork(real.work());
    choices = Relieve(bench, {.target_bytes = easier.budget_bytes, .swap_costs = costs},
                      std::move(*choices));
    if (choices) {
      Priced start{*choices, bench.Price(bench.Lower(*choices))};
      if (start.prediction.runs())
        choices = Improve(bench, std::move(start), evaluations / kApproachSteps).choices;
    }
    real.AddWork(bench.work() - real.work());
    if (!choices) return std::nullopt;
  }
  return choices;
}

class Renewal {
 public:
  Renewal(Workbench& bench, Priced start)
      : bench_(bench),
        swap_costs_(SwapCostsOf(bench)),
        best_(std::move(start)),
        random_(bench.problem().seed) {}

  Priced Run(const Effort& effort) {
    for (int64_t i = 0; i < effort.renewals && !bench_.is_spent(); ++i)
      Attempt(swap_costs_[static_cast<size_t>(i) % swap_costs_.size()], effort.for_each_renewal);
    return std::move(best_);
  }

 private:
  void Attempt(SwapCosts costs, int64_t evaluations) {
    if (best_.prediction.iteration_ns <= bench_.fastest_ns()) return;
    constexpr int64_t kDiscounts[] = {64, 16, 4, 1};
    const ReliefOptions options{.target_bytes = bench_.problem().budget_bytes,
                                .copy_discount = kDiscounts[random_.Below(std::size(kDiscounts))],
                                .swap_costs = costs};
    std::optional<Choices> choices = Relieve(bench_, options, WithRandomRemovals());
    if (!choices) return;
    Priced attempt{std::move(*choices), {}};
    attempt.prediction = bench_.Price(bench_.Lower(attempt.choices));
    if (!attempt.prediction.runs()) return;
    if (attempt.prediction.iteration_ns > best_.prediction.iteration_ns / 50 * 51) return;
    attempt = Improve(bench_, std::move(attempt), evaluations);
    if (RunsBetter(attempt.prediction, best_.prediction)) best_ = std::move(attempt);
  }

  // Either a few choices everywhere, or most that end within one part of the iteration.
  Choices WithRandomRemovals() {
    Choices choices = best_.choices;
    const auto count = static_cast<uint64_t>(bench_.timetable().operation_count());
    const bool everywhere = random_.Below(2) == 0;
    const uint64_t percent = everywhere ? 5 + random_.Below(30) : 80;
    const uint64_t first = random_.Below(count), length = count / 10 + random_.Below(count / 4 + 1);
    for (Decision& decision : choices.decisions) {
      const auto end = static_cast<uint64_t>(bench_.interval(decision.interval).to.index);
      const bool within = everywhere || (end + count - first) % count < length;
      if (within && random_.Below(100) < percent) decision.treatment = Treatment::kStay;
    }
    return choices;
  }

  Workbench& bench_;
  const std::vector<SwapCosts> swap_costs_;
  Priced best_;
  base::Prng random_;
};

class OwnStrategy : public ChoosingStrategy {
 public:
  using ChoosingStrategy::ChoosingStrategy;

  std::optional<Choices> Choose(Workbench& bench) const override {
    Starts starts(bench);
    ConsiderOwn(bench, starts);
    ConsiderPapers(bench, starts);
    if (starts.empty()) return std::nullopt;
    return Refined(bench, starts).choices;
  }

 private:
  static void ConsiderPapers(Workbench& bench, Starts& starts) {
    for (const ChoosingStrategy* strategy : PaperStrategies()) {
      std::optional<Choices> choices = strategy->Choose(bench);
      if (choices && bench.is_large())
        starts.Consider(std::move(*choices));
      else if (choices)
        starts.ConsiderVariants(*choices);
    }
  }

  static void ConsiderOwn(Workbench& bench, Starts& starts) {
    const Choices none = bench.NoChoices();
    starts.ConsiderVariants(none);
    Choices fast = none;
    fast.workspaces = FastestPossible(bench);
    const bool has_workspaces = fast != none;
    if (has_workspaces) starts.ConsiderVariants(fast);
    for (const bool quick_kernels : {false, true}) {
      if (quick_kernels && !has_workspaces) return;
      const Choices& from = quick_kernels ? fast : none;
      for (const SwapCosts costs : SwapCostsOf(bench)) {
        ConsiderReliefs(bench, from, costs, starts);
        if (bench.is_large() && starts.empty()) return;
        if (bench.is_large()) continue;
        if (const auto choices =
                Approach(bench, from, costs, EvaluationsFor(bench) / (has_workspaces ? 6 : 4)))
          starts.ConsiderVariants(*choices);
      }
    }
  }

  static Priced Refined(Workbench& bench, Starts& starts) {
    const int64_t evaluations = EvaluationsFor(bench);
    const Effort effort = EffortFor(bench, evaluations);
    std::optional<Priced> best;
    for (Priced& start : starts.Best(effort.improved_starts)) {
      Priced improved = Improve(bench, std::move(start), effort.for_each_start);
      if (!best || RunsBetter(improved.prediction, best->prediction)) best = std::move(improved);
    }
    best = Renewal(bench, std::move(*best)).Run(effort);
    if (bench.is_large()) return std::move(*best);
    Priced annealed = Annealed(bench, *best, evaluations / 4, Refits::kNo);
    if (bench.size() >= kSmallProblem) return annealed;
    Priced refitted = Annealed(bench, std::move(*best), evaluations * 2, Refits::kYes);
    return RunsBetter(refitted.prediction, annealed.prediction) ? refitted : annealed;
  }

  static Priced Annealed(Workbench& bench, Priced start, int64_t evaluations, Refits refits) {
    base::Prng random(bench.problem().seed);
    return Improve(bench, Anneal(bench, std::move(start), evaluations, refits, random),
                   EvaluationsFor(bench) / 4);
  }
};

}  // namespace

const ChoosingStrategy& SpillwayStrategy() {
  static const auto& strategy = *new OwnStrategy(
      "spillway", "Spillway: all means together, by relief per cost, improved on the model");
  return strategy;
}

}  // namespace spillway::scheduler
