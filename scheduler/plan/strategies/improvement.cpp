#include "scheduler/plan/strategies/improvement.h"

#include <algorithm>
#include <utility>

#include "scheduler/plan/strategies/relief.h"

namespace spillway::scheduler {
namespace {

class Climb {
 public:
  Climb(Workbench& bench, Priced start, int64_t evaluations)
      : bench_(bench), best_(std::move(start)), left_(evaluations) {}

  Priced Run() {
    bool better = true;
    while (better && left_ > 0 && best_.prediction.iteration_ns > bench_.fastest_ns()) {
      better = GrantWorkspaces();
      better = ChangeSingles() || better;
      better = ExchangePairs() || better;
    }
    if (best_.prediction.iteration_ns <= bench_.fastest_ns()) StayWherePossible();
    return std::move(best_);
  }

 private:
  Treatment TreatmentOf(int32_t interval) const {
    return best_.choices.decisions[static_cast<size_t>(interval)].treatment;
  }

  static void Set(Choices& choices, int32_t interval, Treatment treatment) {
    Decision& decision = choices.decisions[static_cast<size_t>(interval)];
    decision.treatment = treatment;
    decision.keep_when_rebuilt = true;
    decision.prefetch_at = {};
    decision.reason = Reason::kImprovement;
  }

  bool Try(Choices choices) {
    if (bench_.is_spent()) left_ = 0;
    if (left_-- <= 0) return false;
    SetTriggers(bench_, choices);
    const Prediction prediction = bench_.Price(bench_.Lower(choices));
    if (!RunsBetter(prediction, best_.prediction)) return false;
    best_ = {std::move(choices), prediction};
    return true;
  }

  int64_t CostNs(int32_t interval) const {
    if (TreatmentOf(interval) == Treatment::kRecompute) return bench_.ChainNs(interval);
    return bench_.timetable().to_device_ns(bench_.interval(interval).buffer);
  }

  std::vector<int32_t> TakenByCost() const {
    std::vector<int32_t> taken;
    for (int32_t i = 0; i < bench_.interval_count(); ++i) {
      if (TreatmentOf(i) != Treatment::kStay && bench_.IsCopied(i)) taken.push_back(i);
    }
    std::stable_sort(taken.begin(), taken.end(),
                     [&](int32_t a, int32_t b) { return CostNs(a) > CostNs(b); });
    return taken;
  }

  // The largest gain first, each operation from its fastest algorithm.
  bool GrantWorkspaces() {
    const std::vector<Operation>& operations = bench_.profile().operations;
    std::vector<std::pair<int64_t, size_t>> gains;
    for (size_t i = 0; i < operations.size(); ++i) {
      const int64_t gain_ns = DurationWith(i, best_.choices.workspaces[i]) -
                              DurationWith(i, FastestWorkspace(operations[i], kMostBytes));
      if (gain_ns > 0) gains.emplace_back(-gain_ns, i);
    }
    std::sort(gains.begin(), gains.end());
    bool better = false;
    for (const auto& [gain, i] : gains) {
      for (const int32_t workspace : FasterThan(i, best_.choices.workspaces[i])) {
        if (left_ <= 0) return better;
        Choices choices = best_.choices;
        choices.workspaces[i] = workspace;
        if (!Try(std::move(choices))) continue;
        better = true;
        break;
      }
    }
    return better;
  }

  int64_t DurationWith(size_t operation, int32_t workspace) const {
    const Operation& it = bench_.profile().operations[operation];
    return it.workspaces.empty() ? it.duration_ns
                                 : it.workspaces[static_cast<size_t>(workspace)].duration_ns;
  }

  std::vector<int32_t> FasterThan(size_t operation, int32_t workspace) const {
    std::vector<int32_t> faster;
    const auto count =
        static_cast<int32_t>(bench_.profile().operations[operation].workspaces.size());
    for (int32_t i = 0; i < count; ++i) {
      if (DurationWith(operation, i) < DurationWith(operation, workspace)) faster.push_back(i);
    }
    std::stable_sort(faster.begin(), faster.end(), [&](int32_t a, int32_t b) {
      return DurationWith(operation, a) < DurationWith(operation, b);
    });
    return faster;
  }

