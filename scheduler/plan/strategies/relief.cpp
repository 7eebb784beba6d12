#include "scheduler/plan/strategies/relief.h"

#include <algorithm>
#include <utility>

#include "scheduler/plan/load_tree.h"
#include "scheduler/plan/strategies/bulk_relief.h"

namespace spillway::scheduler {
namespace {

constexpr size_t kTriedPerRound = 6;  // swaps, and recomputations, considered per round
// Exact evaluations per round x (operations + intervals).
constexpr int64_t kWorkForExactEvaluations = 1'000'000;
constexpr int64_t kWorkForRounds = 1'000'000;  // rounds x (operations + intervals)
constexpr int64_t kLeastRounds = 24, kMostRounds = 600;

std::vector<bool> Swapped(const Choices& choices) {
  std::vector<bool> swapped(choices.decisions.size());
  for (size_t i = 0; i < swapped.size(); ++i)
    swapped[i] = choices.decisions[i].treatment == Treatment::kSwap;
  return swapped;
}

// Weighted by duration.
class Overload {
 public:
  Overload(const std::vector<int64_t>& load_bytes, const Timetable& timetable, int64_t target_bytes)
      : count_(timetable.operation_count()), until_(2 * load_bytes.size() + 1, 0) {
    for (int32_t k = 0; k < 2 * count_; ++k) {
      const int64_t above =
          std::max<int64_t>(0, load_bytes[static_cast<size_t>(k % count_)] - target_bytes);
      if (above > highest_bytes_) {
        highest_bytes_ = above;
        highest_at_ = k;
      }
      until_[static_cast<size_t>(k) + 1] =
          until_[static_cast<size_t>(k)] +
          static_cast<double>(above) * Weight(timetable, k % count_);
    }
  }

  static double AreaOf(const std::vector<int64_t>& load_bytes, const Timetable& timetable,
                       int64_t target_bytes) {
    double area = 0;
    for (size_t k = 0; k < load_bytes.size(); ++k) {
      const int64_t above = load_bytes[k] - target_bytes;
      if (above > 0)
        area += static_cast<double>(above) * Weight(timetable, static_cast<int32_t>(k));
    }
    return area;
  }

  bool none() const { return highest_bytes_ == 0; }
  double area() const { return until_[static_cast<size_t>(count_)]; }
  int32_t highest_at() const { return highest_at_; }

  // An upper estimate of the relief from evicting `size_bytes` during [begin, end).
  double Relief(int32_t begin, int32_t end, int64_t size_bytes) const {
    if (begin >= end) return 0;
    const double over = until_[static_cast<size_t>(end)] - until_[static_cast<size_t>(begin)];
    return size_bytes >= highest_bytes_
               ? over
               : over * static_cast<double>(size_bytes) / static_cast<double>(highest_bytes_);
  }

 private:
  static double Weight(const Timetable& timetable, int32_t operation) {
    constexpr int64_t kLeastWeightNs = 100'000;  // gives short operations some weight
    return static_cast<double>(timetable.duration_ns(operation) + kLeastWeightNs);
  }

  int32_t count_;
  int64_t highest_bytes_ = 0;
  int32_t highest_at_ = 0;
  std::vector<double> until_;  // over two iterations, for wrapping intervals
};

struct Option {
  int32_t interval = -1;
  Treatment treatment = Treatment::kStay;
  bool keep = true;
  double relief = 0;
  double cost_ns = 1;
  double value() const { return relief / cost_ns; }
};

// Options without relief in an exact evaluation; cleared when no other option is left.
struct Useless {
  explicit Useless(size_t intervals) : swap(intervals, false), recompute(intervals, false) {}

  void Mark(const Option& option) {
    (option.treatment == Treatment::kSwap ? swap
                                          : recompute)[static_cast<size_t>(option.interval)] = true;
  }

  std::vector<bool> swap, recompute;
};

bool BetterOption(const Option& a, const Option& b) {
  if (a.value() != b.value()) return a.value() > b.value();
  return std::pair(a.interval, a.treatment) < std::pair(b.interval, b.treatment);
}

class Round {
 public:
  Round(const Workbench& bench, const ReliefOptions& options, Choices& choices, Useless& useless)
      : bench_(bench),
        options_(options),
        choices_(choices),
        useless_(useless),
        sketch_(MakeSketch(bench, choices)),
        timetable_(bench.timetable().Stretched(sketch_.extra_ns)),
        schedule_(timetable_, bench.intervals(), bench.swap_order(), options.waits),
        swapped_(Swapped(choices)) {
    DropLateSwaps();
  }

  std::vector<int64_t> Loads() { return LoadsWith(sketch_); }

  const Timetable& timetable() const { return timetable_; }

