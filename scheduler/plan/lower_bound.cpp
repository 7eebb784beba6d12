#include "scheduler/plan/lower_bound.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/units.h"
#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/least_recompute.h"
#include "scheduler/plan/price_bound.h"
#include "scheduler/plan/recompute_chain.h"

namespace spillway::scheduler {
namespace {

constexpr size_t kOperationsTried = 48;
constexpr size_t kWindows = 6;               // parts of the iteration
constexpr int64_t kWorkForPrices = 300'000;  // rounds x (operations + buffers)
constexpr int64_t kLeastRounds = 50, kMostRounds = 1'000;
constexpr int64_t kImpossibleNs = std::numeric_limits<int64_t>::max() / 4;

int64_t SmallestWorkspaceBytes(const Problem& problem, const Operation& operation) {
  if (operation.workspaces.empty()) return 0;
  int64_t result_bytes = std::numeric_limits<int64_t>::max();
  for (const WorkspaceChoice& choice : operation.workspaces)
    result_bytes = std::min(result_bytes, choice.size_bytes);
  return FootprintOf(problem, result_bytes);
}

struct Relief {
  int64_t size_bytes;
  // From the last write to the operation: the copy out can run then.
  int64_t leaves_ns;
  // From the operation's start to the next use.
  int64_t returns_ns;
  int64_t recompute_ns;  // of the whole buffer; kImpossibleNs: not recomputable
};

// Of all buffers that can be evicted at an operation.
struct Reliefs {
  OperationId at;
  std::vector<Relief> reliefs;
  int64_t free_bytes = 0;  // leave, and need no restore
};

// Recomputes the cheapest buffers per byte first, with buffers split at will.
class CheapestRecompute {
 public:
  explicit CheapestRecompute(std::vector<Relief> reliefs) : by_cost_(std::move(reliefs)) {
    std::sort(by_cost_.begin(), by_cost_.end(), [](const Relief& a, const Relief& b) {
      return base::Wide{a.recompute_ns} * b.size_bytes < base::Wide{b.recompute_ns} * a.size_bytes;
    });
    for (const Relief& relief : by_cost_) {
      if (relief.recompute_ns >= kImpossibleNs) break;
      sum_bytes_.push_back(sum_bytes_.back() + relief.size_bytes);
      sum_ns_.push_back(sum_ns_.back() + relief.recompute_ns);
    }
  }

  int64_t Ns(int64_t bytes) const {
    if (bytes > sum_bytes_.back()) return kImpossibleNs;
    const auto whole = std::upper_bound(sum_bytes_.begin(), sum_bytes_.end(), bytes);
    const auto count = static_cast<size_t>(std::max<ptrdiff_t>(1, whole - sum_bytes_.begin()) - 1);
    const int64_t part_bytes = std::max<int64_t>(0, bytes - sum_bytes_[count]);
    if (part_bytes == 0) return sum_ns_[count];
    const Relief& last = by_cost_[count];
    return sum_ns_[count] + base::scale(last.recompute_ns, part_bytes, last.size_bytes);
  }

 private:
  std::vector<Relief> by_cost_;
  // Of the first so many; up to the first that cannot be recomputed.
  std::vector<int64_t> sum_bytes_ = {0}, sum_ns_ = {0};
};

struct Window {
  size_t from, until;
  bool holds(OperationId id) const { return At(id) >= from && At(id) < until; }
};

class Bound {
 public:
  explicit Bound(const Problem& problem)
      : problem_(problem),
        profile_(problem.iteration()),
        chains_(problem),
        intervals_(IdleIntervals(profile_, std::max<int64_t>(1, problem.min_movable_bytes))),
        recompute_ns_(LeastRecomputeNs(problem, chains_, intervals_)) {
    const DeviceModel& device = problem.device;
    to_host_rate_ = base::scale(device.to_host_bytes_per_second, device.link_share_permille, 1000);
    to_device_rate_ =
        base::scale(device.to_device_bytes_per_second, device.link_share_permille, 1000);
    MeasureMemory();
    starts_ns_.push_back(0);
    for (size_t i = 0; i < profile_.operations.size(); ++i) {
      const Operation& operation = profile_.operations[i];
      const int64_t room_bytes =
          problem.budget_bytes - floor_bytes_[i] + SmallestWorkspaceBytes(problem, operation);
      starts_ns_.push_back(starts_ns_.back() + FastestWithin(problem, operation, room_bytes));
    }
  }