  bool ChangeSingles() {
    bool better = false;
    for (const int32_t interval : TakenByCost()) {
      if (left_ <= 0) break;
      const Treatment now = TreatmentOf(interval);
      Choices choices = best_.choices;
      Set(choices, interval, Treatment::kStay);
      if (Try(std::move(choices))) {
        better = true;
        continue;
      }
      if (now == Treatment::kSwap && bench_.ChainNs(interval) < 0) continue;
      choices = best_.choices;
      Set(choices, interval, now == Treatment::kSwap ? Treatment::kRecompute : Treatment::kSwap);
      better = Try(std::move(choices)) || better;
    }
    return better;
  }

  // Moves less when no plan can be faster: the job's own copies wait behind the plan's.
  void StayWherePossible() {
    for (int32_t i = 0; i < bench_.interval_count() && left_ > 0; ++i) {
      if (TreatmentOf(i) == Treatment::kStay || !bench_.IsCopied(i)) continue;
      Choices choices = best_.choices;
      Set(choices, i, Treatment::kStay);
      Try(std::move(choices));
    }
  }

  bool ExchangePairs() {
    bool better = false;
    for (const int32_t interval : TakenByCost()) {
      if (bench_.is_spent()) return better;
      for (const Decision& other : Substitutes(interval)) {
        if (left_ <= 0) return better;
        Choices choices = best_.choices;
        Set(choices, interval, Treatment::kStay);
        Set(choices, other.interval, other.treatment);
        if (!Try(std::move(choices))) continue;
        better = true;
        break;
      }
    }
    return better;
  }

  static constexpr size_t kSubstitutes = 4;

  // They cover most of this one and are nearly as large; the cheapest first.
  std::vector<Decision> Substitutes(int32_t interval) const {
    bench_.AddWork(bench_.interval_count());
    const IdleInterval& it = bench_.interval(interval);
    const int32_t begin = Timetable::BeginOf(it), end = bench_.timetable().EndOf(it);
    std::vector<std::pair<int64_t, Decision>> found;
    for (int32_t i = 0; i < bench_.interval_count(); ++i) {
      if (TreatmentOf(i) != Treatment::kStay ||
          bench_.footprint_bytes(i) * 10 < bench_.footprint_bytes(interval) * 8)
        continue;
      const int32_t common = std::min(end, bench_.timetable().EndOf(bench_.interval(i))) -
                             std::max(begin, Timetable::BeginOf(bench_.interval(i)));
      if (common * 2 < end - begin) continue;
      const int64_t copy_ns = bench_.timetable().to_device_ns(bench_.interval(i).buffer);
      const int64_t chain_ns = bench_.ChainNs(i);
      found.push_back({copy_ns, {.interval = i, .treatment = Treatment::kSwap, .prefetch_at = {}}});
      if (chain_ns >= 0)
        found.push_back(
            {chain_ns, {.interval = i, .treatment = Treatment::kRecompute, .prefetch_at = {}}});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Decision> substitutes;
    for (const auto& [cost, decision] : found) {
      if (substitutes.size() == kSubstitutes || cost >= CostNs(interval)) break;
      substitutes.push_back(decision);
    }
    return substitutes;
  }

  Workbench& bench_;
  Priced best_;
  int64_t left_;
};

}  // namespace

bool RunsBetter(const Prediction& one, const Prediction& other) {
  if (one.runs() != other.runs()) return one.runs();
  if (!one.runs()) return false;
  const int64_t moved = one.to_host_bytes + one.to_device_bytes;
  const int64_t other_moved = other.to_host_bytes + other.to_device_bytes;
  return std::pair(one.iteration_ns, moved) < std::pair(other.iteration_ns, other_moved);
}

Priced Improve(Workbench& bench, Priced start, int64_t evaluations) {
  return Climb(bench, std::move(start), evaluations).Run();
}

}  // namespace spillway::scheduler