  bool Take(const Overload& overload, int64_t most) {
    std::vector<Option> options = Useful(overload);
    std::stable_sort(options.begin(), options.end(), BetterOption);
    constexpr double kShare = 0.5;  // of the overload, per round
    double relieved = 0;
    int64_t taken = 0;
    for (const Option& option : options) {
      if (taken == most) break;
      if (taken > 0 && relieved + option.relief > overload.area() * kShare) break;
      Decision& decision = choices_.decisions[static_cast<size_t>(option.interval)];
      decision.treatment = option.treatment;
      decision.keep_when_rebuilt = option.keep;
      decision.reason =
          option.treatment == Treatment::kSwap ? Reason::kHidden : Reason::kCheapestRelief;
      relieved += option.relief;
      ++taken;
    }
    return taken > 0;
  }

 private:
  void DropLateSwaps() {
    schedule_.Arrange(swapped_);
    bool any = false;
    for (size_t i = 0; i < swapped_.size(); ++i) {
      if (!swapped_[i] || !schedule_.EvictedRangeOf(static_cast<int32_t>(i)).empty()) continue;
      swapped_[i] = false;
      useless_.Mark({static_cast<int32_t>(i), Treatment::kSwap});
      choices_.decisions[i].treatment = Treatment::kStay;
      any = true;
    }
    if (any) schedule_.Arrange(swapped_);
  }

  std::vector<int64_t> LoadsWith(const Sketch& sketch) {
    std::vector<int64_t> loads = schedule_.LoadBytes();
    const std::vector<int64_t>& without = timetable_.load_bytes();
    for (size_t i = 0; i < loads.size(); ++i) loads[i] += sketch.load_bytes[i] - without[i];
    return loads;
  }

  std::vector<Option> Promising(const Overload& overload) const {
    std::vector<Option> options;
    for (int32_t i = 0; i < bench_.interval_count(); ++i) {
      const Decision& decision = choices_.decisions[static_cast<size_t>(i)];
      if (decision.treatment == Treatment::kRecompute && decision.keep_when_rebuilt)
        AddRelease(overload, i, options);
      if (decision.treatment != Treatment::kStay) continue;
      if (options_.swaps) AddSwap(overload, i, options);
      if (options_.recomputes) AddRecompute(overload, i, options);
    }
    std::sort(options.begin(), options.end(), BetterOption);
    return options;
  }

  // By exact evaluation.
  std::vector<Option> Useful(const Overload& overload) {
    std::vector<Option> useful;
    size_t swaps = 0, others = 0;
    int64_t looks_left = kWorkForExactEvaluations / bench_.size() + 8;
    for (Option option : Promising(overload)) {
      size_t& kind = option.treatment == Treatment::kSwap ? swaps : others;
      if (kind == kTriedPerRound || looks_left-- <= 0) continue;
      Refine(overload, option);
      if (option.relief <= overload.area() * 1e-9) {
        useless_.Mark(option);
        continue;
      }
      ++kind;
      useful.push_back(option);
    }
    return useful;
  }

  // A buffer that a chain keeps could be dropped again until its own time.
  void AddRelease(const Overload& overload, int32_t i, std::vector<Option>& options) const {
    const IdleInterval& interval = bench_.interval(i);
    const int32_t highest = overload.highest_at();
    if (useless_.recompute[static_cast<size_t>(i)]) return;
    if (highest <= interval.from.index || highest > interval.to.index) return;
    const double relief =
        overload.Relief(interval.from.index + 1, interval.to.index, bench_.footprint_bytes(i));
    if (relief <= 0) return;
    options.push_back({i, Treatment::kRecompute, false, relief,
                       static_cast<double>(std::max<int64_t>(1, 2 * bench_.ChainNs(i)))});
  }

  void AddSwap(const Overload& overload, int32_t i, std::vector<Option>& options) const {
    if (useless_.swap[static_cast<size_t>(i)]) return;
    const SwapSchedule::Away away = schedule_.EvictedRangeAlone(i);
    const double relief = overload.Relief(away.begin, away.end, bench_.footprint_bytes(i));
    if (relief <= 0) return;
    const IdleInterval& interval = bench_.interval(i);
    const int64_t cost_ns =
        bench_.IsCopied(i) ? timetable_.to_host_ns(interval.buffer) + MappingNs(i) : 1;
    options.push_back(
        {i, Treatment::kSwap, true, relief,
         static_cast<double>(std::max<int64_t>(1, cost_ns / options_.copy_discount))});
  }

  // Independent of how little of a buffer's memory is copied.
  int64_t MappingNs(int32_t i) const {
    if (options_.swap_costs == SwapCosts::kCopies) return 0;
    const MappingPrices& prices = bench_.problem().device.mapping;
    const int64_t bytes = bench_.footprint_bytes(i);
    return prices.UnmapNs(bytes) + prices.MapNs(bytes);
  }

