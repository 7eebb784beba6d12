#include "tests/bench/planner/hidden_swaps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/prng.h"
#include "scheduler/plan/swap_schedule.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr int64_t kLeastWeightNs = 100'000;  // gives short operations some weight
constexpr size_t kTriedAdditions = 40;
constexpr int kTriedExchanges = 60;
constexpr int kAnnealingMoves = 4000;
constexpr int kTargets = 9;

class Search {
 public:
  explicit Search(const Workbench& bench)
      : timetable_(bench.timetable()),
        bench_(bench),
        schedule_(bench.timetable(), bench.intervals(), bench.swap_order()),
        swapped_(bench.intervals().size(), false),
        random_(bench.problem().seed) {
    for (int32_t i = 0; i < bench.interval_count(); ++i) {
      if (!schedule_.EvictedRangeAlone(i).empty()) candidates_.push_back(i);
    }
  }

  HiddenSwaps Run(int64_t hoped_for_bytes, int64_t evaluations) {
    HiddenSwaps best{swapped_, PeakNow()};
    int64_t low = hoped_for_bytes;
    for (int i = 0; i < kTargets && best.peak_bytes - low > timetable_.peak_bytes() / 1000; ++i) {
      const int64_t target = low + (best.peak_bytes - low) / 2;
      if (Reach(target, evaluations / kTargets)) {
        best = {swapped_, PeakNow()};
      } else {
        low = target;
        swapped_ = best.swapped;
      }
    }
    return best;
  }

 private:
  int32_t RandomCandidate() { return candidates_[random_.Below(candidates_.size())]; }

  std::vector<bool>::reference Flag(int32_t interval) {
    return swapped_[static_cast<size_t>(interval)];
  }

  int64_t PeakNow() {
    schedule_.Arrange(swapped_);
    const std::vector<int64_t>& loads = schedule_.LoadBytes();
    return *std::max_element(loads.begin(), loads.end());
  }

  double Weight(size_t operation, int64_t load_bytes) const {
    return static_cast<double>(std::max<int64_t>(0, load_bytes - target_bytes_)) *
           static_cast<double>(timetable_.duration_ns(static_cast<int32_t>(operation)) +
                               kLeastWeightNs);
  }

  double Overload() {
    --left_;
    schedule_.Arrange(swapped_);
    const std::vector<int64_t>& loads = schedule_.LoadBytes();
    double sum = 0;
    for (size_t k = 0; k < loads.size(); ++k) sum += Weight(k, loads[k]);
    return sum;
  }

  bool Reach(int64_t target_bytes, int64_t evaluations) {
    target_bytes_ = target_bytes;
    left_ = evaluations;
    overload_ = Overload();
    while (overload_ > 0 && left_ > 0) {
      if (!AddBest() && !Exchange()) Anneal();
    }
    return overload_ <= 0;
  }

  // By possible relief, descending.
  std::vector<int32_t> Promising() {
    schedule_.Arrange(swapped_);
    const std::vector<int64_t>& loads = schedule_.LoadBytes();
    std::vector<double> until(2 * loads.size() + 1, 0);
    for (size_t k = 0; k < 2 * loads.size(); ++k)
      until[k + 1] = until[k] + Weight(k % loads.size(), loads[k % loads.size()]);
    std::vector<std::pair<double, int32_t>> order;
    for (const int32_t i : candidates_) {
      const SwapSchedule::Away away = schedule_.EvictedRangeAlone(i);
      const double most =
          until[static_cast<size_t>(away.end)] - until[static_cast<size_t>(away.begin)];
      if (!Flag(i) && most > 0) order.emplace_back(-most, i);
    }
    std::sort(order.begin(), order.end());
    std::vector<int32_t> promising;
    promising.reserve(order.size());
    for (const auto& [key, i] : order) promising.push_back(i);
    promising.resize(std::min(promising.size(), kTriedAdditions));
    return promising;
  }

  bool AddBest() {
    int32_t best = -1;
    double best_value = 0;
    for (const int32_t i : Promising()) {
      Flag(i) = true;
      const double gain = overload_ - Overload();
      Flag(i) = false;
      const double value = gain / static_cast<double>(bench_.footprint_bytes(i));
      if (gain <= overload_ * 1e-9 || value <= best_value) continue;
      best = i;
      best_value = value;
    }
    if (best < 0) return false;
    Flag(best) = true;
    overload_ = Overload();
    return true;
  }

  bool Accept(double overload) {
    if (overload >= overload_) return false;
    overload_ = overload;
    return true;
  }

  bool Exchange() {
    std::vector<int32_t> taken;
    for (const int32_t i : candidates_) {
      if (Flag(i)) taken.push_back(i);
    }
    for (size_t i = taken.size(); i > 1; --i) std::swap(taken[i - 1], taken[random_.Below(i)]);
    for (const int32_t out : taken) {
      if (left_ <= 0) return false;
      Flag(out) = false;
      if (Accept(Overload())) return true;
      for (int attempt = 0; attempt < kTriedExchanges; ++attempt) {
        const int32_t in = RandomCandidate();
        if (Flag(in) || in == out) continue;
        Flag(in) = true;
        if (Accept(Overload())) return true;
        Flag(in) = false;
      }
      Flag(out) = true;
    }
    return false;
  }

  void Anneal() {
    double temperature = overload_ * 0.1;
    std::vector<bool> best = swapped_;
    double best_overload = overload_;
    for (int move = 0; move < kAnnealingMoves && best_overload > 0 && left_ > 0; ++move) {
      temperature *= 0.999;
      const std::vector<bool> before = swapped_;
      const int32_t flipped = RandomCandidate();
      Flag(flipped) = !Flag(flipped);
      if (random_.Below(2) == 0) {
        const int32_t other = RandomCandidate();
        Flag(other) = !Flag(other);
      }
      const double overload = Overload();
      const bool accepted =
          overload < overload_ || std::exp((overload_ - overload) / temperature) * 4294967296.0 >
                                      static_cast<double>(random_.Below(uint64_t{1} << 32));
      if (!accepted) {
        swapped_ = before;
        continue;
      }
      overload_ = overload;
      if (overload >= best_overload) continue;
      best_overload = overload;
      best = swapped_;
    }
    swapped_ = std::move(best);
    overload_ = Overload();
  }

  const Timetable& timetable_;
  const Workbench& bench_;
  SwapSchedule schedule_;
  std::vector<int32_t> candidates_;
  std::vector<bool> swapped_;
  base::Prng random_;
  int64_t target_bytes_ = 0;
  double overload_ = 0;
  int64_t left_ = 0;
};

}  // namespace

HiddenSwaps LowestHiddenPeak(const Workbench& bench, int64_t hoped_for_bytes, int64_t evaluations) {
  return Search(bench).Run(hoped_for_bytes, evaluations);
}

}  // namespace spillway::papers
