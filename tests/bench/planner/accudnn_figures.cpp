// AccUDNN's figures beside ours on the M40: the least memory of ResNet-152, and the minibatch that
// it allows.
#include <cmath>
#include <cstdio>

#include "scheduler/plan/advice.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/judge.h"
#include "tests/bench/planner/modelled.h"
#include "tests/bench/planner/paper_figures.h"
#include "tests/bench/planner/search.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr const char* kDevice = "m40";
constexpr const char* kNetworks[] = {"resnet152", "resnet101", "resnet50", "inceptionv4", "vgg16"};
constexpr double kGiB = 1 << 30;
constexpr int64_t kMostBatch = 4096;

double InGiB(int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

bool RunsByAccUdnn(const Problem& problem) {
  return PlannedTime(*FindStrategy("accudnn"), problem).has_value();
}

std::string SlowDown(const Modelled& it, const std::optional<int64_t>& time_ns) {
  if (!time_ns) return "no plan";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", it.SlowDownPercent(*time_ns));
  return text;
}

// Every buffer has its own memory, as in Caffe, the paper's baseline.
int64_t CaffeBatch(std::string_view network) {
  return LargestMultiple(1, kMostBatch, [&](int64_t batch_size) {
    return Modelled(network, kDevice, batch_size).total_bytes() <= CapacityOf(kDevice);
  });
}

// In quarters of Caffe's.
template <class Runs>
int64_t LargestBatch(std::string_view network, int64_t caffe_batch, Runs runs) {
  return LargestMultiple((caffe_batch + 3) / 4, kMostBatch, [&](int64_t batch_size) {
    return runs(Modelled(network, kDevice, batch_size).WithBudget(CapacityOf(kDevice)));
  });
}

// In hundredths of the range between the least possible budget and the peak.
template <class Runs>
int64_t LeastBudget(const Modelled& it, Runs runs) {
  return SmallestFrom(it.least_bytes(), it.peak_bytes(), it.peak_bytes() / 100,
                      [&](int64_t budget_bytes) { return runs(it.WithBudget(budget_bytes)); });
}

// The tuner observes Caffe's batch and twice that.
std::optional<Advice> EfficientBatch(std::string_view network, int64_t caffe_batch) {
  AdviceRequest request;
  for (const int64_t batch_size : {caffe_batch, 2 * caffe_batch}) {
    const Modelled it(network, kDevice, batch_size);
    const Problem problem = it.WithBudget(CapacityOf(kDevice));
    request.observations.push_back(Observe(problem));
    request.device = problem.device;
  }
  request.budget_bytes = CapacityOf(kDevice);
  request.batch_step = 1;
  return Advise(request).optional();
}

// The paper's batch is not at hand; ours is the first beyond the paper's memory.
void PrintMemory(Verdicts& verdicts) {
  const double before_gib = PaperDecimal("accudnn", "resnet152", "GiB before");
  const double after_gib = PaperDecimal("accudnn", "resnet152", "GiB after");
  int64_t batch_size = 1;
  while (InGiB(Modelled("resnet152", kDevice, batch_size).total_bytes()) <= before_gib)
    ++batch_size;
  const Modelled it("resnet152", kDevice, batch_size);
  const int64_t theirs = LeastBudget(it, RunsByAccUdnn), ours = LeastBudget(it, AnyPlanRuns);
  const auto paper_budget = static_cast<int64_t>(after_gib * kGiB);
  std::printf("memory of ResNet-152, GiB      paper: more than %.0f, then %.0f\n", before_gib,
              after_gib);
  std::printf(
      "  at batch %ld, modelled        every buffer its own %.1f, AccUDNN's rule %.1f, ours %.1f  "
      "%s\n",
      static_cast<long>(batch_size), InGiB(it.total_bytes()), InGiB(theirs), InGiB(ours),
      verdicts.Must(InGiB(ours) <= after_gib, "accudnn: memory of ResNet-152"));
  std::printf(
      "  slow-down at %.0f GiB, %%        AccUDNN's rule %s, ours %s\n", after_gib,
      SlowDown(it, PlannedTime(*FindStrategy("accudnn"), it.WithBudget(paper_budget))).c_str(),
      SlowDown(it, OwnPlannedTime(it.WithBudget(paper_budget))).c_str());
}

// At the batch that the paper calls efficient, ours must run and not be slower.
void PrintAtPapersFactor(const std::string& network, int64_t caffe_batch, Verdicts& verdicts) {
  const double factor = PaperDecimal("accudnn", "resnet152", "efficient batch over Caffe's");
  const auto batch_size =
      static_cast<int64_t>(std::ceil(factor * static_cast<double>(caffe_batch)));
  const Modelled it(network, kDevice, batch_size);
  const Problem problem = it.WithBudget(CapacityOf(kDevice));
  const std::optional<int64_t> theirs = PlannedTime(*FindStrategy("accudnn"), problem);
  const std::optional<int64_t> ours = OwnPlannedTime(problem);
  std::printf(" %7ld %9s %9s  %s\n", static_cast<long>(batch_size), SlowDown(it, theirs).c_str(),
              SlowDown(it, ours).c_str(),
              verdicts.Must(ours && (!theirs || *ours <= *theirs),
                            "accudnn: " + network + " at the paper's factor"));
}

void PrintBatches(const std::string& network, Verdicts& verdicts) {
  const int64_t caffe = CaffeBatch(network);
  const std::optional<Advice> advice = EfficientBatch(network, caffe);
  const double factor =
      advice ? static_cast<double>(advice->batch_size) / static_cast<double>(caffe) : 0;
  const PaperFigure* paper = FindPaperFigure("accudnn", network, "efficient batch over Caffe's");
  std::printf("%-12s %6ld %8ld %8ld %6s %6.1f", network.c_str(), static_cast<long>(caffe),
              static_cast<long>(LargestBatch(network, caffe, RunsByAccUdnn)),
              static_cast<long>(LargestBatch(network, caffe, AnyPlanRuns)),
              paper != nullptr ? paper->figure.c_str() : "-", factor);
  PrintAtPapersFactor(network, caffe, verdicts);
  std::fflush(stdout);
}

// At the paper's batch in the card's memory, ours must reach the paper's images per second.
void PrintTable(Effort effort, Verdicts& verdicts) {
  std::printf(
      "table 1, at the paper's batch: images per second, the paper's and ours (modelled)\n");
  for (const PaperFigure& figure : PaperSection("accudnn table 1")) {
    if (figure.column != "batch") continue;
    const int64_t batch_size = std::stoll(figure.figure);
    const double paper = PaperDecimal("accudnn table 1", figure.row, "img/s");
    const std::optional<int64_t> time_ns =
        OwnPlannedTime(Modelled(figure.row, kDevice, batch_size).WithBudget(CapacityOf(kDevice)));
    const double ours =
        time_ns ? static_cast<double>(batch_size) * 1e9 / static_cast<double>(*time_ns) : 0;
    std::printf("%-12s batch %5ld %9.0f %9.0f  %s\n", figure.row.c_str(),
                static_cast<long>(batch_size), paper, ours,
                verdicts.Must(ours >= paper, "accudnn: table 1, " + figure.row));
    std::fflush(stdout);
    if (effort.quick) return;
  }
}

}  // namespace

void PrintAccUdnn(Effort effort, Verdicts& verdicts) {
  std::printf("\nAccUDNN on the M40 (modelled; %.2f GiB)\n", InGiB(CapacityOf(kDevice)));
  if (!effort.quick) PrintMemory(verdicts);
  PrintTable(effort, verdicts);
  std::printf(
      "largest batches (Caffe: every buffer has memory of its own); the efficient batch over "
      "Caffe's, paper "
      "and our "
      "tuner; slow-downs in per cent at the paper's factor for ResNet-152\n");
  std::printf("%-12s %6s %8s %8s %6s %6s %7s %9s %9s\n", "network", "Caffe", "its rule", "ours",
              "paper", "tuner", "batch", "its rule", "ours");
  for (const char* network : kNetworks) {
    PrintBatches(effort.quick ? "vgg16" : network, verdicts);
    if (effort.quick) break;
  }
}

}  // namespace spillway::papers
