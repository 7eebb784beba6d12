#include <algorithm>
#include <cstdio>
#include <string>

#include "base/units.h"
#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/bench/planner/cases.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/judge.h"
#include "tests/bench/planner/pieces.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr int kShares[] = {90, 75, 50, 35, 25};
constexpr double kMostPercentAboveBound = 5;
constexpr int32_t kTriedPieces[] = {2, 4, 8, 16};  // pieces of a minibatch

double PercentOver(int64_t time_ns, int64_t base_ns) {
  return 100.0 * static_cast<double>(time_ns) / static_cast<double>(base_ns) - 100;
}

struct Best {
  std::optional<int64_t> time_ns;
  std::string_view name = "none";
};

Best BestOfOthers(const Problem& problem) {
  Best best;
  for (const Strategy* strategy : AllStrategies()) {
    if (strategy->name() == kDefaultStrategy) continue;
    const std::optional<int64_t> time_ns = PlannedTime(*strategy, problem);
    if (time_ns && (!best.time_ns || *time_ns < *best.time_ns)) best = {time_ns, strategy->name()};
  }
  return best;
}

std::string Percentage(const std::optional<int64_t>& time_ns, int64_t base_ns) {
  if (!time_ns) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", PercentOver(*time_ns, base_ns));
  return text;
}

// Our strategy runs wherever a plan is possible, and is never slower than the best of the others.
bool Holds(const LowerBound& bound, const Best& others, const std::optional<int64_t>& own) {
  if (!bound.possible) return true;
  return own && (!others.time_ns || *own <= *others.time_ns);
}

bool Misses(const LowerBound& bound, const std::optional<int64_t>& own, int share) {
  return own && share >= 50 && PercentOver(*own, bound.iteration_ns) > kMostPercentAboveBound;
}

int64_t LargestBytes(const IterationProfile& profile) {
  int64_t largest_bytes = 0;
  for (const Buffer& buffer : profile.buffers)
    largest_bytes = std::max(largest_bytes, buffer.size_bytes);
  return largest_bytes;
}

// Runs the strategy with the minibatch in pieces, to see whether the bound is lower because it
// divides buffers.
void PrintWhy(const Problem& problem, const LowerBound& bound, int64_t free_ns) {
  const IterationProfile& whole = problem.iteration();
  const auto percent_of_budget =
      base::scale(LargestBytes(whole), 100, std::max<int64_t>(1, problem.budget_bytes));
  std::printf(
      "%21s why: buffers are whole, the largest is %ld %% of the budget; the bound shares them "
      "out. In",
      "", static_cast<long>(percent_of_budget));
  const char* separator = "";
  for (const int32_t pieces : kTriedPieces) {
    const IterationProfile cut = InPieces(whole, pieces);
    Problem same = problem;
    same.profile = &cut;
    const std::optional<int64_t> own = OwnPlannedTime(same);
    std::printf("%s %d pieces ours is %s, %s above this bound", separator, pieces,
                Percentage(own, free_ns).c_str(), Percentage(own, bound.iteration_ns).c_str());
    separator = ", in";
    std::fflush(stdout);
  }
  std::printf("\n");
}

const char* Remark(const LowerBound& bound, const std::optional<int64_t>& own, int share) {
  if (!bound.possible) return "impossible: one operation needs more";
  if (!own) return "not found";
  return Misses(bound, own, share) ? "more than 5 % above the bound" : "";
}

void PrintCase(const Case& it, Effort effort, Verdicts& verdicts) {
  const IterationProfile profile = ProfileOf(it.network, it.device, it.batch_size);
  Problem problem;
  problem.profile = &profile;
  problem.device = DeviceOf(it.device);
  // Zero is the fastest possible iteration.
  problem.budget_bytes = 4 * PeakBytes(profile);
  const int64_t free_ns = FindLowerBound(problem).iteration_ns;
  for (const int share : kShares) {
    problem.budget_bytes = base::scale(PeakBytes(profile), share, 100);
    const LowerBound bound = FindTightBound(problem);
    const Best others = bound.possible ? BestOfOthers(problem) : Best{};
    const std::optional<int64_t> own = bound.possible ? OwnPlannedTime(problem) : std::nullopt;
    std::printf("%-12s %-7s %5ld %5d%% %10s  %-24s %9s %9s %9s  %s %s\n", it.network, it.device,
                static_cast<long>(it.batch_size), share,
                Percentage(others.time_ns, free_ns).c_str(), std::string(others.name).c_str(),
                Percentage(own, free_ns).c_str(),
                bound.possible ? Percentage(bound.iteration_ns, free_ns).c_str() : "-",
                own ? Percentage(own, bound.iteration_ns).c_str() : "-",
                verdicts.Must(Holds(bound, others, own), std::string("strategies: ") + it.network +
                                                             " at " + std::to_string(share) + " %"),
                Remark(bound, own, share));
    std::fflush(stdout);
    if (Misses(bound, own, share)) PrintWhy(problem, bound, free_ns);
    if (effort.quick) return;
  }
}

}  // namespace

void PrintStrategies(Effort effort, Verdicts& verdicts) {
  std::printf(
      "\nSlow-down against unlimited memory, per cent (modelled): the best of the papers' "
      "strategies, ours, "
      "the bound\n");
  std::printf("%-12s %-7s %5s %6s %10s  %-24s %9s %9s %9s\n", "network", "device", "batch", "share",
              "others", "by", "ours", "bound", "distance");
  for (const Case& it : ComparedCases()) {
    PrintCase(it, effort, verdicts);
    if (effort.quick) return;
  }
}

}  // namespace spillway::papers
