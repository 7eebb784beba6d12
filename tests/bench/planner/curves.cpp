#include "tests/bench/planner/curves.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "base/units.h"
#include "cli/planner/curve_picture.h"
#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/bench/planner/cases.h"
#include "tests/bench/planner/judge.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr int kShares[] = {100, 85, 70, 55, 40, 30, 25};
constexpr double kMostPercent = 60;  // plotted up to here; the table has everything

struct Plot {
  std::string network, name, title;
  std::function<Modelled()> model;
  // By strategy, the lower bound first; by budget share. Empty where the strategy does not run.
  std::vector<std::vector<std::optional<double>>> slow_downs;
};

std::vector<Plot> AllPlots() {
  std::vector<Plot> plots;
  for (const AutoSwapCase& it : AutoSwapCases())
    plots.push_back({it.network,
                     it.network + "_1080ti",
                     it.network + ", batch 100, AutoSwap's 1080 Ti",
                     [it] { return it.Model(); },
                     {}});
  for (const Case& it : ComparedCases()) {
    const std::string network = it.network, device = it.device;
    plots.push_back({network,
                     network + "_" + device,
                     network + ", batch " + std::to_string(it.batch_size) + ", " + device,
                     [it] { return Modelled(it.network, it.device, it.batch_size); },
                     {}});
  }
  return plots;
}

// Its table column is touched by no other thread.
void Compute(Plot& plot, size_t share) {
  const Modelled it = plot.model();
  const Problem problem = it.WithBudget(base::scale(it.peak_bytes(), kShares[share], 100));
  const LowerBound bound = FindLowerBound(problem);
  if (!bound.possible) return;
  plot.slow_downs[0][share] = it.SlowDownPercent(bound.iteration_ns);
  for (size_t i = 0; i < AllStrategies().size(); ++i) {
    if (const std::optional<int64_t> time_ns = PlannedTime(*AllStrategies()[i], problem))
      plot.slow_downs[i + 1][share] = it.SlowDownPercent(*time_ns);
  }
}

// The budgets of one plot, spread over the machine's cores.
void ComputeAll(Plot& plot, size_t shares) {
  plot.slow_downs.assign(AllStrategies().size() + 1,
                         std::vector<std::optional<double>>(std::size(kShares)));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t share = next++; share < shares; share = next++) Compute(plot, share);
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
}

std::string NameOf(size_t row) {
  return row == 0 ? "lower bound" : std::string(AllStrategies()[row - 1]->name());
}

std::vector<cli::Curve> CurvesOf(const Plot& plot) {
  std::vector<cli::Curve> curves;
  for (size_t row = 0; row < plot.slow_downs.size(); ++row) {
    curves.push_back({NameOf(row), {}});
    for (size_t share = 0; share < std::size(kShares); ++share) {
      if (const std::optional<double>& percent = plot.slow_downs[row][share])
        curves.back().points.push_back({kShares[share], *percent});
    }
  }
  return curves;
}

bool IsWanted(const Plot& plot, const std::vector<std::string_view>& networks) {
  return networks.empty() ||
         std::find(networks.begin(), networks.end(), plot.network) != networks.end();
}

bool WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return !file.fail();
}

std::string TableRows(const Plot& plot) {
  std::string text;
  for (const cli::Curve& curve : CurvesOf(plot)) {
    for (const cli::CurvePoint& point : curve.points) {
      char line[256];
      std::snprintf(line, sizeof line, "%s,%s,%d,%.2f\n", plot.name.c_str(), curve.name.c_str(),
                    point.share_percent, point.slow_down_percent);
      text += line;
    }
  }
  return text;
}

}  // namespace

bool DrawCurves(const std::string& folder, const std::vector<std::string_view>& networks,
                Effort effort) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string table = "network,strategy,budget % of peak,slow-down %\n";
  bool good = true;
  std::vector<Plot> plots = AllPlots();
  for (Plot& plot : plots) {
    if (!IsWanted(plot, networks)) continue;
    const double start_ms = ElapsedMs(0);
    ComputeAll(plot, effort.quick ? 1 : std::size(kShares));
    table += TableRows(plot);
    good &= WriteFile(std::filesystem::path(folder) / (plot.name + ".svg"),
                      cli::CurvesToSvg(plot.title + ": slow-down over budget (modelled)",
                                       CurvesOf(plot), kMostPercent));
    std::printf("%-24s %6.1f s\n", plot.name.c_str(), ElapsedMs(start_ms) / 1000);
    std::fflush(stdout);
    good &= WriteFile(std::filesystem::path(folder) / "curves.csv", table);
  }
  return good;
}

}  // namespace spillway::papers
