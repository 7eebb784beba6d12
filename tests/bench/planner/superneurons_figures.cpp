// SuperNeurons' own figures, counted by its conventions.
#include <algorithm>
#include <cstdio>
#include <map>

#include "scheduler/networks/catalog.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/paper_figures.h"
#include "tests/bench/planner/superneurons_account.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

std::string Decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Megabytes(int64_t bytes, int digits) {
  return Decimal(static_cast<double>(bytes) / (1 << 20), digits);
}

// Ours is compared with as many decimals.
int DigitsOf(const std::string& figure) {
  const size_t point = figure.find('.');
  return point == std::string::npos ? 0 : static_cast<int>(figure.size() - point - 1);
}

// Bytes where the column is in MB, counts otherwise.
using Ours = std::map<std::string, int64_t>;

void AddRecomputation(Ours& ours, const std::string& name, const SuperNeuronsAccount& account) {
  const std::pair<const char*, RecomputeMode> modes[] = {{"speed-centric", RecomputeMode::kSpeed},
                                                         {"memory-centric", RecomputeMode::kMemory},
                                                         {"cost-aware", RecomputeMode::kCostAware}};
  for (const auto& [mode, value] : modes) {
    const RecomputeAccount result = account.Recompute(value);
    ours[name + " " + mode + ",extra"] = result.extra_forwards;
    ours[name + " " + mode + ",MB"] = result.peak.bytes;
  }
}

Ours ComputeSuperNeurons() {
  Ours ours;
  const SuperNeuronsAccount alexnet(networks::Alexnet(200));
  const std::string name = "AlexNet b200 ";
  const MemoryPeak liveness = alexnet.LivenessPeak(), offload = alexnet.OffloadPeak();
  ours[name + "tensors,count"] = alexnet.tensor_count();
  ours[name + "baseline,MB"] = alexnet.total_bytes();
  ours[name + "liveness peak,MB"] = liveness.bytes;
  ours[name + "liveness peak,step"] = liveness.step;
  ours[name + "liveness live tensors,count"] = liveness.live_tensors;
  for (const char* conv : {"CONV1", "CONV2", "CONV3", "CONV4"})
    ours[name + conv + " output,MB"] = alexnet.OutputBytes(conv);
  ours[name + "offload peak,MB"] = offload.bytes;
  ours[name + "offload peak,step"] = offload.step;
  ours[name + "offload at POOL5 backward,MB"] =
      alexnet.OffloadBytesAt(alexnet.BackwardStep("POOL5"));
  const RecomputeAccount memory = alexnet.Recompute(RecomputeMode::kMemory);
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

}  // namespace

void PrintSuperNeurons(Effort, Verdicts& verdicts) {
  std::printf("SuperNeurons' own figures (MB = 2^20 bytes)\n%-46s %-6s %12s %12s  %s\n", "", "",
              "paper", "ours", "");
  const Ours ours = ComputeSuperNeurons();
  for (const PaperFigure& figure : PaperSection("superneurons")) {
    const int64_t value = ours.at(figure.row + "," + figure.column);
    const int digits = DigitsOf(figure.figure);
    const std::string text =
        figure.column == "MB" ? Megabytes(value, std::max(digits, 3)) : std::to_string(value);
    const bool equal = (figure.column == "MB" ? Megabytes(value, digits) : text) == figure.figure;
    // Where the paper rounds or omits something, the result of its own rules counts.
    const PaperFigure* rules =
        FindPaperFigure("superneurons reproduced", figure.row, figure.column);
    const bool holds = rules != nullptr ? text == rules->figure : equal;
    std::printf("%-46s %-6s %12s %12s  %s%s (%s)\n", figure.row.c_str(), figure.column.c_str(),
                figure.figure.c_str(), text.c_str(),
                verdicts.Must(holds, "superneurons: " + figure.row),
                equal ? "" : ", not the paper's: what its rules give", figure.source.c_str());
  }
}

}  // namespace spillway::papers
