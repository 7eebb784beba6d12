#include "scheduler/plan/strategies/bulk_relief.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "scheduler/plan/load_tree.h"

namespace spillway::scheduler {
namespace {

constexpr int kBulkRounds = 24;
constexpr int kMostValuations = 4;      // of one choice in a round
constexpr double kLeastProgress = 0.9;  // of the load that a round finds, against the one before
using Waits = SwapSchedule::Waits;

// The load above the target, weighted by duration, in groups of operations. It changes as choices
// are made. Operations count on past the iteration's end.
class Excess {
 public:
  Excess(const std::vector<int64_t>& loads_bytes, const Timetable& timetable, int64_t target_bytes)
      : count_(static_cast<int32_t>(loads_bytes.size())) {
    constexpr int64_t kLeastWeightNs = 100'000;  // gives short operations some weight
    for (int32_t i = 0; i < count_; ++i) {
      above_bytes_.push_back(
          static_cast<double>(loads_bytes[static_cast<size_t>(i)] - target_bytes));
      weights_.push_back(static_cast<double>(timetable.duration_ns(i) + kLeastWeightNs));
    }
    groups_.resize(static_cast<size_t>((count_ + kGroup - 1) / kGroup));
    above_bytes_.resize(groups_.size() * kGroup, 0);
    weights_.resize(groups_.size() * kGroup, 0);
    for (size_t group = 0; group < groups_.size(); ++group) Measure(group);
  }

  bool none() const { return area() <= 0; }
  double area() const {
    double sum = 0;
    for (const Group& group : groups_) sum += group.area;
    return sum;
  }

  // From evicting so much during [begin, end). Exact at the ends, an upper estimate between.
  double Relief(int32_t begin, int32_t end, int64_t size_bytes) const {
    double sum = 0;
    ForParts(begin, end, [&](int32_t from, int32_t to) { sum += ReliefIn(from, to, size_bytes); });
    return sum;
  }

  void Change(int32_t begin, int32_t end, int64_t bytes) {
    ForParts(begin, end, [&](int32_t from, int32_t to) {
      for (int32_t i = from; i < to; ++i)
        above_bytes_[static_cast<size_t>(i)] += static_cast<double>(bytes);
      if (from < to) {
        for (int32_t group = from / kGroup; group <= (to - 1) / kGroup; ++group)
          Measure(static_cast<size_t>(group));
      }
    });
  }

 private:
  static constexpr int32_t kGroup = 16, kLanes = 4;
  struct Group {
    double area = 0;    // above the target
    double weight = 0;  // of operations above the target
  };

  template <class Visit>
  void ForParts(int32_t begin, int32_t end, Visit visit) const {
    if (begin >= count_) return ForParts(begin - count_, end - count_, visit);
    visit(begin, std::min(end, count_));
    if (end > count_) visit(0, std::min(end - count_, count_));
  }

  double ReliefOf(int32_t operation, int64_t size_bytes) const {
    const auto i = static_cast<size_t>(operation);
    if (above_bytes_[i] <= 0) return 0;
    return std::min(above_bytes_[i], static_cast<double>(size_bytes)) * weights_[i];
  }

  double ReliefIn(int32_t from, int32_t to, int64_t size_bytes) const {
    double sum = 0;
    while (from < to && from % kGroup != 0) sum += ReliefOf(from++, size_bytes);
    if (from + kGroup <= to) sum += ReliefOfGroups(from / kGroup, to / kGroup, size_bytes);
    from = std::max(from, to / kGroup * kGroup);
    while (from < to) sum += ReliefOf(from++, size_bytes);
    return sum;
  }

  // In lanes, as Measure().
  double ReliefOfGroups(int32_t begin, int32_t end, int64_t size_bytes) const {
    double sum[kLanes] = {};
    const auto size = static_cast<double>(size_bytes);
    const auto relief = [&](int32_t i) {
      const Group& group = groups_[static_cast<size_t>(i)];
      return std::min(group.area, group.weight * size);
    };
    for (; begin + kLanes <= end; begin += kLanes) {
      for (int32_t lane = 0; lane < kLanes; ++lane) sum[lane] += relief(begin + lane);
    }
    for (; begin < end; ++begin) sum[0] += relief(begin);
    return sum[0] + sum[1] + sum[2] + sum[3];
  }