  LowerBound Find() {
    LowerBound bound;
    for (size_t i = 0; i < floor_bytes_.size(); ++i) {
      if (floor_bytes_[i] <= bound.memory_bytes) continue;
      bound.memory_bytes = floor_bytes_[i];
      bound.memory_at = {static_cast<int32_t>(i)};
    }
    bound.possible = bound.memory_bytes <= problem_.budget_bytes;
    bound.iteration_ns = starts_ns_.back();
    std::vector<Reliefs> worst;
    for (OperationId id : WorstOperations()) {
      worst.push_back(ReliefsOver(id));
      const int64_t time_ns =
          starts_ns_.back() +
          std::max(ExtraNs(worst.back()), ExtraWithinNs({0, live_bytes_.size()}, worst.back()));
      if (time_ns <= bound.iteration_ns) continue;
      bound.iteration_ns = time_ns;
      bound.time_at = id;
    }
    const int64_t in_windows_ns = starts_ns_.back() + ExtraOfWindowsNs(worst);
    if (in_windows_ns <= bound.iteration_ns) return bound;
    bound.iteration_ns = in_windows_ns;
    bound.time_at = {};
    return bound;
  }

 private:
  // Buffers below min_movable_bytes are immovable.
  void MeasureMemory() {
    const size_t count = profile_.operations.size();
    std::vector<int64_t> live_change(count + 1, 0), fixed_change(count + 1, 0);
    for (const Buffer& buffer : profile_.buffers) {
      const int64_t size_bytes = FootprintOf(problem_, buffer.size_bytes);
      const size_t from = buffer.persistent ? 0 : At(buffer.born);
      const size_t until = buffer.persistent ? count : At(buffer.dies) + 1;
      live_change[from] += size_bytes;
      live_change[until] -= size_bytes;
      if (IsMovable(problem_, buffer)) continue;
      fixed_change[from] += size_bytes;
      fixed_change[until] -= size_bytes;
    }
    int64_t live_bytes = 0, fixed_bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t workspace_bytes = SmallestWorkspaceBytes(problem_, profile_.operations[i]);
      live_bytes += live_change[i];
      fixed_bytes += fixed_change[i];
      live_bytes_.push_back(live_bytes + workspace_bytes);
      floor_bytes_.push_back(fixed_bytes + workspace_bytes +
                             TouchedMovableBytes(problem_, profile_.operations[i]));
    }
  }

  // Any choice gives a valid bound.
  std::vector<OperationId> WorstOperations() const {
    std::vector<OperationId> result;
    const size_t count = live_bytes_.size();
    const size_t stretch = std::max<size_t>(1, (count + kOperationsTried - 1) / kOperationsTried);
    for (size_t begin = 0; begin < count; begin += stretch) {
      const auto first = live_bytes_.begin() + static_cast<ptrdiff_t>(begin);
      const auto last =
          live_bytes_.begin() + static_cast<ptrdiff_t>(std::min(count, begin + stretch));
      const auto worst = std::max_element(first, last);
      if (*worst > problem_.budget_bytes)
        result.push_back({static_cast<int32_t>(worst - live_bytes_.begin())});
    }
    return result;
  }

  // The ends, and the operations with the least live memory in between.
  std::vector<size_t> Cuts() const {
    const size_t count = live_bytes_.size();
    std::vector<size_t> cuts = {0};
    for (size_t i = 1; i < kWindows; ++i) {
      const auto first =
          live_bytes_.begin() +
          static_cast<ptrdiff_t>(std::max(cuts.back() + 1, count * (2 * i - 1) / (2 * kWindows)));
      const auto last =
          live_bytes_.begin() + static_cast<ptrdiff_t>(count * (2 * i + 1) / (2 * kWindows));
      if (first < last)
        cuts.push_back(static_cast<size_t>(std::min_element(first, last) - live_bytes_.begin()));
    }
    if (cuts.back() < count) cuts.push_back(count);
    return cuts;
  }

