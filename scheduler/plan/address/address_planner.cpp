#include "scheduler/plan/address/address_planner.h"

#include <array>
#include <utility>

#include "scheduler/plan/address/best_fit.h"
#include "scheduler/plan/address/exact_search.h"

namespace spillway::scheduler::address {
namespace {

// Placing compares n^2 pairs. Above this size only the first order is tried.
constexpr size_t kMostComparedOrders = 4096;
// Successive search targets above the peak load, in 1/1024 of it.
constexpr std::array<int64_t, 4> kAllowances = {0, 1, 8, 32};

void KeepLower(Layout& best, Layout other) {
  if (other.height_bytes < best.height_bytes) best = std::move(other);
}

Layout BestPlacement(const Problem& problem, int64_t goal_bytes) {
  Layout best = PlaceLikeSmartpool(problem);
  if (problem.buffers.size() > kMostComparedOrders) return best;
  for (const PlacementOrder order : {PlacementOrder::kBySize, PlacementOrder::kByLifetime,
                                     PlacementOrder::kByArea, PlacementOrder::kByStart}) {
    for (const HoleChoice choice : {HoleChoice::kTightest, HoleChoice::kLowest}) {
      if (best.height_bytes <= goal_bytes) return best;
      KeepLower(best, PlaceInOrder(problem, order, choice));
    }
  }
  return best;
}

}  // namespace

AddressPlan PlanAddresses(const Problem& problem, int64_t node_limit) {
  AddressPlan plan;
  plan.peak_load_bytes = PeakLoadBytes(problem.buffers);
  plan.layout = BestPlacement(problem, plan.peak_load_bytes);
  for (const int64_t allowance : kAllowances) {
    Problem tighter = problem;
    tighter.capacity_bytes = plan.peak_load_bytes + plan.peak_load_bytes / 1024 * allowance;
    const int64_t nodes_left = node_limit - plan.nodes;
    if (tighter.capacity_bytes >= plan.layout.height_bytes || nodes_left <= 0) break;
    SearchOutcome outcome = SearchLayout(tighter, {nodes_left / 2 + 1});
    plan.nodes += outcome.nodes;
    if (outcome.verdict != SearchVerdict::kFound) continue;
    plan.layout = std::move(outcome.layout);
    break;
  }
  return plan;
}

}  // namespace spillway::scheduler::address
