#include "scheduler/plan/strategies/autoswap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "scheduler/plan/bayesian_search.h"
#include "scheduler/plan/load_tree.h"
#include "scheduler/plan/swap_schedule.h"

namespace spillway::scheduler {
namespace {

constexpr int kTries = 24;              // of weights
constexpr int64_t kMostWork = 1 << 25;  // candidates x choices x tries

enum Score { kDoa, kAoa, kWdoa, kSwdoa };

struct Candidate {
  int32_t interval;
  SwapSchedule::Away away;
  Weights scores;  // normalised to [0, 1], except SWDOA, which changes
};

class Selection {
 public:
  explicit Selection(const Workbench& bench)
      : bench_(bench),
        schedule_(bench.timetable(), bench.intervals(), bench.swap_order()),
        weight_until_{0} {
    for (int32_t i = 0; i < bench.timetable().operation_count(); ++i)
      weight_until_.push_back(
          weight_until_.back() +
          static_cast<double>(bench.timetable().load_bytes()[static_cast<size_t>(i)]) *
              static_cast<double>(bench.timetable().duration_ns(i)));
    for (int32_t i = 0; i < bench.interval_count(); ++i) {
      const SwapSchedule::Away away = schedule_.EvictedRangeAlone(i);
      if (!away.empty()) candidates_.push_back({i, away, RawScores(i)});
    }
    Normalise();
  }

  size_t size() const { return candidates_.size(); }

  Choices Choose(const Weights& weights) {
    Choices choices = bench_.NoChoices();
    LoadTree load(bench_.timetable().load_bytes());
    std::vector<int32_t> order = Ranked(weights);
    std::vector<bool> taken(candidates_.size(), false);
    size_t taken_in_order = 0;
    for (;;) {
      const LoadTree::Highest highest = load.Max();
      if (highest.load_bytes <= bench_.problem().budget_bytes) break;
      const int32_t next = weights[kSwdoa] > 0
                               ? BestNow(order, taken, highest.operation, weights, load)
                               : FirstOver(order, taken, highest.operation);
      if (next < 0) break;
      taken[static_cast<size_t>(next)] = true;
      if (++taken_in_order * kTakenShare > order.size()) {
        std::erase_if(order, [&](int32_t i) { return taken[static_cast<size_t>(i)]; });
        taken_in_order = 0;
      }
      const Candidate& candidate = candidates_[static_cast<size_t>(next)];
      load.Add(candidate.away.begin, candidate.away.end,
               -bench_.footprint_bytes(candidate.interval));
      choices.decisions[static_cast<size_t>(candidate.interval)].treatment = Treatment::kSwap;
    }
    return choices;
  }

 private:
  static constexpr size_t kScoredPerChoice = 64;
  static constexpr size_t kTakenShare = 16;  // more than one in so many is taken: they leave

  Weights RawScores(int32_t i) const {
    const Timetable& timetable = bench_.timetable();
    const IdleInterval& interval = bench_.interval(i);
    const auto idle_ns = static_cast<double>(timetable.start_ns(timetable.EndOf(interval)) -
                                             timetable.end_ns(interval.from.index));
    const double copies_ns = interval.content_dead
                                 ? 0
                                 : static_cast<double>(timetable.to_host_ns(interval.buffer) +
                                                       timetable.to_device_ns(interval.buffer));
    const auto size = static_cast<double>(bench_.footprint_bytes(i));
    const double doa = idle_ns - copies_ns;
    const double wdoa =
        WeightUntil(timetable.EndOf(interval)) - WeightUntil(Timetable::BeginOf(interval));
    return {doa, doa > 0 ? doa * size : doa / size, wdoa, 0};
  }

  double WeightUntil(int32_t operation) const {
    const auto count = static_cast<int32_t>(weight_until_.size()) - 1;
    return weight_until_[static_cast<size_t>(operation % count)] +
           weight_until_.back() * static_cast<double>(operation / count);
  }

  void Normalise() {
    for (int score = 0; score < kSwdoa; ++score) {
      double lowest = std::numeric_limits<double>::max();
      double highest = std::numeric_limits<double>::lowest();
      for (const Candidate& candidate : candidates_) {
        lowest = std::min(lowest, candidate.scores[score]);
        highest = std::max(highest, candidate.scores[score]);
      }
      const double range = highest > lowest ? highest - lowest : 1;
      for (Candidate& candidate : candidates_)
        candidate.scores[score] = (candidate.scores[score] - lowest) / range;
    }
  }

  double Fixed(const Candidate& candidate, const Weights& weights) const {
    double sum = 0;
    for (int score = 0; score < kSwdoa; ++score) sum += weights[score] * candidate.scores[score];
    return sum;
  }

