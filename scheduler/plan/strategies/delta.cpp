#include "scheduler/plan/strategies/delta.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

constexpr int64_t kEarlyNumerator = 3,
                  kEarlyDenominator = 4;  // share of the budget at which releasing starts
constexpr size_t kLargestFew = 32;        // idle tensors that pass the size filter

class Runtime {
 public:
  explicit Runtime(const Workbench& bench)
      : bench_(bench),
        choices_(bench.NoChoices()),
        opening_(static_cast<size_t>(bench.timetable().operation_count()) + 1),
        returning_bytes_(opening_.size(), 0) {
    for (int32_t i = 0; i < bench.interval_count(); ++i) {
      const IdleInterval& interval = bench.interval(i);
      if (!interval.wraps) opening_[static_cast<size_t>(Timetable::BeginOf(interval))].push_back(i);
    }
  }

  Choices Run() {
    const Timetable& timetable = bench_.timetable();
    const int64_t threshold_bytes =
        bench_.problem().budget_bytes / kEarlyDenominator * kEarlyNumerator;
    for (int32_t now = 0; now < timetable.operation_count(); ++now) {
      away_bytes_ -= returning_bytes_[static_cast<size_t>(now)];
      std::erase_if(idle_, [&](int32_t i) { return bench_.interval(i).to.index <= now; });
      const std::vector<int32_t>& opened = opening_[static_cast<size_t>(now)];
      idle_.insert(idle_.end(), opened.begin(), opened.end());
      while (timetable.load_bytes()[static_cast<size_t>(now)] - away_bytes_ > threshold_bytes) {
        const int32_t victim = Filter(now);
        if (victim < 0) break;
        Release(victim);
      }
    }
    return choices_;
  }

 private:
  int64_t IdleNs(int32_t interval, int32_t now) const {
    return bench_.timetable().start_ns(bench_.interval(interval).to.index) -
           bench_.timetable().start_ns(now);
  }

  int64_t SwapNs(int32_t interval) const {
    return bench_.timetable().to_host_ns(bench_.interval(interval).buffer) +
           bench_.timetable().to_device_ns(bench_.interval(interval).buffer);
  }

  // The three filters; -1 if no tensor passes.
  int32_t Filter(int32_t now) const {
    std::vector<int32_t> passed = idle_;
    const size_t few = std::min(kLargestFew, passed.size());
    std::partial_sort(passed.begin(), passed.begin() + static_cast<ptrdiff_t>(few), passed.end(),
                      [&](int32_t a, int32_t b) {
                        return bench_.footprint_bytes(a) != bench_.footprint_bytes(b)
                                   ? bench_.footprint_bytes(a) > bench_.footprint_bytes(b)
                                   : a < b;
                      });
    passed.resize(few);
    std::erase_if(passed, [&](int32_t i) { return IdleNs(i, now) < SwapNs(i); });
    int32_t best = -1;
    double best_score = -1;
    for (const int32_t i : passed) {
      const double score = static_cast<double>(bench_.footprint_bytes(i)) *
                           static_cast<double>(IdleNs(i, now)) / static_cast<double>(CostNs(i) + 1);
      if (score <= best_score) continue;
      best = i;
      best_score = score;
    }
    return best;
  }

  int64_t CostNs(int32_t interval) const {
    const int64_t chain_ns = bench_.ChainNs(interval);
    return chain_ns < 0 ? SwapNs(interval) : std::min(chain_ns, SwapNs(interval));
  }

  // The director and the prefetcher.
  void Release(int32_t interval) {
    Decision& decision = choices_.decisions[static_cast<size_t>(interval)];
    const int64_t chain_ns = bench_.ChainNs(interval);
    const bool recomputes = chain_ns >= 0 && chain_ns < SwapNs(interval);
    decision.treatment = recomputes ? Treatment::kRecompute : Treatment::kSwap;
    decision.reason = Reason::kStrategyRule;
    std::erase(idle_, interval);
    away_bytes_ += bench_.footprint_bytes(interval);
    returning_bytes_[static_cast<size_t>(bench_.interval(interval).to.index)] +=
        bench_.footprint_bytes(interval);
  }

  const Workbench& bench_;
  Choices choices_;
  std::vector<std::vector<int32_t>> opening_;  // by operation: intervals that begin there
  std::vector<int64_t> returning_bytes_;       // by operation: bytes restored from then on
  std::vector<int32_t> idle_;
  int64_t away_bytes_ = 0;
};

class DeltaStrategy : public ChoosingStrategy {
 public:
  using ChoosingStrategy::ChoosingStrategy;

  std::optional<Choices> Choose(Workbench& bench) const override {
    Choices choices = Runtime(bench).Run();
    choices.workspaces = WorkspacesThatFit(bench, choices);
    return choices;
  }
};

}  // namespace

const ChoosingStrategy& Delta() {
  static const auto& strategy = *new DeltaStrategy(
      "delta", "DELTA: releases early, by swap or recomputation, whichever is cheaper (2022)");
  return strategy;
}

}  // namespace spillway::scheduler
