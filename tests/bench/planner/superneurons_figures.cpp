// SuperNeurons' own figures, and what its device can hold under our plans.
#include <algorithm>
#include <cstdio>
#include <map>

#include "scheduler/networks/catalog.h"
#include "scheduler/networks/devices.h"
#include "scheduler/networks/superneurons_account.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/judge.h"
#include "tests/bench/planner/paper_figures.h"

namespace spillway::papers {
namespace {

using namespace scheduler;
using networks::SuperNeuronsAccount;

std::string Decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Megabytes(int64_t bytes, int digits) {
  return Decimal(static_cast<double>(bytes) / (1 << 20), digits);
}

// Digits after the point in the paper's figure: ours is compared with as many.
int DigitsOf(const std::string& figure) {
  const size_t point = figure.find('.');
  return point == std::string::npos ? 0 : static_cast<int>(figure.size() - point - 1);
}

// Ours for a row and column of the section: bytes where the column is MB, counts otherwise.
using Ours = std::map<std::string, int64_t>;

void AddRecomputation(Ours& ours, const std::string& name, const SuperNeuronsAccount& account) {
  const std::pair<const char*, networks::RecomputeMode> modes[] = {
      {"speed-centric", networks::RecomputeMode::kSpeed},
      {"memory-centric", networks::RecomputeMode::kMemory},
      {"cost-aware", networks::RecomputeMode::kCostAware}};
  for (const auto& [mode, value] : modes) {
    const networks::RecomputeAccount result = account.Recompute(value);
    ours[name + " " + mode + ",extra"] = result.extra_forwards;
    ours[name + " " + mode + ",MB"] = result.peak.bytes;
  }
}

Ours ComputeSuperNeurons() {
  Ours ours;
  const SuperNeuronsAccount alexnet(networks::Alexnet(200));
  const std::string name = "AlexNet b200 ";
  const networks::MemoryPeak liveness = alexnet.LivenessPeak(), offload = alexnet.OffloadPeak();
  ours[name + "tensors,count"] = alexnet.tensor_count();
  ours[name + "baseline,MB"] = alexnet.total_bytes();
  ours[name + "liveness peak,MB"] = liveness.bytes;
  ours[name + "liveness peak,step"] = liveness.step;
  ours[name + "liveness live tensors,count"] = liveness.live_tensors;
  for (const char* conv : {"CONV1", "CONV2", "CONV3", "CONV4"})
    ours[name + conv + " output,MB"] = alexnet.OutputBytes(conv);
  ours[name + "offload peak,MB"] = offload.bytes;
  ours[name + "offload peak,step"] = offload.step;
  ours[name + "offload at POOL5 backward,MB"] = alexnet.OffloadBytesAt(alexnet.BackwardStep("POOL5"));
  const networks::RecomputeAccount memory = alexnet.Recompute(networks::RecomputeMode::kMemory);
  ours[name + "recomputation peak,MB"] = memory.peak.bytes;
  ours[name + "recomputation peak,step"] = memory.peak.step;
  AddRecomputation(ours, "AlexNet", alexnet);
  for (int depth : {50, 101}) {
    AddRecomputation(ours, "ResNet" + std::to_string(depth),
                     SuperNeuronsAccount(networks::Resnet(*networks::ResnetShape(depth), 32,
                                                          networks::ResNetVariant::kSuperNeurons)));
  }
  return ours;
}

// Can the iteration run at all on the device?
bool Fits(const networks::LayerGraph& graph, const networks::Device& device) {
  networks::TrainingStep step = networks::MakeTrainingStep(graph, networks::UpdatePlace::kAfterGradient);
  networks::SetDurations(step, device.rates);
  if (CheckProfile(step.profile)) return false;
  Problem problem;
  problem.profile = &step.profile;
  problem.device = device.model;
  problem.device.chunk_bytes = 2 << 20;
  problem.device.slab_unit_bytes = 512;
  problem.budget_bytes = device.capacity_bytes;
  return AnyPlanRuns(problem);
}

// The paper's figure and its multiples are tried until one does not fit; the largest that does is ours, at least.
constexpr int kTriedPercent[] = {100, 150, 200, 300};

template <class Fit>
int64_t LargestTried(int64_t theirs, Effort effort, Fit fits) {
  int64_t ours = 0;
  for (int percent : kTriedPercent) {
    const int64_t next = theirs * percent / 100;
    if (!fits(next)) break;
    ours = next;
    if (effort.quick) break;
  }
  return ours;
}

}  // namespace

void PrintSuperNeurons(Effort) {
  std::printf("SuperNeurons' own figures (MB = 2^20 bytes)\n%-46s %-6s %12s %12s  %s\n", "", "", "paper",
              "ours", "source");
  const Ours ours = ComputeSuperNeurons();
  for (const PaperFigure& figure : PaperSection("superneurons")) {
    const int64_t value = ours.at(figure.row + "," + figure.column);
    const int digits = DigitsOf(figure.figure);
    const std::string text =
        figure.column == "MB" ? Megabytes(value, std::max(digits, 2)) : std::to_string(value);
    const bool equal = (figure.column == "MB" ? Megabytes(value, digits) : text) == figure.figure;
    std::printf("%-46s %-6s %12s %12s  %s%s\n", figure.row.c_str(), figure.column.c_str(),
                figure.figure.c_str(), text.c_str(), figure.source.c_str(), equal ? "" : "  DIFFERS");
  }
}

void PrintPeakBatches(Effort effort) {
  const networks::Device device = *networks::FindDevice("k40c");
  std::printf(
      "\nPeak batch on the K40c (modelled; %lld bytes): the paper's, and the largest of its multiples that "
      "fits\n",
      static_cast<long long>(device.capacity_bytes));
  for (const PaperFigure& figure : PaperSection("batch")) {
    const int64_t theirs = std::stoll(figure.figure);
    const int64_t ours = LargestTried(theirs, effort, [&](int64_t batch_size) {
      return Fits(*networks::MakeNetwork(figure.row, batch_size), device);
    });
    std::printf("%-14s paper %6lld  ours at least %6lld  %s\n", figure.row.c_str(),
                static_cast<long long>(theirs), static_cast<long long>(ours), figure.source.c_str());
    std::fflush(stdout);
    if (effort.quick) break;
  }
}

void PrintPeakDepth(Effort effort) {
  if (effort.quick) return;
  const networks::Device device = *networks::FindDevice("k40c");
  std::printf("\nDepth of ResNet on the K40c (modelled), in the same form\n");
  for (const PaperFigure& figure : PaperSection("depth")) {
    const int64_t theirs = std::stoll(figure.figure);
    const int64_t ours = LargestTried(theirs, effort, [&](int64_t depth) {
      // Depths of bottleneck networks are 2 + 3n: the next one.
      const auto shape = networks::ResnetShape(static_cast<int>(depth + (5 - depth % 3) % 3));
      return shape && Fits(networks::Resnet(*shape, 16), device);
    });
    std::printf("%-14s paper %6lld  ours at least %6lld  %s\n", figure.row.c_str(),
                static_cast<long long>(theirs), static_cast<long long>(ours), figure.source.c_str());
    std::fflush(stdout);
  }
}

void PrintReach(Effort effort) {
  PrintPeakBatches(effort);
  PrintPeakDepth(effort);
}

}  // namespace spillway::papers
