// What fits on SuperNeurons' K40c under our plans: peak batches and the deepest ResNet.
#include <algorithm>
#include <cstdio>

#include "scheduler/networks/catalog.h"
#include "scheduler/networks/devices.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/judge.h"
#include "tests/bench/planner/paper_figures.h"
#include "tests/bench/planner/search.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr int64_t kMostBatch = 65536;
constexpr int64_t kFineness = 8;
// The steps of the authors' own test scripts.
constexpr int64_t kAlexNetStep = 128, kBatchStep = 16;
constexpr int64_t kDepthBatch = 16;

bool Fits(const networks::LayerGraph& graph, const networks::Device& device) {
  networks::TrainingStep step =
      networks::MakeTrainingStep(graph, networks::UpdatePlace::kAfterGradient);
  networks::SetDurations(step, device.rates);
  if (!CheckProfile(step.profile).ok()) return false;
  Problem problem;
  problem.profile = &step.profile;
  problem.device = device.model;
  problem.device.chunk_bytes = 2 << 20;
  problem.device.slab_unit_bytes = 512;
  problem.budget_bytes = device.capacity_bytes;
  return AnyPlanRuns(problem);
}

void PrintRow(const PaperFigure& figure, int64_t ours, Verdicts& verdicts) {
  const char* verdict =
      figure.at_hand() ? verdicts.Must(ours >= std::stoll(figure.figure), "reach: " + figure.row)
                       : verdicts.NotAtHand();
  std::printf("%-14s paper %10s  ours at least %6ld  %s (%s)\n", figure.row.c_str(),
              figure.at_hand() ? figure.figure.c_str() : "-", static_cast<long>(ours), verdict,
              figure.source.c_str());
  std::fflush(stdout);
}

void PrintPeakBatches(Effort effort, Verdicts& verdicts) {
  const networks::Device device = *networks::FindDevice("k40c");
  std::printf(
      "\nPeak batch on the K40c (modelled; %ld bytes); ours found by bisection to an eighth\n",
      static_cast<long>(device.capacity_bytes));
  for (const PaperFigure& figure : PaperSection("batch")) {
    const auto fits = [&](int64_t batch_size) {
      return Fits(*networks::MakeNetwork(figure.row, batch_size), device);
    };
    PrintRow(figure,
             LargestMultiple(figure.row == "alexnet" ? kAlexNetStep : kBatchStep, kMostBatch, fits,
                             kFineness),
             verdicts);
    if (effort.quick) break;
  }
}

// Tries the paper's figure and multiples of it until one does not fit.
void PrintPeakDepth(Effort effort, Verdicts& verdicts) {
  constexpr int64_t kTriedPercent[] = {100, 150, 200, 300};
  if (effort.quick) return;
  const networks::Device device = *networks::FindDevice("k40c");
  std::printf("\nDeepest ResNet on the K40c (modelled), layers; ours at batch %ld\n",
              static_cast<long>(kDepthBatch));
  for (const PaperFigure& figure : PaperSection("depth")) {
    int64_t ours = 0;
    for (const int64_t percent : kTriedPercent) {
      const int64_t depth = std::stoll(figure.figure) * percent / 100;
      // Bottleneck networks have depths of 2 + 3n.
      const auto shape = networks::ResnetShape(static_cast<int>(depth + (5 - depth % 3) % 3));
      if (!shape || !Fits(networks::Resnet(*shape, kDepthBatch), device)) break;
      ours = depth;
    }
    PrintRow(figure, ours, verdicts);
  }
}

}  // namespace

void PrintReach(Effort effort, Verdicts& verdicts) {
  PrintPeakBatches(effort, verdicts);
  PrintPeakDepth(effort, verdicts);
}

}  // namespace spillway::papers
