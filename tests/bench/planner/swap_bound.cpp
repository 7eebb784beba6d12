#include "tests/bench/planner/swap_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace spillway::papers {
namespace {

using scheduler::IdleInterval;
using scheduler::Timetable;

constexpr double kNever = std::numeric_limits<double>::max();
constexpr double kFirstStep = 2, kLastStep = 1e-3, kStepShrinks = 0.6;
constexpr int kPatience = 60;  // iterations without a better bound
constexpr double kPriceStep = 0.05;
constexpr double kNegligible = 1e-6;  // of the peak: smaller savings are ignored

class Relaxation {
 public:
  Relaxation(const Timetable& timetable, const std::vector<IdleInterval>& intervals)
      : timetable_(timetable),
        intervals_(intervals),
        count_(timetable.operation_count()),
        peak_(static_cast<double>(timetable.peak_bytes())),
        duration_(static_cast<size_t>(count_)),
        weight_(duration_.size(), 0),
        out_price_(duration_.size(), 0),
        in_price_(duration_.size(), 0) {
    double sum = 0;
    for (int32_t k = 0; k < count_; ++k) {
      duration_[At(k)] = static_cast<double>(std::max<int64_t>(1, timetable.duration_ns(k)));
      if (static_cast<double>(timetable.load_bytes()[At(k)]) > 0.9 * peak_)
        weight_[At(k)] = duration_[At(k)];
      sum += weight_[At(k)];
    }
    for (double& weight : weight_) weight /= sum;
  }

  double Maximise(int iterations) {
    double step = kFirstStep;
    int waited = 0;
    Point best{weight_, out_price_, in_price_};
    for (int i = 0; i < iterations && step > kLastStep; ++i) {
      const double bound = Evaluate();
      if (bound > best_) {
        if (bound > best_ + 2e-4 * peak_) waited = 0;
        best_ = bound;
        best = {weight_, out_price_, in_price_};
      }
      if (++waited > kPatience) {
        waited = 0;
        step *= kStepShrinks;
        weight_ = best.weight;
        out_price_ = best.out_price;
        in_price_ = best.in_price;
        continue;
      }
      Move(step);
    }
    return best_;
  }

 private:
  struct Point {
    std::vector<double> weight, out_price, in_price;
  };

  size_t At(int32_t operation) const { return static_cast<size_t>(operation % count_); }

  // Also stores loads and engine use by operation.
  double Evaluate() {
    double bound = 0;
    load_.assign(duration_.size(), 0);
    out_use_.assign(duration_.size(), 0);
    in_use_.assign(duration_.size(), 0);
    for (size_t k = 0; k < duration_.size(); ++k) {
      load_[k] = static_cast<double>(timetable_.load_bytes()[k]);
      bound += weight_[k] * load_[k] - duration_[k] * (out_price_[k] + in_price_[k]);
    }
    for (const IdleInterval& interval : intervals_) bound -= BestSaving(interval);
    return bound;
  }

  double BestSaving(const IdleInterval& interval) {
    const int32_t begin = Timetable::BeginOf(interval), length = timetable_.EndOf(interval) - begin;
    if (length <= 0) return 0;
    const auto size = static_cast<double>(timetable_.footprint_bytes(interval.buffer));
    weight_until_.assign(static_cast<size_t>(length) + 1, 0);
    for (int32_t i = 0; i < length; ++i)
      weight_until_[static_cast<size_t>(i) + 1] =
          weight_until_[static_cast<size_t>(i)] + weight_[At(begin + i)];
    const double most = size * weight_until_.back();
    if (most <= kNegligible * peak_)
      return most;  // already more than possible: the bound stays valid
    if (interval.content_dead) {
      TakeAway(begin, begin + length, size);
      return most;
    }
    Cheapest(begin, length, +1, out_price_,
             static_cast<double>(timetable_.to_host_ns(interval.buffer)), out_cost_);
    Cheapest(begin + length - 1, length, -1, in_price_,
             static_cast<double>(timetable_.to_device_ns(interval.buffer)), in_cost_);
    return BestAbsence(interval, begin, length, size);
  }

