#include "scheduler/plan/strategies/capuchin.h"

#include <algorithm>

#include "scheduler/plan/load_tree.h"

namespace spillway::scheduler {
namespace {

struct CapuchinCandidate {
  int32_t interval = -1;
  int64_t free_ns = 0;   // idle time less both copies; negative: a step waits
  int64_t chain_ns = 0;  // negative: cannot be recomputed
  int64_t size_bytes = 0;
};

// Compares products, so that zero overhead wins.
bool SavesMore(int64_t bytes, int64_t cost_ns, int64_t other_bytes, int64_t other_cost_ns) {
  __extension__ using Wide = __int128;
  return Wide{bytes} * other_cost_ns > Wide{other_bytes} * cost_ns;
}

class Chooser {
 public:
  explicit Chooser(const Workbench& bench)
      : bench_(bench), load_(bench.timetable().load_bytes()), choices_(bench.NoChoices()) {
    const Timetable& timetable = bench.timetable();
    for (int32_t i = 0; i < bench.interval_count(); ++i) {
      const IdleInterval& interval = bench.interval(i);
      const int64_t idle_ns =
          timetable.start_ns(timetable.EndOf(interval)) - timetable.end_ns(interval.from.index);
      const int64_t copies_ns = interval.content_dead ? 0
                                                      : timetable.to_host_ns(interval.buffer) +
                                                            timetable.to_device_ns(interval.buffer);
      candidates_.push_back({i, idle_ns - copies_ns, bench.ChainNs(i), bench.footprint_bytes(i)});
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const CapuchinCandidate& a, const CapuchinCandidate& b) {
                       return a.free_ns > b.free_ns;
                     });
  }

  Choices Choose() {
    for (;;) {
      const LoadTree::Highest highest = load_.Max();
      if (highest.load_bytes <= bench_.problem().budget_bytes) break;
      if (!TakeOneOver(highest.operation)) break;
    }
    return choices_;
  }

 private:
  bool Crosses(const CapuchinCandidate& candidate, int32_t operation) const {
    const IdleInterval& interval = bench_.interval(candidate.interval);
    const int32_t begin = Timetable::BeginOf(interval);
    const int32_t end = bench_.timetable().EndOf(interval);
    const int32_t next = operation + bench_.timetable().operation_count();
    return (begin <= operation && operation < end) || (begin <= next && next < end);
  }

  bool TakeOneOver(int32_t operation) {
    const CapuchinCandidate* swap = nullptr;
    const CapuchinCandidate* recompute = nullptr;
    for (const CapuchinCandidate& candidate : candidates_) {
      if (IsEvictedBefore(candidate) || !Crosses(candidate, operation)) continue;
      if (candidate.free_ns >= 0) return Take(candidate, Treatment::kSwap, Reason::kHidden);
      if (!swap ||
          SavesMore(candidate.size_bytes, -candidate.free_ns, swap->size_bytes, -swap->free_ns))
        swap = &candidate;
      if (candidate.chain_ns >= 0 &&
          (!recompute || SavesMore(candidate.size_bytes, candidate.chain_ns, recompute->size_bytes,
                                   recompute->chain_ns)))
        recompute = &candidate;
    }
    if (recompute && (!swap || !SavesMore(swap->size_bytes, -swap->free_ns, recompute->size_bytes,
                                          recompute->chain_ns)))
      return Take(*recompute, Treatment::kRecompute, Reason::kCheapestRelief);
    return swap && Take(*swap, Treatment::kSwap, Reason::kCheapestRelief);
  }

  bool IsEvictedBefore(const CapuchinCandidate& candidate) const {
    return choices_.decisions[static_cast<size_t>(candidate.interval)].treatment !=
           Treatment::kStay;
  }

  bool Take(const CapuchinCandidate& candidate, Treatment treatment, Reason reason) {
    Decision& decision = choices_.decisions[static_cast<size_t>(candidate.interval)];
    decision.treatment = treatment;
    decision.reason = reason;
    const IdleInterval& interval = bench_.interval(candidate.interval);
    load_.Add(Timetable::BeginOf(interval), bench_.timetable().EndOf(interval),
              -candidate.size_bytes);
    return true;
  }

  const Workbench& bench_;
  LoadTree load_;
  Choices choices_;
  std::vector<CapuchinCandidate> candidates_;  // largest free time first
};

class CapuchinStrategy : public ChoosingStrategy {
 public:
  using ChoosingStrategy::ChoosingStrategy;

  std::optional<Choices> Choose(Workbench& bench) const override { return Chooser(bench).Choose(); }
};

}  // namespace

const ChoosingStrategy& Capuchin() {
  static const auto& strategy = *new CapuchinStrategy(
      "capuchin", "Capuchin: hidden swaps, then the most memory saved per second (ASPLOS 2020)");
  return strategy;
}

}  // namespace spillway::scheduler
