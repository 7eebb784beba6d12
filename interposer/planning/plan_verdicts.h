// How long a job's iterations take without a plan, and which plans were no better than none.
//
// Invariants
//  1. A verdict holds for one link share and one budget, give or take a twentieth.
//  2. Only the last few iterations are remembered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace spillway::interposer {

class PlanVerdicts {
 public:
  struct Conditions {
    std::uint64_t iteration = 0;
    std::int64_t budget_bytes = 0;
    std::int64_t link_permille = 0;
  };

  // By the reactive policy.
  void NoteWithout(const Conditions& conditions, std::int64_t iteration_ns) {
    if (iteration_ns > 0) At(conditions)->without_ns = iteration_ns;
  }
  // 0: unknown.
  std::int64_t WithoutNs(const Conditions& conditions) const {
    const Found* const found = Find(conditions);
    return found ? found->without_ns : 0;
  }

  void NoteDropped(const Conditions& conditions, std::int64_t predicted_ns) {
    At(conditions)->dropped_ns = std::max<std::int64_t>(predicted_ns, 1);
  }
  bool HasDropped(const Conditions& conditions) const {
    const Found* const found = Find(conditions);
    return found && found->dropped_ns > 0;
  }
  // A plan may be tried if its prediction is clearly below that of the dropped plan.
  bool IsWorthTrying(const Conditions& conditions, std::int64_t predicted_ns) const {
    const Found* const found = Find(conditions);
    return !found || found->dropped_ns == 0 || predicted_ns < found->dropped_ns / 10 * 9;
  }

 private:
  static constexpr std::size_t kMost = 32;
  static constexpr std::int64_t kSameBudgetParts = 20;
  struct Found {
    Conditions conditions;
    std::int64_t without_ns = 0;
    std::int64_t dropped_ns = 0;  // the dropped plan's prediction; 0: none
  };

  static bool AreSame(const Conditions& a, const Conditions& b) {
    const std::int64_t difference_bytes =
        std::max(a.budget_bytes, b.budget_bytes) - std::min(a.budget_bytes, b.budget_bytes);
    return a.iteration == b.iteration && a.link_permille == b.link_permille &&
           difference_bytes <= a.budget_bytes / kSameBudgetParts;
  }
  const Found* Find(const Conditions& conditions) const {
    const auto at = std::find_if(found_.begin(), found_.end(), [&](const Found& found) {
      return AreSame(found.conditions, conditions);
    });
    return at == found_.end() ? nullptr : &*at;
  }
  Found* At(const Conditions& conditions) {
    if (const Found* const found = Find(conditions)) return const_cast<Found*>(found);
    if (found_.size() == kMost) found_.pop_back();
    return &found_.emplace_front(Found{conditions});
  }

  std::deque<Found> found_;  // newest first
};

}  // namespace spillway::interposer
