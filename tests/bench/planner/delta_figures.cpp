// DELTA's figures beside ours on the A100: the largest batch, the saved memory, and its cost.
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

// Table II: a batch's memory, against the framework's. The batch's modelled peak is the paper's
// baseline.
void PrintMemory(const char* network, Verdicts& verdicts) {
  constexpr double kMega = 1e6;
  const double before = PaperDecimal("delta table 2", network, "baseline MB");
  const double after = PaperDecimal("delta table 2", network, "DELTA MB");
  const int64_t batch_size = LargestMultiple(1, kMostBatch, [&](int64_t batch) {
    return static_cast<double>(Modelled(network, kDevice, batch).peak_bytes()) <= before * kMega;
  });
  const Modelled it(network, kDevice, batch_size);
  const int64_t ours =
      SmallestFrom(it.least_bytes(), it.peak_bytes(), it.peak_bytes() / 100,
                   [&](int64_t budget_bytes) { return AnyPlanRuns(it.WithBudget(budget_bytes)); });
  const double share = static_cast<double>(ours) / static_cast<double>(it.peak_bytes());
  std::printf(
      "%-12s paper %8.0f MB to %8.0f (-%.1f %%)  ours, batch %ld: %8.0f to %8.0f (-%.1f %%)  %s\n",
      network, before, after, 100 - 100 * after / before, static_cast<long>(batch_size),
      static_cast<double>(it.peak_bytes()) / kMega, static_cast<double>(ours) / kMega,
      100 - 100 * share,
      verdicts.Must(share <= after / before, "delta: table II, " + std::string(network)));
  std::fflush(stdout);
}

// Tables III and IV: the paper's largest batch, in the memory of its A100.
void PrintLargestBatches(Verdicts& verdicts) {
  constexpr int64_t kPapersBytes = int64_t{80} << 30;
  for (const PaperFigure& figure : PaperSection("delta table 3")) {
    const Modelled it(figure.row, kDevice, std::stoll(figure.figure));
    const Problem problem = it.WithBudget(kPapersBytes);
    const std::optional<int64_t> ours = OwnPlannedTime(problem);
    std::printf(
        "%-12s batch %s in 80 GB: slower than with unlimited memory by %s %% (DELTA's rule %s)  "
        "%s\n",
        figure.row.c_str(), figure.figure.c_str(), SlowDown(it, ours).c_str(),
        SlowDown(it, DeltaTime(problem)).c_str(),
        verdicts.Must(ours.has_value(), "delta: " + figure.source + ", " + figure.row));
    std::fflush(stdout);
  }
}

}  // namespace

void PrintDelta(Effort effort, Verdicts& verdicts) {
  std::printf("\nDELTA on the A100 (modelled)\n");
  std::printf(
      "largest batch over the framework's, which frees after the last use and moves nothing\n");
  std::printf("%-12s %9s %9s %9s %9s\n", "network", "framework", "paper", "its rule", "ours");
  for (const char* network : kNetworks) {
    PrintBatch(network, FrameworkBatch(network), verdicts);
    if (effort.quick) return;
  }
  std::printf("table II, memory\n");
  for (const char* network : {"resnet101", "bert_base"}) PrintMemory(network, verdicts);
  std::printf("tables III and IV\n");
  PrintLargestBatches(verdicts);
  std::printf(
      "slow-down in per cent at shares of the peak, framework's batch (paper: it saves %s %% of "
      "memory)\n%-19s",
      PaperText("delta", "all", "memory saved %").c_str(), "");
  for (const int share : kShares) std::printf(" %8d%%", share);
  std::printf("\n");
  for (const char* network : kNetworks) PrintSlowDowns(network, FrameworkBatch(network));
}

}  // namespace spillway::papers
