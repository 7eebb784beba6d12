#include "scheduler/plan/strategies/repair.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::scheduler {
namespace {

// Searches for the first operation above the budget.
constexpr int kMostEvictions = 400, kMostEvictionsOfLarge = 24;

struct Excess {
  int32_t operation = -1;
  int64_t bytes = 0;
};

Excess FirstExcess(const Workbench& bench, const Choices& choices) {
  const Plan plan = bench.Lower(choices);
  const std::vector<int64_t> loads = InstantLoads(bench, plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const int64_t over_bytes = loads[i] - bench.problem().budget_bytes;
    if (over_bytes <= 0) continue;
    while (plan.steps[i].recomputes) ++i;
    return {plan.steps[i].operation.index, over_bytes};
  }
  return {};
}

// Counting on past the iteration's end; -1: the interval does not span the operation.
int32_t NextUse(const Workbench& bench, int32_t index, int32_t operation) {
  const IdleInterval& interval = bench.interval(index);
  const int32_t count = bench.timetable().operation_count();
  if (!interval.wraps) {
    const bool covers = interval.from.index < operation && operation < interval.to.index;
    return covers ? interval.to.index : -1;
  }
  if (operation > interval.from.index) return interval.to.index + count;
  return operation < interval.to.index ? interval.to.index : -1;
}

void Swap(Decision& decision) {
  decision.treatment = Treatment::kSwap;
  decision.prefetch_at = {};
  decision.reason = Reason::kRepair;
}

// False if too few are left.
bool Evict(const Workbench& bench, const Excess& excess, Choices& choices) {
  std::vector<std::tuple<int32_t, int64_t, int32_t>> order;  // furthest and largest first
  for (int32_t i = 0; i < bench.interval_count(); ++i) {
    if (choices.decisions[static_cast<size_t>(i)].treatment != Treatment::kStay) continue;
    const int32_t next_use = NextUse(bench, i, excess.operation);
    if (next_use >= 0) order.emplace_back(-next_use, -bench.footprint_bytes(i), i);
  }
  std::sort(order.begin(), order.end());
  int64_t left_bytes = excess.bytes;
  for (const auto& [use, size, i] : order) {
    if (left_bytes <= 0) break;
    Swap(choices.decisions[static_cast<size_t>(i)]);
    left_bytes -= bench.footprint_bytes(i);
  }
  int32_t& workspace = choices.workspaces[static_cast<size_t>(excess.operation)];
  const bool shrinks = left_bytes > 0 && workspace != 0;
  if (shrinks) workspace = 0;
  return shrinks || left_bytes < excess.bytes;
}

bool Runs(Workbench& bench, const Choices& choices) {
  return bench.Price(bench.Lower(choices)).runs();
}

void FetchOnDemand(const Workbench& bench, Choices& choices) {
  for (Decision& decision : choices.decisions) {
    if (decision.treatment == Treatment::kSwap)
      decision.prefetch_at = bench.interval(decision.interval).to;
  }
}

Choices EverythingOnDemand(const Workbench& bench) {
  Choices choices = bench.NoChoices();
  for (Decision& decision : choices.decisions) Swap(decision);
  FetchOnDemand(bench, choices);
  return choices;
}

}  // namespace

std::optional<Choices> Repair(Workbench& bench, Choices choices) {
  if (Runs(bench, choices)) return choices;
  const int most = bench.is_large() ? kMostEvictionsOfLarge : kMostEvictions;
  for (int round = 0; round < most; ++round) {
    const Excess excess = FirstExcess(bench, choices);
    if (excess.operation < 0 || !Evict(bench, excess, choices)) break;
  }
  if (Runs(bench, choices)) return choices;
  FetchOnDemand(bench, choices);
  if (Runs(bench, choices)) return choices;
  choices = EverythingOnDemand(bench);
  if (Runs(bench, choices)) return choices;
  return std::nullopt;
}

}  // namespace spillway::scheduler