  void AddRecompute(const Overload& overload, int32_t i, std::vector<Option>& options) const {
    const int64_t chain_ns = bench_.ChainNs(i);
    if (chain_ns < 0 || useless_.recompute[static_cast<size_t>(i)]) return;
    const IdleInterval& interval = bench_.interval(i);
    const int32_t rebuilt = RebuiltWithin(interval);
    const double relief =
        overload.Relief(Timetable::BeginOf(interval), rebuilt >= 0 ? rebuilt : interval.to.index,
                        bench_.footprint_bytes(i));
    if (relief <= 0) return;
    const int64_t cost_ns = rebuilt >= 0 ? chain_ns / options_.copy_discount : chain_ns;
    options.push_back({i, Treatment::kRecompute, true, relief,
                       static_cast<double>(std::max<int64_t>(1, cost_ns))});
  }

  int32_t RebuiltWithin(const IdleInterval& interval) const {
    const int32_t at = sketch_.rebuilt_at[static_cast<size_t>(interval.buffer.index)];
    return at > interval.from.index && at <= interval.to.index ? at : -1;
  }

  void Refine(const Overload& overload, Option& option) {
    if (option.treatment == Treatment::kSwap) {
      bench_.AddWork(bench_.size());
      swapped_[static_cast<size_t>(option.interval)] = true;
      schedule_.Arrange(swapped_);
      const double then = Overload::AreaOf(Loads(), timetable_, options_.target_bytes);
      option.relief =
          schedule_.EvictedRangeOf(option.interval).empty() ? 0 : overload.area() - then;
      swapped_[static_cast<size_t>(option.interval)] = false;
      schedule_.Arrange(swapped_);
      return;
    }
    Choices with = choices_;
    Decision& decision = with.decisions[static_cast<size_t>(option.interval)];
    decision.treatment = Treatment::kRecompute;
    decision.keep_when_rebuilt = option.keep;
    const Sketch sketch = MakeSketch(bench_, with);
    option.relief =
        overload.area() - Overload::AreaOf(LoadsWith(sketch), timetable_, options_.target_bytes);
    option.cost_ns =
        static_cast<double>(std::max<int64_t>(1, sketch.recompute_ns - sketch_.recompute_ns));
  }