  // In lanes, so that no sum waits for the one before it. Operations past the last have no weight.
  void Measure(size_t index) {
    double area[kLanes] = {}, weight[kLanes] = {};
    const size_t begin = index * kGroup;
    for (size_t first = begin; first < begin + kGroup; first += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const double above = above_bytes_[first + lane];
        const double counted = above > 0 ? weights_[first + lane] : 0;
        area[lane] += above * counted;
        weight[lane] += counted;
      }
    }
    groups_[index] = {area[0] + area[1] + area[2] + area[3],
                      weight[0] + weight[1] + weight[2] + weight[3]};
  }

  const int32_t count_;
  std::vector<double> above_bytes_;  // by operation; whole numbers
  std::vector<double> weights_;
  std::vector<Group> groups_;
};

// One direction of the link in slices of time, over and over the same iteration. Copies take the
// first free time after a moment, or the last before one.
class LinkTime {
 public:
  enum class Order { kFirstAfter, kLastBefore };

  LinkTime(int64_t iteration_ns, Order order)
      : order_(order),
        slice_ns_(std::max<int64_t>(1, (iteration_ns + kSlices - 1) / kSlices)),
        free_ns_(kSlices, slice_ns_),
        jump_(kSlices, 1) {}

  // The moment when a copy ends (or begins, for kLastBefore) that is ready at `from_ns`. -1: it
  // would take longer than `within_ns`.
  int64_t Find(int64_t from_ns, int64_t copy_ns, int64_t within_ns) {
    return Walk(from_ns, copy_ns, within_ns, false);
  }
  void Take(int64_t from_ns, int64_t copy_ns, int64_t within_ns) {
    Walk(from_ns, copy_ns, within_ns, true);
  }

 private:
  static constexpr int64_t kSlices = 4096;

  size_t Index(int64_t slice) const { return static_cast<size_t>(slice & (kSlices - 1)); }
  int64_t Sign() const { return order_ == Order::kFirstAfter ? 1 : -1; }

  // Both directions walk the same way; backward time is mirrored.
  int64_t Walk(int64_t from_ns, int64_t copy_ns, int64_t within_ns, bool takes) {
    const int64_t start_ns =
        Sign() * from_ns + kSlices * slice_ns_;  // mirrored time stays positive
    int64_t slice = start_ns / slice_ns_;
    int64_t usable_ns = slice_ns_ - start_ns % slice_ns_;  // of the first slice
    const int64_t last = (start_ns + within_ns) / slice_ns_;
    int64_t left_ns = copy_ns;
    while (true) {
      slice = SkipFull(slice, last);
      if (slice > last) return -1;
      int64_t& free_ns = free_ns_[Index(slice)];
      const int64_t got_ns = std::min({free_ns, usable_ns, left_ns});
      left_ns -= got_ns;
      if (takes) free_ns -= got_ns;
      if (left_ns == 0) break;
      usable_ns = slice_ns_;
      ++slice;
    }
    const int64_t end_ns =
        std::max(start_ns + copy_ns, std::min((slice + 1) * slice_ns_, start_ns + within_ns + 1) -
                                         free_ns_[Index(slice)]);
    if (end_ns > start_ns + within_ns) return -1;
    return Sign() * (end_ns - kSlices * slice_ns_);
  }

  int64_t SkipFull(int64_t slice, int64_t last) {
    int64_t at = slice;
    while (at <= last && free_ns_[Index(at)] == 0) at += jump_[Index(at)];
    for (int64_t i = slice; i < at;) {  // later walks take one jump
      const int64_t next = i + jump_[Index(i)];
      jump_[Index(i)] = std::min<int64_t>(at - i, kSlices);
      i = next;
    }
    return at;
  }

  const Order order_;
  const int64_t slice_ns_;
  std::vector<int64_t> free_ns_, jump_;
};

struct BulkOption {
  int32_t interval = -1;
  Treatment treatment = Treatment::kStay;
  bool keep = true;
  double value = 0;
  int valuations = 0;

