// What a set of swaps does to memory when nothing may wait: offloads as early, prefetches as late
// as the link allows.
//
// Offloads leave one after another in the order in which their intervals begin, each as soon as its
// interval and the link allow; prefetches are scheduled backwards from the ends of their intervals.
// A buffer is away during the operations that lie wholly between the end of its offload and the
// start of its prefetch. The iteration is steady state: what is still copying at its end delays the
// next one's copies. (AutoSwap, section 4; des.py and swap.py of the reference.)
//
// Built once per problem by strategies that swap, and asked very often: a question costs a walk
// over all intervals. Not for two threads at once, as it reuses its memory.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan/timetable.h"

namespace spillway::scheduler {

// Intervals in the orders in which they are arranged: sorted once where many schedules are made for
// the same.
struct SwapOrder {
  explicit SwapOrder(const std::vector<IdleInterval>& intervals);

  std::vector<int32_t> by_begin, by_end;  // the latter from the last to the first
};

class SwapSchedule {
 public:
  // kNever: nothing waits for a copy, so a buffer is away only while no copy of it runs. kAsNeeded:
  // computation may wait, so a buffer can be away for the whole of its interval.
  enum class Waits { kNever, kAsNeeded };

  // All must outlive the schedule.
  SwapSchedule(const Timetable& timetable, const std::vector<IdleInterval>& intervals,
               const SwapOrder& order, Waits waits = Waits::kNever);

  // Operations during which a swapped interval's buffer is away: [begin, end), counting on past the
  // iteration's end.
  struct Away {
    int32_t begin = 0;
    int32_t end = 0;
    bool empty() const { return begin >= end; }
    int32_t length() const { return empty() ? 0 : end - begin; }
  };

  // One flag per interval. An interval that the link cannot serve in time is never away; it
  // occupies the link all the same.
  void Arrange(const std::vector<bool>& swapped);

  // Of the last arrangement.
  Away AwayOf(int32_t interval) const { return away_[static_cast<size_t>(interval)]; }
  // When the prefetch starts, as the schedule sees it; counts on past the iteration's end.
  int64_t PrefetchStartNs(int32_t interval) const {
    return prefetch_ns_[static_cast<size_t>(interval)];
  }
  // Load by operation: the timetable's less what is away.
  const std::vector<int64_t>& LoadBytes();

  // The away range of one interval if it had the link to itself: no arrangement can do better.
  Away AloneAwayOf(int32_t interval) const;

 private:
  bool IsAwayThroughout(const IdleInterval& interval) const {
    return interval.content_dead || waits_ == Waits::kAsNeeded;
  }
  void ArrangeOffloads(const std::vector<bool>& swapped);
  void ArrangePrefetches(const std::vector<bool>& swapped);
  Away AwayBetween(int64_t offloaded_ns, int64_t prefetch_ns) const;

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