  const Workbench& bench_;
  const ReliefOptions& options_;
  Choices& choices_;
  Useless& useless_;
  const Sketch sketch_;
  const Timetable timetable_;  // stretched by the chains
  SwapSchedule schedule_;
  std::vector<bool> swapped_;
};

bool Fits(const Workbench& bench, const ReliefOptions& options, Choices& choices) {
  Useless useless(choices.decisions.size());
  Choices same = choices;
  Round round(bench, options, same, useless);
  return same == choices && Overload(round.Loads(), round.timetable(), options.target_bytes).none();
}

// The most expensive first: recomputations by chain, then swaps by size.
void Trim(const Workbench& bench, const ReliefOptions& options, Choices& choices,
          int64_t most_tries) {
  std::vector<std::pair<int64_t, int32_t>> order;
  for (const Decision& decision : choices.decisions) {
    if (decision.treatment == Treatment::kRecompute)
      order.emplace_back(-bench.ChainNs(decision.interval) - kMostNanos / 2, decision.interval);
    if (decision.treatment == Treatment::kSwap && !bench.interval(decision.interval).content_dead)
      order.emplace_back(-bench.footprint_bytes(decision.interval), decision.interval);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [key, interval] : order) {
    if (most_tries-- <= 0) return;
    Choices without = choices;
    without.decisions[static_cast<size_t>(interval)].treatment = Treatment::kStay;
    if (Fits(bench, options, without)) choices = std::move(without);
  }
}

}  // namespace

Sketch MakeSketch(const Workbench& bench, const Choices& choices) {
  const Plan plan = bench.LowerForLoads(choices);
  const std::vector<int64_t> loads = InstantLoads(bench, plan);
  const auto count = static_cast<size_t>(bench.timetable().operation_count());
  Sketch sketch{std::vector<int64_t>(count, 0), std::vector<int64_t>(count, 0),
                std::vector<int32_t>(bench.profile().buffers.size(), -1), 0};
  const auto duration_ns = [&](OperationId id) {
    return bench.DurationNs(id, choices.workspaces[static_cast<size_t>(id.index)]);
  };
  std::vector<int32_t> operation_after(plan.steps.size());
  int32_t original = static_cast<int32_t>(count) - 1;
  for (size_t i = plan.steps.size(); i-- > 0;) {
    const Step& step = plan.steps[i];
    if (!step.recomputes) original = step.operation.index;
    operation_after[i] = original;
    const auto at = static_cast<size_t>(original);
    sketch.load_bytes[at] = std::max(sketch.load_bytes[at], loads[i]);
    const int64_t step_ns = duration_ns(step.operation);
    sketch.recompute_ns += step.recomputes ? step_ns : 0;
    // The timetable has the smallest workspaces.
    sketch.extra_ns[at] +=
        step.recomputes ? step_ns : step_ns - bench.timetable().duration_ns(original);
  }
  for (const Action& action : plan.actions) {
    if (action.reason != Reason::kChainTemporary) continue;
    int32_t& at = sketch.rebuilt_at[static_cast<size_t>(action.buffer.index)];
    if (at < 0) at = operation_after[static_cast<size_t>(action.step)];
  }
  return sketch;
}

std::optional<Choices> Relieve(const Workbench& bench, ReliefOptions options, Choices choices) {
  if (bench.is_large()) return RelieveInBulk(bench, options, std::move(choices));
  const int64_t rounds = std::clamp(kWorkForRounds / bench.size(), kLeastRounds, kMostRounds);
  const int64_t most_per_round = 1 + bench.interval_count() / rounds * 4;
  Useless useless(choices.decisions.size());
  bool stuck = false;  // nothing helped since `useless` was cleared
  for (int64_t i = 0; i < rounds && !bench.is_spent(); ++i) {
    Round round(bench, options, choices, useless);
    const Overload overload(round.Loads(), round.timetable(), options.target_bytes);
    if (overload.none()) {
      Trim(bench, options, choices, rounds / 8);
      SetTriggers(bench, choices);
      return choices;
    }
    if (round.Take(overload, most_per_round)) {
      stuck = false;
      continue;
    }
    if (stuck && options.waits == SwapSchedule::Waits::kAsNeeded) return std::nullopt;
    if (stuck) {  // unreachable without waits
      options.waits = SwapSchedule::Waits::kAsNeeded;
      options.copy_discount = 1;
    }
    useless = Useless(choices.decisions.size());
    stuck = !stuck;
  }
  return std::nullopt;
}

std::vector<int64_t> LoadsOnDemand(const Workbench& bench, Choices choices) {
  for (Decision& decision : choices.decisions)
    decision.prefetch_at = bench.interval(decision.interval).to;
  const Plan plan = bench.Lower(choices);
  const std::vector<int64_t> by_step = InstantLoads(bench, plan);
  std::vector<int64_t> loads(static_cast<size_t>(bench.timetable().operation_count()), 0);
  int32_t original = bench.timetable().operation_count() - 1;
  for (size_t i = plan.steps.size(); i-- > 0;) {
    if (!plan.steps[i].recomputes) original = plan.steps[i].operation.index;
    int64_t& load = loads[static_cast<size_t>(original)];
    load = std::max(load, by_step[i]);
  }
  return loads;
}

void SetTriggers(const Workbench& bench, Choices& choices) {
  const Sketch sketch = MakeSketch(bench, choices);
  const Timetable timetable = bench.timetable().Stretched(sketch.extra_ns);
  SwapSchedule schedule(timetable, bench.intervals(), bench.swap_order());
  schedule.Arrange(Swapped(choices));
  LoadTree load(bench.is_large() ? LoadsOnDemand(bench, choices) : sketch.load_bytes);
  std::vector<int32_t> swaps;
  for (const Decision& decision : choices.decisions) {
    const IdleInterval& interval = bench.interval(decision.interval);
    if (decision.treatment != Treatment::kSwap) continue;
    if (!bench.is_large())
      load.Add(Timetable::BeginOf(interval), timetable.EndOf(interval),
               -bench.footprint_bytes(decision.interval));
    if (!interval.content_dead) swaps.push_back(decision.interval);
  }
  const auto end = [&](int32_t swap) { return timetable.EndOf(bench.interval(swap)); };
  std::stable_sort(swaps.begin(), swaps.end(),
                   [&](int32_t a, int32_t b) { return end(a) < end(b); });
  int32_t earliest = 0;
  for (const int32_t swap : swaps) {
    const int64_t size_bytes = bench.footprint_bytes(swap);
    const int64_t start_ns = std::max<int64_t>(0, schedule.PrefetchStartNs(swap));
    int32_t trigger = std::clamp(timetable.FirstEndingAfter(start_ns),
                                 Timetable::BeginOf(bench.interval(swap)), end(swap));
    trigger = std::clamp(trigger, std::min(earliest, end(swap)), end(swap));
    trigger = std::max(
        trigger, load.LastAbove(trigger, end(swap), bench.problem().budget_bytes - size_bytes) + 1);
    load.Add(trigger, end(swap), size_bytes);
    choices.decisions[static_cast<size_t>(swap)].prefetch_at = {trigger %
                                                                timetable.operation_count()};
    earliest = trigger;
  }
}

}  // namespace spillway::scheduler