  bool operator<(const BulkOption& other) const {
    if (value != other.value) return value < other.value;
    return std::pair(other.interval, other.treatment) < std::pair(interval, treatment);
  }
};

struct OperationRange {
  int32_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

class BulkRound {
 public:
  BulkRound(const Workbench& bench, const ReliefOptions& options, Choices& choices,
            std::vector<bool>& late)
      : bench_(bench),
        options_(options),
        choices_(choices),
        late_(late),
        sketch_(MakeSketch(bench, choices)),
        timetable_(bench.timetable().Stretched(sketch_.extra_ns)),
        schedule_(timetable_, bench.intervals(), bench.swap_order(), options.waits),
        swapped_(choices.decisions.size()),
        to_host_(timetable_.iteration_ns(), LinkTime::Order::kFirstAfter),
        to_device_(timetable_.iteration_ns(), LinkTime::Order::kLastBefore) {
    DropLateSwaps();
    TakeLinkTime();
  }

  Excess Left() { return Excess(Loads(), timetable_, options_.target_bytes); }

  // How many it took.
  int64_t Take(Excess& excess) {
    std::priority_queue<BulkOption> waiting = Options(excess);
    int64_t taken = 0;
    while (!waiting.empty()) {
      BulkOption option = waiting.top();
      waiting.pop();
      bench_.AddWork(1);
      const double before = option.value;
      option.value = ValueOf(excess, option);
      if (option.value <= 0) continue;
      if (option.value < before * 0.99 && !waiting.empty() && option < waiting.top() &&
          ++option.valuations < kMostValuations) {
        waiting.push(option);
        continue;
      }
      Choose(excess, option);
      ++taken;
    }
    return taken;
  }

  // Gives up what the remaining room allows, the most expensive first.
  void GiveUp() {
    LoadTree tree(Loads());
    std::vector<std::pair<int64_t, int32_t>> order;
    for (const Decision& decision : choices_.decisions) {
      if (decision.treatment == Treatment::kRecompute)
        order.emplace_back(-bench_.ChainNs(decision.interval) - kMostNanos / 2, decision.interval);
      if (decision.treatment == Treatment::kSwap &&
          !bench_.interval(decision.interval).content_dead)
        order.emplace_back(-bench_.footprint_bytes(decision.interval), decision.interval);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [key, i] : order) {
      const bool swaps = TreatmentOf(i) == Treatment::kSwap;
      const OperationRange range = swaps ? RangeOfSwap(i) : RangeOfRecompute(i);
      const int64_t bytes = bench_.footprint_bytes(i);
      if (!range.empty() &&
          tree.Max(range.begin, range.end).load_bytes + bytes > options_.target_bytes)
        continue;
      tree.Add(range.begin, range.end, bytes);
      choices_.decisions[static_cast<size_t>(i)].treatment = Treatment::kStay;
    }
  }

 private:
  std::vector<int64_t> Loads() {
    std::vector<int64_t> loads = schedule_.LoadBytes();
    const std::vector<int64_t>& without = timetable_.load_bytes();
    const std::vector<int64_t> least = LoadsOnDemand(bench_, choices_);
    for (size_t i = 0; i < loads.size(); ++i)
      loads[i] = std::max(loads[i] + sketch_.load_bytes[i] - without[i], least[i]);
    return loads;
  }

  Treatment TreatmentOf(int32_t i) const {
    return choices_.decisions[static_cast<size_t>(i)].treatment;
  }

  void DropLateSwaps() {
    for (size_t i = 0; i < swapped_.size(); ++i)
      swapped_[i] = choices_.decisions[i].treatment == Treatment::kSwap;
    schedule_.Arrange(swapped_);
    bool any = false;
    for (size_t i = 0; i < swapped_.size(); ++i) {
      if (!swapped_[i] || !schedule_.EvictedRangeOf(static_cast<int32_t>(i)).empty()) continue;
      swapped_[i] = false;
      late_[i] = true;
      choices_.decisions[i].treatment = Treatment::kStay;
      any = true;
    }
    if (any) schedule_.Arrange(swapped_);
  }