  // The costs of disjoint windows add up: each counts only waits and recomputations within itself.
  int64_t ExtraOfWindowsNs(const std::vector<Reliefs>& worst) const {
    const std::vector<size_t> cuts = Cuts();
    std::vector<int64_t> best_ns(cuts.size(), 0);  // of all before each cut
    for (size_t end = 1; end < cuts.size(); ++end) {
      for (size_t begin = 0; begin < end; ++begin) {
        int64_t extra_ns = 0;
        for (const Reliefs& over : worst) {
          const Window window{cuts[begin], cuts[end]};
          if (window.holds(over.at)) extra_ns = std::max(extra_ns, ExtraWithinNs(window, over));
        }
        best_ns[end] = std::max(best_ns[end], best_ns[begin] + extra_ns);
      }
    }
    return best_ns.back();
  }

  // Buffers written before the window, or needed only after it, count as free.
  int64_t ExtraWithinNs(const Window& window, const Reliefs& over) const {
    int64_t excess_bytes = ExcessBytes(over);
    const int64_t before_ns = starts_ns_[At(over.at)] - starts_ns_[window.from];
    const int64_t after_ns = starts_ns_[window.until] - starts_ns_[At(over.at)];
    std::vector<Relief> inside;
    for (const Relief& relief : over.reliefs) {
      if (relief.leaves_ns > before_ns || relief.returns_ns > after_ns) {
        excess_bytes -= relief.size_bytes;
      } else {
        inside.push_back(relief);
      }
    }
    return LeastExtraNs(inside, excess_bytes, true);
  }

  int64_t ExcessBytes(const Reliefs& over) const {
    return live_bytes_[At(over.at)] - problem_.budget_bytes - over.free_bytes;
  }

  // A host copy stays valid from the write on, even if the buffer was restored meanwhile. A buffer
  // that is never written was copied long ago.
  int64_t TimeSinceWritten(const IdleInterval& interval, OperationId id) const {
    const int64_t iteration_ns = starts_ns_.back(), now_ns = starts_ns_[At(id)];
    const OperationId before = chains_.WriterBefore(interval.buffer, id);
    if (before.index >= 0) return now_ns - starts_ns_[At(before) + 1];
    const OperationId last =
        chains_.WriterBefore(interval.buffer, {static_cast<int32_t>(profile_.operations.size())});
    if (last.index >= 0) return now_ns + iteration_ns - starts_ns_[At(last) + 1];
    return profile_.at(interval.buffer).kind == BufferKind::kInput ? now_ns : kImpossibleNs;
  }

  Reliefs ReliefsOver(OperationId id) const {
    Reliefs over{.at = id, .reliefs = {}};
    const int64_t iteration_ns = starts_ns_.back(), now_ns = starts_ns_[At(id)];
    for (size_t i = 0; i < intervals_.size(); ++i) {
      const IdleInterval& interval = intervals_[i];
      const bool covers = interval.wraps ? interval.from < id || id < interval.to
                                         : interval.from < id && id < interval.to;
      if (!covers) continue;
      const int64_t size_bytes = profile_.at(interval.buffer).size_bytes;
      const int64_t footprint_bytes = FootprintOf(problem_, size_bytes);
      if (interval.content_dead) {
        over.free_bytes += footprint_bytes;
        continue;
      }
      // Chunks are freed whole, but only the content is copied.
      over.free_bytes += footprint_bytes - size_bytes;
      int64_t returns_ns = starts_ns_[At(interval.to)] - now_ns;
      if (interval.to < id) returns_ns += iteration_ns;
      const int64_t written_ns = TimeSinceWritten(interval, id);
      over.reliefs.push_back({size_bytes, written_ns, returns_ns,
                              recompute_ns_[i] < 0 ? kImpossibleNs : recompute_ns_[i]});
    }
    return over;
  }

  // Each buffer is available for `window_ns(relief)` before a common end.
  template <class Window>
  static int64_t MovableBytes(std::vector<Relief> reliefs, int64_t rate, Window window_ns) {
    std::sort(reliefs.begin(), reliefs.end(),
              [&](const Relief& a, const Relief& b) { return window_ns(a) > window_ns(b); });
    int64_t moved_bytes = 0, waiting_bytes = 0;
    for (size_t i = 0; i < reliefs.size(); ++i) {
      waiting_bytes += reliefs[i].size_bytes;
      const int64_t next_ns = i + 1 < reliefs.size() ? window_ns(reliefs[i + 1]) : 0;
      const int64_t now_bytes = std::min(
          waiting_bytes, base::transferred_bytes(window_ns(reliefs[i]) - next_ns + 1, rate));
      moved_bytes += now_bytes;
      waiting_bytes -= now_bytes;
    }
    return moved_bytes;
  }