  std::vector<int32_t> Ranked(const Weights& weights) const {
    std::vector<int32_t> order(candidates_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return Fixed(candidates_[static_cast<size_t>(a)], weights) >
             Fixed(candidates_[static_cast<size_t>(b)], weights);
    });
    return order;
  }

  bool Crosses(const Candidate& candidate, int32_t operation) const {
    const int32_t count = bench_.timetable().operation_count();
    const SwapSchedule::Away& away = candidate.away;
    return (away.begin <= operation && operation < away.end) ||
           (away.begin <= operation + count && operation + count < away.end);
  }

  int32_t FirstOver(const std::vector<int32_t>& order, const std::vector<bool>& taken,
                    int32_t operation) const {
    for (const int32_t i : order) {
      if (!taken[static_cast<size_t>(i)] && Crosses(candidates_[static_cast<size_t>(i)], operation))
        return i;
    }
    return -1;
  }

  // The submodular score: what the absence relieves of the load above the budget, at its highest.
  int32_t BestNow(const std::vector<int32_t>& order, const std::vector<bool>& taken,
                  int32_t operation, const Weights& weights, const LoadTree& load) const {
    int32_t best = -1;
    double best_score = -1;
    size_t looked_at = 0;
    const auto budget = static_cast<double>(bench_.problem().budget_bytes);
    for (const int32_t i : order) {
      const Candidate& candidate = candidates_[static_cast<size_t>(i)];
      if (taken[static_cast<size_t>(i)] || !Crosses(candidate, operation)) continue;
      const int32_t count = bench_.timetable().operation_count();
      const int64_t highest =
          load.Max(candidate.away.begin % count,
                   std::min(count, candidate.away.begin % count + candidate.away.length()))
              .load_bytes;
      const double above = std::max(0.0, static_cast<double>(highest) - budget) / budget;
      const double score = Fixed(candidate, weights) + weights[kSwdoa] * above *
                                                           candidate.away.length() /
                                                           static_cast<double>(count);
      if (score > best_score) {
        best = i;
        best_score = score;
      }
      if (++looked_at == kScoredPerChoice) break;
    }
    return best;
  }

  const Workbench& bench_;
  SwapSchedule schedule_;
  std::vector<double> weight_until_;
  std::vector<Candidate> candidates_;
};

class ScoredSwaps : public ChoosingStrategy {
 public:
  ScoredSwaps(std::string_view name, std::string_view summary, Score score)
      : ChoosingStrategy(name, summary), score_(score) {}

  std::optional<Choices> Choose(Workbench& bench) const override {
    Weights weights{};
    weights[score_] = 1;
    return Selection(bench).Choose(weights);
  }

 private:
  const Score score_;
};

class WeightedSwaps : public ChoosingStrategy {
 public:
  using ChoosingStrategy::ChoosingStrategy;

  std::optional<Choices> Choose(Workbench& bench) const override {
    Selection selection(bench);
    BayesianSearch search(bench.problem().seed);
    const auto count = static_cast<int64_t>(selection.size()) + 1;
    const int64_t tries = std::clamp<int64_t>(kMostWork / (count * count), 1, kTries);
    for (int64_t i = 0; i < tries; ++i) {
      const Weights weights = search.Next();
      search.Tell(weights, ValueOf(bench.Price(bench.Lower(selection.Choose(weights))), bench));
    }
    return selection.Choose(search.best());
  }

 private:
  // A plan that does not run is worse than any that does.
  static double ValueOf(const Prediction& prediction, const Workbench& bench) {
    if (!prediction.runs()) return 10;
    const auto busy_ns =
        static_cast<double>(std::max<int64_t>(1, bench.timetable().iteration_ns()));
    return std::min(9.0, static_cast<double>(prediction.iteration_ns) / busy_ns);
  }
};

}  // namespace

const ChoosingStrategy& AutoSwapDoa() {
  static const auto& strategy =
      *new ScoredSwaps("autoswap-doa", "AutoSwap by duration of absence", kDoa);
  return strategy;
}

const ChoosingStrategy& AutoSwapAoa() {
  static const auto& strategy =
      *new ScoredSwaps("autoswap-aoa", "AutoSwap by area of absence", kAoa);
  return strategy;
}

const ChoosingStrategy& AutoSwapWdoa() {
  static const auto& strategy =
      *new ScoredSwaps("autoswap-wdoa", "AutoSwap by absence weighted with the load", kWdoa);
  return strategy;
}

const ChoosingStrategy& AutoSwapSwdoa() {
  static const auto& strategy = *new ScoredSwaps(
      "autoswap-swdoa", "AutoSwap by weighted absence, re-evaluated each time", kSwdoa);
  return strategy;
}

const ChoosingStrategy& AutoSwap() {
  static const auto& strategy = *new WeightedSwaps(
      "autoswap", "AutoSwap: four scores, weighted by Bayesian optimisation (2019, 4.3)");
  return strategy;
}

}  // namespace spillway::scheduler