  void TakeLinkTime() {
    for (const int32_t i : bench_.swap_order().by_begin) {
      if (swapped_[static_cast<size_t>(i)] && IsCopiedOut(i))
        to_host_.Take(OutFromNs(i), OutNs(i), timetable_.iteration_ns());
    }
    for (const int32_t i : bench_.swap_order().by_end) {
      if (swapped_[static_cast<size_t>(i)] && !bench_.interval(i).content_dead)
        to_device_.Take(InUntilNs(i), InNs(i), timetable_.iteration_ns());
    }
  }

  bool IsCopiedOut(int32_t i) const { return bench_.IsCopied(i); }
  int64_t OutFromNs(int32_t i) const { return timetable_.end_ns(bench_.interval(i).from.index); }
  int64_t InUntilNs(int32_t i) const {
    return timetable_.start_ns(timetable_.EndOf(bench_.interval(i)));
  }
  int64_t OutNs(int32_t i) const { return timetable_.to_host_ns(bench_.interval(i).buffer); }
  int64_t InNs(int32_t i) const { return timetable_.to_device_ns(bench_.interval(i).buffer); }

  OperationRange RangeOfSwap(int32_t i) const {
    const SwapSchedule::Away away = schedule_.EvictedRangeOf(i);
    return {away.begin, away.end};
  }

  OperationRange Throughout(int32_t i) const {
    const IdleInterval& interval = bench_.interval(i);
    return {Timetable::BeginOf(interval), timetable_.EndOf(interval)};
  }

  // Empty: the link has no time left for both copies.
  OperationRange HiddenRange(int32_t i) {
    const IdleInterval& interval = bench_.interval(i);
    if (interval.content_dead) return Throughout(i);
    const int64_t from_ns = OutFromNs(i), until_ns = InUntilNs(i);
    const int64_t out_ns = to_host_.Find(from_ns, OutNs(i), until_ns - from_ns);
    const int64_t in_ns = to_device_.Find(until_ns, InNs(i), until_ns - from_ns);
    if (out_ns < 0 || in_ns < 0 || in_ns <= out_ns) return {};
    return {timetable_.FirstStartingFrom(out_ns), timetable_.FirstEndingAfter(in_ns)};
  }

  OperationRange RangeOfRecompute(int32_t i) const {
    const IdleInterval& interval = bench_.interval(i);
    const int32_t rebuilt = RebuiltWithin(interval);
    return {Timetable::BeginOf(interval), rebuilt >= 0 ? rebuilt : interval.to.index};
  }

  int32_t RebuiltWithin(const IdleInterval& interval) const {
    const int32_t at = sketch_.rebuilt_at[static_cast<size_t>(interval.buffer.index)];
    return at > interval.from.index && at <= interval.to.index ? at : -1;
  }

  std::priority_queue<BulkOption> Options(const Excess& excess) {
    std::vector<BulkOption> options;
    const auto add = [&](BulkOption option) {
      option.value = ValueOf(excess, option);
      if (option.value > 0) options.push_back(option);
    };
    for (int32_t i = 0; i < bench_.interval_count(); ++i) {
      const Decision& decision = choices_.decisions[static_cast<size_t>(i)];
      if (decision.treatment == Treatment::kRecompute && decision.keep_when_rebuilt)
        add({i, Treatment::kRecompute, false});
      if (decision.treatment != Treatment::kStay) continue;
      if (options_.swaps && !late_[static_cast<size_t>(i)]) add({i, Treatment::kSwap});
      if (options_.recomputes && bench_.ChainNs(i) >= 0) add({i, Treatment::kRecompute});
    }
    return std::priority_queue<BulkOption>(std::less<BulkOption>(), std::move(options));
  }

  bool IsRelease(const BulkOption& option) const {
    return option.treatment == Treatment::kRecompute && !option.keep;
  }

  double ValueOf(const Excess& excess, const BulkOption& option) {
    const int32_t i = option.interval;
    const bool is_taken = TreatmentOf(i) != Treatment::kStay;
    if (is_taken != IsRelease(option)) return 0;
    const OperationRange range = RangeOf(option);
    if (range.empty()) return 0;
    return excess.Relief(range.begin, range.end, bench_.footprint_bytes(i)) / CostNs(option);
  }

