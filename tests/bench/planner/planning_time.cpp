#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/prng.h"
#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/bench/planner/figures.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr int32_t kLargestLayers = 5000;
// For the largest case; other load does not affect processor time.
constexpr double kMostCpuMs = 1000;
constexpr int32_t kOperationsPerLayer = 10;  // half of them in backward

Operation Run(OperationType type, Phase phase, std::vector<BufferId> reads,
              std::vector<BufferId> writes, int64_t ns) {
  Operation operation;
  operation.name = "op";
  operation.type = type;
  operation.phase = phase;
  operation.replayable = phase == Phase::kForward;
  operation.reads = std::move(reads);
  operation.writes = std::move(writes);
  operation.duration_ns = ns;
  return operation;
}

// Each layer has an output and a gradient buffer, and five operations each way.
IterationProfile LongChain(int32_t layers) {
  base::Prng random(1);
  const auto below = [&](uint64_t end) { return static_cast<int64_t>(random.Below(end)); };
  IterationProfile profile;
  profile.name = "chain";
  for (int32_t i = 0; i < layers; ++i) {
    Buffer output;
    output.name = "y";
    output.kind = BufferKind::kActivation;
    output.size_bytes = (1 + below(8)) << 20;
    Buffer gradient = output;
    gradient.kind = BufferKind::kGradient;
    profile.buffers.push_back(output);
    profile.buffers.push_back(gradient);
  }
  for (int32_t i = 0; i < layers; ++i) {
    const auto type = below(3) != 0 ? OperationType::kActivation : OperationType::kConvolution;
    std::vector<BufferId> inputs;
    if (i > 0) inputs.push_back({2 * (i - 1)});
    profile.operations.push_back(
        Run(type, Phase::kForward, inputs, {{2 * i}}, 5000 + below(40000)));
    for (int32_t k = 1; k < kOperationsPerLayer / 2; ++k)
      profile.operations.push_back(
          Run(OperationType::kActivation, Phase::kForward, {{2 * i}}, {}, 3000));
  }
  for (int32_t i = layers - 1; i >= 0; --i) {
    std::vector<BufferId> inputs{{2 * i}};
    if (i + 1 < layers) inputs.push_back({2 * (i + 1) + 1});
    profile.operations.push_back(Run(OperationType::kConvolution, Phase::kBackward, inputs,
                                     {{2 * i + 1}}, 8000 + below(60000)));
    for (int32_t k = 1; k < kOperationsPerLayer / 2; ++k)
      profile.operations.push_back(
          Run(OperationType::kActivation, Phase::kBackward, {{2 * i + 1}}, {}, 3000));
  }
  SetLifetimesToTouches(profile);
  return profile;
}

void PrintTime(const IterationProfile& profile, const Problem& problem, double most_cpu_ms,
               Verdicts& verdicts) {
  const std::clock_t cpu_start = std::clock();
  const double start_ms = ElapsedMs(0);
  const StrategyOutcome outcome = FindStrategy(kDefaultStrategy)->MakePlan(problem);
  const double wall_ms = ElapsedMs(start_ms);
  const double cpu_ms = 1000.0 * static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  const Prediction prediction =
      outcome.plan ? CostModel(problem).Predict(*outcome.plan) : Prediction{};
  const bool valid = outcome.plan && prediction.runs() && !ValidatePlan(problem, *outcome.plan);
  std::printf(
      "%-12s %10zu %10zu %12ld %9.0f %9.0f %11.2f  %s\n", profile.name.c_str(),
      profile.buffers.size(), profile.operations.size(), static_cast<long>(outcome.evaluations),
      wall_ms, cpu_ms,
      100.0 * static_cast<double>(prediction.iteration_ns) / static_cast<double>(BusyNs(profile)) -
          100,
      verdicts.Must(valid && cpu_ms < most_cpu_ms,
                    "time: " + std::to_string(profile.operations.size()) + " operations"));
}

}  // namespace

void PrintPlanningTime(Effort effort, Verdicts& verdicts) {
  std::printf(
      "\nTime to plan at half the peak on an H200's link\n%-12s %10s %10s %12s %9s %9s %11s\n",
      "iteration", "buffers", "operations", "evaluations", "wall ms", "cpu ms", "slow-down %");
  for (const int32_t layers : {50, 500, kLargestLayers}) {
    const IterationProfile profile = LongChain(layers);
    Problem problem;
    problem.profile = &profile;
    problem.device = DeviceOf("h200");
    problem.budget_bytes = PeakBytes(profile) / 2;
    PrintTime(profile, problem, layers == kLargestLayers ? kMostCpuMs : HUGE_VAL, verdicts);
    if (effort.quick) return;
  }
}

}  // namespace spillway::papers
