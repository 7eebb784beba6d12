// The slow-down at shares of the peak, beside a simple hybrid planner's in an independent model.
#include <cstdio>

#include "base/units.h"
#include "scheduler/networks/catalog.h"
#include "scheduler/networks/training_step.h"
#include "scheduler/plan/lower_bound.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/judge.h"
#include "tests/bench/planner/paper_figures.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

double Percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

DeviceModel SymmetricLink(int64_t bytes_per_second, int64_t latency_ns) {
  DeviceModel device;
  device.to_host_bytes_per_second = device.to_device_bytes_per_second = bytes_per_second;
  device.to_host_both_bytes_per_second = device.to_device_both_bytes_per_second = bytes_per_second;
  device.copy_latency_ns = latency_ns;
  return device;
}

// Durations as in the reference: one algorithm per operation.
IterationProfile PlainProfile(const networks::LayerGraph& graph,
                              const networks::ComputeRates& rates) {
  networks::TrainingStep step =
      networks::MakeTrainingStep(graph, networks::UpdatePlace::kAfterGradient);
  for (networks::OperationWork& work : step.work) work.algorithms.clear();
  networks::SetDurations(step, rates);
  return std::move(step.profile);
}

std::string SlowDown(const std::optional<int64_t>& time_ns, int64_t busy) {
  if (!time_ns) return "none";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", Percent(*time_ns - busy, busy));
  return text;
}

}  // namespace

void PrintHybrid(Effort effort, Verdicts& verdicts) {
  std::printf(
      "\nSlow-down at a share of the peak, per cent (modelled): the reference's simple hybrid, "
      "ours, our "
      "lower bound\n"
      "%-18s %5s %10s %8s %8s\n",
      "", "share", "hybrid", "ours", "bound");
  for (const PaperFigure& figure : PaperSection("hybrid")) {
    const std::string device = figure.row.substr(0, figure.row.find(' '));
    const std::string network = figure.row.substr(figure.row.find(' ') + 1);
    const IterationProfile profile =
        PlainProfile(*networks::MakeNetwork(network, PaperNumber("hybrid batch", network, "batch")),
                     {PaperNumber("hybrid device", device, "flops"),
                      PaperNumber("hybrid device", device, "memory"),
                      PaperNumber("hybrid device", "launch", "ns")});
    Problem problem;
    problem.profile = &profile;
    problem.device = SymmetricLink(PaperNumber("hybrid device", device, "link"),
                                   PaperNumber("hybrid device", "latency", "ns"));
    problem.budget_bytes = base::scale(PeakBytes(profile), std::stoll(figure.column), 100);
    const LowerBound bound = FindTightBound(problem);
    const std::optional<int64_t> time_ns = OwnPlannedTime(problem);
    const int64_t busy = BusyNs(profile);
    const bool found = figure.figure != "not found";
    const bool beaten =
        time_ns ? !found || Percent(*time_ns - busy, busy) <= std::stod(figure.figure) + 0.05
                : !bound.possible;
    std::printf("%-18s %4s%% %10s %8s %8s  %s\n", figure.row.c_str(), figure.column.c_str(),
                figure.figure.c_str(), SlowDown(time_ns, busy).c_str(),
                bound.possible ? SlowDown(bound.iteration_ns, busy).c_str() : "impossible",
                verdicts.Must(beaten, "hybrid: " + figure.row + " at " + figure.column + " %"));
    std::fflush(stdout);
    if (effort.quick) break;
  }
}

}  // namespace spillway::papers
