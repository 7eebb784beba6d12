// DELTA's figures beside ours on the A100: the largest batch relative to the framework's, the saved
// memory, and its cost.
#include <cstdio>

#include "base/units.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/judge.h"
#include "tests/bench/planner/modelled.h"
#include "tests/bench/planner/paper_figures.h"
#include "tests/bench/planner/search.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr const char* kDevice = "a100";
constexpr const char* kNetworks[] = {"resnet50", "resnet101", "bert_base"};
constexpr int64_t kMostBatch = 65536, kBatchStep = 16;
constexpr int kShares[] = {90, 80, 70, 60, 50, 40, 30};

std::optional<int64_t> DeltaTime(const Problem& problem) {
  return PlannedTime(*FindStrategy("delta"), problem);
}

std::string Text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string SlowDown(const Modelled& it, const std::optional<int64_t>& time_ns) {
  return time_ns ? Text(it.SlowDownPercent(*time_ns)) : "-";
}

// The framework frees a buffer after its last use and moves nothing.
int64_t FrameworkBatch(std::string_view network) {
  return LargestMultiple(kBatchStep, kMostBatch, [&](int64_t batch_size) {
    return Modelled(network, kDevice, batch_size).peak_bytes() <= CapacityOf(kDevice);
  });
}

// In quarters of the framework's.
template <class Runs>
double BatchFactor(std::string_view network, int64_t framework_batch, Runs runs) {
  const int64_t largest =
      LargestMultiple((framework_batch + 3) / 4, kMostBatch, [&](int64_t batch_size) {
        return runs(Modelled(network, kDevice, batch_size).WithBudget(CapacityOf(kDevice)));
      });
  return static_cast<double>(largest) / static_cast<double>(framework_batch);
}

void PrintBatch(const std::string& network, int64_t framework_batch, Verdicts& verdicts) {
  const double theirs = BatchFactor(network, framework_batch, [](const Problem& problem) {
    return DeltaTime(problem).has_value();
  });
  const double ours = BatchFactor(network, framework_batch, AnyPlanRuns);
  const PaperFigure* paper = FindPaperFigure("delta", network, "batch factor");
  std::printf(
      "%-12s %9ld %9s %9.2f %9.2f  %s\n", network.c_str(), static_cast<long>(framework_batch),
      paper != nullptr ? paper->figure.c_str() : "-", theirs, ours,
      paper != nullptr
          ? verdicts.Must(ours >= std::stod(paper->figure), "delta: largest batch of " + network)
          : verdicts.NotAtHand());
  std::fflush(stdout);
}

void PrintSlowDowns(const std::string& network, int64_t framework_batch) {
  const Modelled it(network, kDevice, framework_batch);
  std::printf("%-12s %-6s", network.c_str(), "DELTA");
  for (const int share : kShares)
    std::printf(
        " %9s",
        SlowDown(it, DeltaTime(it.WithBudget(base::scale(it.peak_bytes(), share, 100)))).c_str());
  std::printf("\n%-12s %-6s", "", "ours");
  for (const int share : kShares) {
    std::printf(
        " %9s",
        SlowDown(it, OwnPlannedTime(it.WithBudget(base::scale(it.peak_bytes(), share, 100))))
            .c_str());
    std::fflush(stdout);
  }
  std::printf("\n");
}

}  // namespace

void PrintDelta(Effort effort, Verdicts& verdicts) {
  std::printf(
      "\nDELTA on the A100 (modelled). Of the paper, the abstract's figures are at hand; its "
      "tables II to IV "
      "are not\n");
  std::printf(
      "largest batch over the framework's, which frees after the last use and moves nothing\n");
  std::printf("%-12s %9s %9s %9s %9s\n", "network", "framework", "paper", "its rule", "ours");
  for (const char* network : kNetworks) {
    PrintBatch(network, FrameworkBatch(network), verdicts);
    if (effort.quick) return;
  }
  std::printf(
      "slow-down in per cent at shares of the peak, framework's batch (paper: it saves %s %% of "
      "memory)\n%-19s",
      PaperText("delta", "all", "memory saved %").c_str(), "");
  for (const int share : kShares) std::printf(" %8d%%", share);
  std::printf("\n");
  for (const char* network : kNetworks) PrintSlowDowns(network, FrameworkBatch(network));
}

}  // namespace spillway::papers
