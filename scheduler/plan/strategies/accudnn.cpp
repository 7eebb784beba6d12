#include "scheduler/plan/strategies/accudnn.h"

#include <algorithm>

#include "scheduler/plan/load_tree.h"

namespace spillway::scheduler {
namespace {

class Pinning {
 public:
  explicit Pinning(const Workbench& bench)
      : bench_(bench), load_(bench.timetable().load_bytes()), choices_(bench.NoChoices()) {
    const IterationProfile& profile = bench.profile();
    for (int32_t i = 0; i < bench.interval_count(); ++i) {
      const IdleInterval& interval = bench.interval(i);
      const bool spans = !interval.wraps && !interval.content_dead &&
                         profile.at(interval.from).phase == Phase::kForward &&
                         profile.at(interval.to).phase != Phase::kForward &&
                         !profile.at(interval.buffer).persistent;
      if (!spans) continue;
      swapped_.push_back(i);
      Set(i, Treatment::kSwap);
      turn_ = std::max(turn_, interval.from.index + 1);
    }
    std::stable_sort(swapped_.begin(), swapped_.end(), [&](int32_t a, int32_t b) {
      return bench.interval(a).to < bench.interval(b).to;
    });
  }

  Choices Pin() {
    for (size_t late = FirstLate(); late < swapped_.size(); late = FirstLate()) {
      if (!PinOneUpTo(late)) break;
    }
    for (size_t i = 0; i < swapped_.size();) {
      if (Fits(swapped_[i]))
        PinAt(i);
      else
        ++i;
    }
    SetTriggers();
    return choices_;
  }

 private:
  void Set(int32_t interval, Treatment treatment) {
    const IdleInterval& it = bench_.interval(interval);
    const int64_t size_bytes = bench_.footprint_bytes(interval);
    choices_.decisions[static_cast<size_t>(interval)].treatment = treatment;
    load_.Add(Timetable::BeginOf(it), it.to.index,
              treatment == Treatment::kSwap ? -size_bytes : size_bytes);
  }

  bool Fits(int32_t interval) const {
    const IdleInterval& it = bench_.interval(interval);
    return load_.Max(Timetable::BeginOf(it), it.to.index).load_bytes +
               bench_.footprint_bytes(interval) <=
           bench_.problem().budget_bytes;
  }

  size_t FirstLate() const {
    int64_t ready_ns = bench_.timetable().start_ns(turn_);
    for (size_t i = 0; i < swapped_.size(); ++i) {
      const IdleInterval& it = bench_.interval(swapped_[i]);
      ready_ns += bench_.timetable().to_device_ns(it.buffer);
      if (ready_ns > bench_.timetable().start_ns(it.to.index)) return i;
    }
    return swapped_.size();
  }

  bool PinOneUpTo(size_t late) {
    for (size_t i = 0; i <= late; ++i) {
      if (!Fits(swapped_[i])) continue;
      PinAt(i);
      return true;
    }
    return false;
  }

  void PinAt(size_t index) {
    Set(swapped_[index], Treatment::kStay);
    swapped_.erase(swapped_.begin() + static_cast<ptrdiff_t>(index));
  }

  // Prefetches run back to back from the turn, but none before its memory is free.
  void SetTriggers() {
    int64_t ready_ns = bench_.timetable().start_ns(turn_);
    int32_t latest = turn_;
    for (const int32_t interval : swapped_) {
      const IdleInterval& it = bench_.interval(interval);
      const int32_t running = std::max(0, bench_.timetable().FirstEndingAfter(ready_ns));
      int32_t trigger = std::clamp(running, std::min(latest, it.to.index), it.to.index);
      const int64_t size_bytes = bench_.footprint_bytes(interval);
      while (trigger < it.to.index && load_.Max(trigger, it.to.index).load_bytes + size_bytes >
                                          bench_.problem().budget_bytes)
        ++trigger;
      load_.Add(trigger, it.to.index, size_bytes);
      choices_.decisions[static_cast<size_t>(interval)].prefetch_at = {trigger};
      latest = trigger;
      ready_ns = std::max(ready_ns, bench_.timetable().start_ns(trigger)) +
                 bench_.timetable().to_device_ns(it.buffer);
    }
  }

  const Workbench& bench_;
  LoadTree load_;
  Choices choices_;
  std::vector<int32_t> swapped_;  // in backward's order
  int32_t turn_ = 0;              // the first operation after forward's last use
};

class AccUdnnStrategy : public ChoosingStrategy {
 public:
  using ChoosingStrategy::ChoosingStrategy;

  std::optional<Choices> Choose(Workbench& bench) const override { return Pinning(bench).Pin(); }
};

}  // namespace

const ChoosingStrategy& AccUdnn() {
  static const auto& strategy = *new AccUdnnStrategy(
      "accudnn", "AccUDNN: everything swaps, then what would be late is pinned (ICCD 2019)");
  return strategy;
}

}  // namespace spillway::scheduler