  // The cost of `need_ns` of an engine within the first i operations from `first` on, for each i.
  void Cheapest(int32_t first, int32_t length, int32_t direction, const std::vector<double>& price,
                double need_ns, std::vector<double>& cost) const {
    cost.assign(static_cast<size_t>(length) + 1, kNever);
    std::priority_queue<std::pair<double, double>>
        taken;  // price, nanoseconds; the most expensive on top
    double have = 0, sum = 0;
    for (int32_t i = 0; i < length; ++i) {
      const size_t k = At(first + direction * i);
      taken.emplace(price[k], duration_[k]);
      have += duration_[k];
      sum += duration_[k] * price[k];
      while (have > need_ns) {
        const auto [dearest, nanos] = taken.top();
        taken.pop();
        const double cut = std::min(nanos, have - need_ns);
        have -= cut;
        sum -= cut * dearest;
        if (nanos > cut) taken.emplace(dearest, nanos - cut);
        if (have <= need_ns * (1 + 1e-12)) break;
      }
      if (have >= need_ns * (1 - 1e-9)) cost[static_cast<size_t>(i) + 1] = sum;
    }
  }

  double BestAbsence(const IdleInterval& interval, int32_t begin, int32_t length, double size) {
    double best = 0, best_start_cost = kNever;
    int32_t from = -1, best_from = -1, best_until = -1;
    for (int32_t until = 1; until <= length; ++until) {
      const auto start = static_cast<size_t>(until) - 1;
      if (out_cost_[start] < kNever &&
          out_cost_[start] + size * weight_until_[start] < best_start_cost) {
        best_start_cost = out_cost_[start] + size * weight_until_[start];
        from = until - 1;
      }
      const double back_cost = in_cost_[static_cast<size_t>(length - until)];
      if (from < 0 || back_cost == kNever) continue;
      const double saving =
          size * weight_until_[static_cast<size_t>(until)] - best_start_cost - back_cost;
      if (saving <= best) continue;
      best = saving;
      best_from = from;
      best_until = until;
    }
    if (best_from < 0) return 0;
    TakeAway(begin + best_from, begin + best_until, size);
    Use(begin, best_from, +1, out_price_,
        static_cast<double>(timetable_.to_host_ns(interval.buffer)), out_use_);
    Use(begin + length - 1, length - best_until, -1, in_price_,
        static_cast<double>(timetable_.to_device_ns(interval.buffer)), in_use_);
    return best;
  }

  void TakeAway(int32_t begin, int32_t end, double size) {
    for (int32_t k = begin; k < end; ++k) load_[At(k)] -= size;
  }

  void Use(int32_t first, int32_t length, int32_t direction, const std::vector<double>& price,
           double need_ns, std::vector<double>& use) const {
    std::vector<std::pair<double, size_t>> order;
    for (int32_t i = 0; i < length; ++i)
      order.emplace_back(price[At(first + direction * i)], At(first + direction * i));
    std::sort(order.begin(), order.end());
    for (const auto& [cost, k] : order) {
      const double nanos = std::min(duration_[k], need_ns);
      use[k] += nanos;
      need_ns -= nanos;
      if (need_ns <= 0) break;
    }
  }

  // Weights grow where the load is high, prices where an engine is overcommitted.
  void Move(double step) {
    double mean = 0, sum = 0;
    for (size_t k = 0; k < duration_.size(); ++k) mean += weight_[k] * load_[k];
    const double price_step =
        best_ / static_cast<double>(timetable_.iteration_ns()) * kPriceStep * step;
    for (size_t k = 0; k < duration_.size(); ++k) {
      weight_[k] = std::max(weight_[k], 1e-9) * std::exp(step * (load_[k] - mean) / peak_);
      sum += weight_[k];
      out_price_[k] = std::max(0.0, out_price_[k] + price_step * (out_use_[k] / duration_[k] - 1));
      in_price_[k] = std::max(0.0, in_price_[k] + price_step * (in_use_[k] / duration_[k] - 1));
    }
    for (double& weight : weight_) weight /= sum;
  }

  const Timetable& timetable_;
  const std::vector<IdleInterval>& intervals_;
  const int32_t count_;
  const double peak_;
  std::vector<double> duration_, weight_, out_price_, in_price_;
  std::vector<double> load_, out_use_, in_use_;
  std::vector<double> weight_until_, out_cost_, in_cost_;
  double best_ = 0;
};

}  // namespace

double LeastPeakBytes(const Timetable& timetable, const std::vector<IdleInterval>& intervals,
                      int iterations) {
  return Relaxation(timetable, intervals).Maximise(iterations);
}

}  // namespace spillway::papers