  OperationRange RangeOf(const BulkOption& option) {
    const int32_t i = option.interval;
    if (option.treatment == Treatment::kSwap)
      return options_.waits == Waits::kAsNeeded ? Throughout(i) : HiddenRange(i);
    if (!option.keep) {
      const int32_t rebuilt = RebuiltWithin(bench_.interval(i));
      return rebuilt < 0 ? OperationRange{} : OperationRange{rebuilt, bench_.interval(i).to.index};
    }
    return RangeOfRecompute(i);
  }

  double CostNs(const BulkOption& option) const {
    const int32_t i = option.interval;
    int64_t cost_ns = 0;
    if (option.treatment == Treatment::kSwap) {
      cost_ns = bench_.IsCopied(i) ? (OutNs(i) + MappingNs(i)) / options_.copy_discount : 1;
    } else if (!option.keep) {
      cost_ns = 2 * bench_.ChainNs(i);
    } else {
      cost_ns = bench_.ChainNs(i);
      if (RebuiltWithin(bench_.interval(i)) >= 0) cost_ns /= options_.copy_discount;
    }
    return static_cast<double>(std::max<int64_t>(1, cost_ns));
  }

  int64_t MappingNs(int32_t i) const {
    if (options_.swap_costs == SwapCosts::kCopies) return 0;
    const MappingPrices& prices = bench_.problem().device.mapping;
    const int64_t bytes = bench_.footprint_bytes(i);
    return prices.UnmapNs(bytes) + prices.MapNs(bytes);
  }

  void Choose(Excess& excess, const BulkOption& option) {
    const int32_t i = option.interval;
    const OperationRange range = RangeOf(option);
    excess.Change(range.begin, range.end, -bench_.footprint_bytes(i));
    Decision& decision = choices_.decisions[static_cast<size_t>(i)];
    decision.treatment = option.treatment;
    decision.keep_when_rebuilt = option.keep;
    decision.reason =
        option.treatment == Treatment::kSwap ? Reason::kHidden : Reason::kCheapestRelief;
    if (option.treatment != Treatment::kSwap) return;
    const int64_t within_ns = InUntilNs(i) - OutFromNs(i);
    if (IsCopiedOut(i)) to_host_.Take(OutFromNs(i), OutNs(i), within_ns);
    if (!bench_.interval(i).content_dead) to_device_.Take(InUntilNs(i), InNs(i), within_ns);
  }

  const Workbench& bench_;
  const ReliefOptions& options_;
  Choices& choices_;
  std::vector<bool>& late_;
  const Sketch sketch_;
  const Timetable timetable_;  // stretched by the chains
  SwapSchedule schedule_;
  std::vector<bool> swapped_;
  LinkTime to_host_, to_device_;
};

bool FitsInBulk(const Workbench& bench, const ReliefOptions& options, const Choices& choices) {
  std::vector<bool> late(choices.decisions.size(), false);
  Choices same = choices;
  BulkRound round(bench, options, same, late);
  return same == choices && round.Left().none();
}

}  // namespace

std::optional<Choices> RelieveInBulk(const Workbench& bench, ReliefOptions options,
                                     Choices choices) {
  constexpr double kNothingYet = std::numeric_limits<double>::infinity();
  std::vector<bool> late(choices.decisions.size(), false);
  double before = kNothingYet;
  for (int i = 0; i < kBulkRounds && !bench.is_spent(); ++i) {
    bench.AddWork(bench.size());
    BulkRound round(bench, options, choices, late);
    Excess excess = round.Left();
    if (excess.none()) {
      const Choices whole = choices;
      round.GiveUp();
      if (!FitsInBulk(bench, options, choices)) choices = whole;
      SetTriggers(bench, choices);
      return choices;
    }
    const double left = excess.area();
    const bool goes_on = left < before * kLeastProgress && round.Take(excess) > 0;
    before = left;
    if (goes_on) continue;
    if (options.waits == Waits::kAsNeeded) return std::nullopt;
    options.waits = Waits::kAsNeeded;  // the target is unreachable without
    options.copy_discount = 1;
    late.assign(late.size(), false);
    before = kNothingYet;
  }
  return std::nullopt;
}

}  // namespace spillway::scheduler
