#include <algorithm>
#include <cstdio>

#include "scheduler/plan/strategies/registry.h"
#include "scheduler/plan/strategies/relief.h"
#include "tests/bench/planner/cases.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/hidden_swaps.h"
#include "tests/bench/planner/swap_bound.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr double kMostPointsFromBound = 2;

double PercentBelow(double bytes, double peak) { return 100 * (1 - bytes / peak); }

// Tries smaller and smaller budgets, and judges all resulting swaps alike.
double BestScoreBytes(const Problem& problem, const Workbench& bench) {
  auto best = static_cast<double>(bench.timetable().peak_bytes());
  for (const ChoosingStrategy* strategy : PaperStrategies()) {
    if (!strategy->name().starts_with("autoswap-")) continue;
    for (int percent = 95; percent >= 30; percent -= 1) {
      Problem tighter = problem;
      tighter.budget_bytes = bench.timetable().peak_bytes() / 100 * percent;
      Workbench other(tighter);
      const std::optional<Choices> choices = strategy->Choose(other);
      std::vector<bool> swapped;
      for (const Decision& decision : choices->decisions)
        swapped.push_back(decision.treatment == Treatment::kSwap);
      SwapSchedule schedule(bench.timetable(), bench.intervals(), bench.swap_order());
      schedule.Arrange(swapped);
      const std::vector<int64_t>& loads = schedule.LoadBytes();
      best = std::min(best, static_cast<double>(*std::max_element(loads.begin(), loads.end())));
    }
  }
  return best;
}

// In per cent, at a budget equal to the swaps' peak.
double ModelledSlowDown(Problem problem, const HiddenSwaps& swaps) {
  problem.budget_bytes = swaps.peak_bytes;
  Workbench bench(problem);
  Choices choices = bench.NoChoices();
  for (size_t i = 0; i < swaps.swapped.size(); ++i) {
    if (swaps.swapped[i]) choices.decisions[i].treatment = Treatment::kSwap;
  }
  SetTriggers(bench, choices);
  const Prediction prediction = bench.Price(bench.Lower(choices));
  if (!prediction.runs()) return -1;
  return 100.0 * static_cast<double>(prediction.iteration_ns) /
             static_cast<double>(bench.timetable().iteration_ns()) -
         100;
}

void PrintRow(const AutoSwapCase& row, Effort effort, Verdicts& verdicts) {
  const Modelled it = row.Model();
  const Problem problem = it.WithBudget(0);
  const Workbench bench(problem);
  const auto peak = static_cast<double>(bench.timetable().peak_bytes());
  const double start_ms = ElapsedMs(0);
  const HiddenSwaps ours =
      LowestHiddenPeak(bench, static_cast<int64_t>(0.3 * peak), effort.quick ? 9'000 : 180'000);
  const double time_ms = ElapsedMs(start_ms);
  const double bound =
      LeastPeakBytes(bench.timetable(), bench.intervals(), effort.quick ? 50 : 2500);
  const auto reached = static_cast<double>(ours.peak_bytes);
  const double points = 100 * (reached - bound) / peak;
  std::printf("%-16s %9.1f %7.1f %11.1f %8.1f %8.1f %8.1f %11.2f %9.0f  %s\n", row.network.c_str(),
              peak / 1048576, PercentBelow(row.reduced_mb, row.load_mb),
              PercentBelow(BestScoreBytes(problem, bench), peak), PercentBelow(reached, peak),
              PercentBelow(bound, peak), points, ModelledSlowDown(problem, ours), time_ms,
              effort.quick
                  ? "(too quick to judge)"
                  : verdicts.Must(points <= kMostPointsFromBound, "autoswap: " + row.network));
  std::fflush(stdout);
}

}  // namespace

void PrintAutoSwap(Effort effort, Verdicts& verdicts) {
  std::printf(
      "\nAutoSwap table II: peak load taken off without overhead, per cent (CIFAR-10, batch "
      "100)\n");
  std::printf(
      "durations scaled to the paper's iteration times, link to the paper's ratio; bound by "
      "Lagrangian "
      "relaxation\n");
  std::printf("%-16s %9s %7s %11s %8s %8s %8s %11s %9s\n", "network", "peak MiB", "paper",
              "best score", "ours", "bound", "distance", "slow-down %", "time ms");
  for (const AutoSwapCase& row : AutoSwapCases()) {
    PrintRow(row, effort, verdicts);
    if (effort.quick) break;
  }
}

}  // namespace spillway::papers
