// What a live job's planning costs: the function that the job calls, on long iterations.
#include <cmath>
#include <cstdio>
#include <ctime>

#include "scheduler/networks/devices.h"
#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/held_inputs.h"
#include "scheduler/plan/job_planner.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/live_iterations.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr double kMostCpuMs = 2000;  // of 10,000 operations; other load does not affect it
constexpr int64_t kOperations[] = {1'000, 3'000, 5'000, 10'000, 20'000};

DeviceModel LiveDevice() {
  const auto device = networks::FindDevice("h200");
  DeviceModel model = device->model;
  model.chunk_bytes = 2 << 20;
  model.mapping = device->mapping;
  model.mapping.piece_bytes = 32 << 20;
  return model;
}

double CpuMs() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double SlowDownPercent(int64_t ns, const IterationProfile& profile) {
  return 100.0 * static_cast<double>(ns) / static_cast<double>(BusyNs(profile)) - 100;
}

struct Means {
  int64_t copied = 0, dropped = 0, repeated = 0;
};

Means MeansOf(const Plan& plan) {
  Means means;
  for (const Action& action : plan.actions) {
    if (action.kind == ActionKind::kOffload) ++means.copied;
    if (action.kind == ActionKind::kDrop && action.reason != Reason::kChainTemporary)
      ++means.dropped;
  }
  for (const Step& step : plan.steps) means.repeated += step.recomputes ? 1 : 0;
  return means;
}

void PrintPlan(const LiveIteration& iteration, int64_t percent, double most_cpu_ms,
               Verdicts& verdicts) {
  const IterationProfile& profile = iteration.pattern->profile;
  const PlanRequest request{.pattern = iteration.pattern,
                            .device = LiveDevice(),
                            .budget_bytes = PeakBytes(profile) / 100 * percent,
                            .strategy = FindStrategy(kDefaultStrategy)};
  const double start_ms = CpuMs();
  const PlanAnswer answer = PlanFor(request);
  const double cpu_ms = CpuMs() - start_ms;
  const Means means = MeansOf(answer.plan);
  std::printf("%-22s %6zu %7zu %5ld %% %8.0f %9.2f %9.2f %8ld %8ld %8ld  %s\n",
              iteration.name.c_str(), profile.operations.size(),
              IdleIntervals(profile, int64_t{1} << 20).size(), static_cast<long>(percent), cpu_ms,
              answer.live ? SlowDownPercent(answer.live->predicted_ns(), profile) : NAN,
              answer.live ? SlowDownPercent(answer.lower_bound_ns, profile) : NAN,
              static_cast<long>(means.copied), static_cast<long>(means.dropped),
              static_cast<long>(means.repeated),
              verdicts.Must(answer.live && cpu_ms < most_cpu_ms,
                            "live: " + iteration.name + " at " + std::to_string(percent) + " %"));
  std::fflush(stdout);
}

}  // namespace

void PrintLiveTime(Effort effort, Verdicts& verdicts) {
  std::printf(
      "\nTime to plan for a live job on an H200 (modelled; recorded ones: simulated)\n"
      "%-22s %6s %7s %7s %8s %9s %9s %8s %8s %8s\n",
      "iteration", "ops", "idle", "budget", "cpu ms", "slower %", "bound %", "copied", "dropped",
      "repeated");
  if (effort.quick) {
    PrintPlan(RecordedPyTorch("vit_b_16", 10'000), 50, HUGE_VAL, verdicts);
    return;
  }
  for (const int64_t operations : kOperations) {
    const double most_cpu_ms = operations == 10'000 ? kMostCpuMs : HUGE_VAL;
    for (const LiveIteration& iteration :
         {DeepGpt2(operations), DeepResNet(operations), RecordedPyTorch("vit_b_16", operations)}) {
      for (const int64_t percent : {75, 50, 25})
        PrintPlan(iteration, percent, most_cpu_ms, verdicts);
    }
  }
}

}  // namespace spillway::papers
