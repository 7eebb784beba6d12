// A set of swaps without waits: offloads as early, and prefetches as late, as the link allows.
//
// Offloads run in the order in which their intervals begin. Prefetches are scheduled backward from
// the intervals' ends. A buffer is evicted during the operations wholly between its two copies.
// Copies still running at the iteration's end delay those of the next one. (AutoSwap, section 4;
// des.py and swap.py of the reference.)
//
// Built once per problem; each query walks all intervals. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan/timetable.h"

namespace spillway::scheduler {

struct SwapOrder {
  explicit SwapOrder(const std::vector<IdleInterval>& intervals);

  std::vector<int32_t> by_begin, by_end;  // by_end is descending
};

class SwapSchedule {
 public:
  // kNever: a buffer is evicted only between its copies. kAsNeeded: for its whole interval, as
  // computation may wait.
  enum class Waits { kNever, kAsNeeded };

  SwapSchedule(const Timetable& timetable, const std::vector<IdleInterval>& intervals,
               const SwapOrder& order, Waits waits = Waits::kNever);

  // Operations [begin, end), counting on past the iteration's end.
  struct Away {
    int32_t begin = 0;
    int32_t end = 0;
    bool empty() const { return begin >= end; }
    int32_t length() const { return empty() ? 0 : end - begin; }
  };

  // A swap that the link cannot serve in time evicts nothing but still occupies the link.
  void Arrange(const std::vector<bool>& swapped);

  Away EvictedRangeOf(int32_t interval) const { return away_[static_cast<size_t>(interval)]; }
  // The scheduled start, counting on past the iteration's end.
  int64_t PrefetchStartNs(int32_t interval) const {
    return prefetch_ns_[static_cast<size_t>(interval)];
  }
  // The timetable's load without evicted buffers.
  const std::vector<int64_t>& LoadBytes();

  // As if it had the link to itself: an upper limit.
  Away EvictedRangeAlone(int32_t interval) const;

 private:
  bool IsEvictedThroughout(const IdleInterval& interval) const {
    return interval.content_dead || waits_ == Waits::kAsNeeded;
  }
  void ArrangeOffloads(const std::vector<bool>& swapped);
  void ArrangePrefetches(const std::vector<bool>& swapped);
  Away EvictedBetween(int64_t offloaded_ns, int64_t prefetch_ns) const;

  const Timetable& timetable_;
  const std::vector<IdleInterval>& intervals_;
  const SwapOrder& order_;
  const Waits waits_;
  std::vector<int64_t> offloaded_ns_, prefetch_ns_;
  std::vector<Away> away_;
  std::vector<int32_t> chosen_;
  std::vector<int64_t> load_bytes_;
};

}  // namespace spillway::scheduler