  // Waits before and after the operation add up, except for buffers evicted across the iteration's
  // end, where one wait can serve both. Either such buffers count as free (ExtraWithinNs), or only
  // the longer wait counts. Both are valid bounds.
  int64_t ExtraNs(const Reliefs& over) const {
    return LeastExtraNs(over.reliefs, ExcessBytes(over), false);
  }

  int64_t LeastExtraNs(const std::vector<Relief>& reliefs, int64_t excess_bytes,
                       bool waits_add_up) const {
    if (excess_bytes <= 0) return 0;
    const int64_t out_bytes =
        MovableBytes(reliefs, to_host_rate_, [](const Relief& r) { return r.leaves_ns; });
    const int64_t in_bytes =
        MovableBytes(reliefs, to_device_rate_, [](const Relief& r) { return r.returns_ns; });
    const CheapestRecompute cheapest(reliefs);
    const auto cost_ns = [&](int64_t swapped_bytes) {
      const int64_t before_ns =
          base::transfer_ns(std::max<int64_t>(0, swapped_bytes - out_bytes), to_host_rate_);
      const int64_t in_ns =
          base::transfer_ns(std::max<int64_t>(0, swapped_bytes - in_bytes), to_device_rate_);
      const int64_t again_ns = cheapest.Ns(excess_bytes - swapped_bytes);
      if (again_ns >= kImpossibleNs)
        return kImpossibleNs;  // a plateau: Least() moves to its right end
      const int64_t after_ns = std::max(in_ns, again_ns);
      return waits_add_up ? before_ns + after_ns : std::max(before_ns, after_ns);
    };
    return Least(cost_ns, excess_bytes);
  }

  // The minimum over [0, end] of a convex function: the three parts are convex, and so are their
  // sums and maxima.
  template <class Cost>
  static int64_t Least(Cost cost_ns, int64_t end) {
    int64_t low = 0, high = end;
    while (high - low > 2) {
      const int64_t third = (high - low) / 3;
      if (cost_ns(low + third) >= cost_ns(high - third)) {
        low += third;
      } else {
        high -= third;
      }
    }
    const int64_t result_ns =
        std::min({cost_ns(low), cost_ns(low + (high - low) / 2), cost_ns(high)});
    // Rounding errors of the parts.
    return std::max<int64_t>(0, result_ns - 4);
  }

  const Problem& problem_;
  const IterationProfile& profile_;
  RecomputeChains chains_;
  std::vector<IdleInterval> intervals_;
  const std::vector<int64_t> recompute_ns_;  // by interval
  std::vector<int64_t> starts_ns_;
  std::vector<int64_t> live_bytes_, floor_bytes_;  // by operation
  int64_t to_host_rate_ = 0, to_device_rate_ = 0;
};

}  // namespace

LowerBound FindLowerBound(const Problem& problem) { return Bound(problem).Find(); }

LowerBound FindTightBound(const Problem& problem) {
  LowerBound bound = FindLowerBound(problem);
  if (!bound.possible) return bound;
  const IterationProfile& profile = problem.iteration();
  const auto size = static_cast<int64_t>(profile.operations.size() + profile.buffers.size() + 1);
  const int64_t rounds = std::clamp(kWorkForPrices / size, kLeastRounds, kMostRounds);
  const int64_t priced_ns = BoundByPrices(problem, {.rounds = static_cast<int32_t>(rounds)});
  if (priced_ns <= bound.iteration_ns) return bound;
  bound.iteration_ns = priced_ns;
  bound.time_at = {};
  return bound;
}

int64_t DistancePermyriad(int64_t iteration_ns, const LowerBound& bound) {
  if (bound.iteration_ns <= 0) return 0;
  return base::scale(iteration_ns - bound.iteration_ns, 10'000, bound.iteration_ns);
}

}  // namespace spillway::scheduler
