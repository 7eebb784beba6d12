#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "scheduler/plan/address/address_planner.h"
#include "scheduler/plan/address/best_fit.h"
#include "scheduler/plan/address/exact_search.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/paper_figures.h"
#include "tests/support/layout_check.h"
#include "tests/support/paths.h"

namespace spillway::papers {
namespace {

using scheduler::address::Problem;

constexpr int64_t kCapacityBytes = 1'048'576;
constexpr int64_t kNodeLimit = 1'000'000;

// Rows of id,lower,upper,size below one header line.
Problem ReadInput(const std::string& path) {
  std::ifstream file(path);
  Problem problem;
  problem.capacity_bytes = kCapacityBytes;
  std::string line;
  if (!std::getline(file, line)) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  while (std::getline(file, line)) {
    std::stringstream fields(line);
    std::string id;
    char comma = 0;
    scheduler::address::Buffer buffer;
    std::getline(fields, id, ',');
    if (fields >> buffer.lower >> comma >> buffer.upper >> comma >> buffer.size_bytes)
      problem.buffers.push_back(buffer);
  }
  return problem;
}

// One per tensor, alive from its first to its last operation, and one per workspace of the fastest
// algorithm.
Problem BuffersOf(const scheduler::IterationProfile& profile) {
  constexpr int64_t kAlignment = 256;
  const auto rounded = [](int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  const auto end = 2 * static_cast<int64_t>(profile.operations.size());
  Problem problem;
  for (const scheduler::Buffer& buffer : profile.buffers) {
    const int64_t lower = buffer.persistent ? 0 : 2 * int64_t{buffer.born.index};
    const int64_t upper = buffer.persistent ? end : 2 * int64_t{buffer.dies.index} + 1;
    problem.buffers.push_back({lower, upper, rounded(buffer.size_bytes), kAlignment});
  }
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    int64_t fastest_ns = profile.operations[i].duration_ns, size_bytes = 0;
    for (const scheduler::WorkspaceChoice& choice : profile.operations[i].workspaces) {
      if (choice.duration_ns >= fastest_ns) continue;
      fastest_ns = choice.duration_ns;
      size_bytes = choice.size_bytes;
    }
    const auto at = 2 * static_cast<int64_t>(i);
    if (size_bytes > 0) problem.buffers.push_back({at, at + 1, rounded(size_bytes), kAlignment});
  }
  return problem;
}

bool IsValid(Problem problem, const scheduler::address::Layout& layout, int64_t capacity_bytes) {
  problem.capacity_bytes = capacity_bytes;
  return !scheduler::address::CheckLayout(problem, layout);
}

}  // namespace

void PrintMinimalloc(Effort effort, Verdicts& verdicts) {
  std::printf("\nminimalloc's challenging inputs at capacity %ld, node limit %ld\n",
              static_cast<long>(kCapacityBytes), static_cast<long>(kNodeLimit));
  std::printf(
      "the paper's time per input (Moffitt, ASPLOS 2023) is not at hand; beside ours stands what "
      "others "
      "measured "
      "with it, on their machine\n");
  std::printf("%-6s %8s %10s %10s %9s %16s  %s\n", "input", "buffers", "solved", "nodes", "time ms",
              "minimalloc ms", "");
  for (const char name : std::string(effort.quick ? "BJ" : "ABCDEFGHIJK")) {
    const Problem problem = ReadInput(test::Fixture("minimalloc/") + name + ".1048576.csv");
    const double start_ms = ElapsedMs(0);
    const auto outcome = scheduler::address::SearchLayout(problem, {kNodeLimit});
    const double time_ms = ElapsedMs(start_ms);
    const bool found = outcome.verdict == scheduler::address::SearchVerdict::kFound;
    const bool solved = found && IsValid(problem, outcome.layout, kCapacityBytes);
    std::printf("%-6c %8zu %10s %10ld %9.1f %16s  %s\n", name, problem.buffers.size(),
                solved ? "yes" : "NO", static_cast<long>(outcome.nodes), time_ms,
                PaperText("minimalloc", std::string(1, name), "ms").c_str(),
                verdicts.Must(solved, std::string("minimalloc: input ") + name));
  }
}

void PrintSmartPool(Effort effort, Verdicts& verdicts) {
  constexpr const char* kNetworks[] = {"vgg11_cifar",    "vgg13_cifar",    "vgg16_cifar",
                                       "vgg19_cifar",    "resnet18_cifar", "resnet34_cifar",
                                       "resnet50_cifar", "resnet101_cifar"};
  constexpr double kMostRatio = 1.001;
  std::printf(
      "\nSmartPool table I: height of the layout / peak load (CIFAR-10, batch 100); the paper's "
      "lie in "
      "1.0005-1.016\n");
  std::printf("%-16s %8s %10s %16s %10s %9s  %s\n", "network", "buffers", "peak MiB",
              "SmartPool's rule", "ours", "time ms", "");
  for (const char* network : kNetworks) {
    const Problem problem = BuffersOf(ProfileOf(network, "1080ti", 100));
    const double start_ms = ElapsedMs(0);
    const auto plan = scheduler::address::PlanAddresses(problem, 20'000);
    const double time_ms = ElapsedMs(start_ms);
    const auto peak = static_cast<double>(plan.peak_load_bytes);
    const auto rule = scheduler::address::PlaceLikeSmartpool(problem);
    const double ratio = static_cast<double>(plan.layout.height_bytes) / peak;
    const bool valid = IsValid(problem, plan.layout, plan.layout.height_bytes);
    std::printf("%-16s %8zu %10.1f %16.5f %10.5f %9.1f  %s\n", network, problem.buffers.size(),
                peak / 1048576, static_cast<double>(rule.height_bytes) / peak, ratio, time_ms,
                verdicts.Must(valid && ratio <= kMostRatio, std::string("smartpool: ") + network));
    if (effort.quick) break;
  }
}

}  // namespace spillway::papers
