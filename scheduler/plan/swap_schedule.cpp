#include "scheduler/plan/swap_schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace spillway::scheduler {

SwapOrder::SwapOrder(const std::vector<IdleInterval>& intervals) : by_begin(intervals.size()) {
  std::iota(by_begin.begin(), by_begin.end(), 0);
  by_end = by_begin;
  const auto from = [&](int32_t i) { return intervals[static_cast<size_t>(i)].from; };
  const auto to = [&](int32_t i) { return intervals[static_cast<size_t>(i)].to; };
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](int32_t a, int32_t b) { return from(a) < from(b); });
  std::stable_sort(by_end.begin(), by_end.end(),
                   [&](int32_t a, int32_t b) { return to(b) < to(a); });
}

SwapSchedule::SwapSchedule(const Timetable& timetable, const std::vector<IdleInterval>& intervals,
                           const SwapOrder& order, Waits waits)
    : timetable_(timetable),
      intervals_(intervals),
      order_(order),
      waits_(waits),
      offloaded_ns_(intervals.size(), 0),
      prefetch_ns_(intervals.size(), 0),
      away_(intervals.size()) {}

void SwapSchedule::Arrange(const std::vector<bool>& swapped) {
  ArrangeOffloads(swapped);
  ArrangePrefetches(swapped);
  chosen_.clear();
  for (const int32_t i : order_.by_begin) {
    const auto at = static_cast<size_t>(i);
    if (!swapped[at]) continue;
    chosen_.push_back(i);
    const IdleInterval& interval = intervals_[at];
    away_[at] = IsEvictedThroughout(interval)
                    ? Away{Timetable::BeginOf(interval), timetable_.EndOf(interval)}
                    : EvictedBetween(offloaded_ns_[at], prefetch_ns_[at]);
  }
}

// The second pass accounts for copies left over from the first one's end.
void SwapSchedule::ArrangeOffloads(const std::vector<bool>& swapped) {
  int64_t idle_from_ns = 0;
  for (int pass = 0; pass < 2; ++pass) {
    idle_from_ns = std::max<int64_t>(0, idle_from_ns - timetable_.iteration_ns());
    if (pass == 0) idle_from_ns = 0;
    for (const int32_t i : order_.by_begin) {
      const IdleInterval& interval = intervals_[static_cast<size_t>(i)];
      if (!swapped[static_cast<size_t>(i)] || interval.content_dead) continue;
      idle_from_ns = std::max(idle_from_ns, timetable_.end_ns(interval.from.index)) +
                     timetable_.to_host_ns(interval.buffer);
      offloaded_ns_[static_cast<size_t>(i)] = idle_from_ns;
    }
  }
}

void SwapSchedule::ArrangePrefetches(const std::vector<bool>& swapped) {
  const int64_t iteration_ns = timetable_.iteration_ns();
  int64_t busy_from_ns = iteration_ns;
  for (int pass = 0; pass < 2; ++pass) {
    busy_from_ns = pass == 0 ? iteration_ns : std::min(iteration_ns, busy_from_ns + iteration_ns);
    for (const int32_t i : order_.by_end) {
      const IdleInterval& interval = intervals_[static_cast<size_t>(i)];
      if (!swapped[static_cast<size_t>(i)] || interval.content_dead) continue;
      busy_from_ns = std::min(busy_from_ns, timetable_.start_ns(interval.to.index)) -
                     timetable_.to_device_ns(interval.buffer);
      prefetch_ns_[static_cast<size_t>(i)] = busy_from_ns + (interval.wraps ? iteration_ns : 0);
    }
  }
}

SwapSchedule::Away SwapSchedule::EvictedBetween(int64_t offloaded_ns, int64_t prefetch_ns) const {
  if (prefetch_ns <= offloaded_ns) return {};
  return {timetable_.FirstStartingFrom(offloaded_ns), timetable_.FirstEndingAfter(prefetch_ns)};
}

SwapSchedule::Away SwapSchedule::EvictedRangeAlone(int32_t interval_index) const {
  const IdleInterval& interval = intervals_[static_cast<size_t>(interval_index)];
  if (IsEvictedThroughout(interval))
    return {Timetable::BeginOf(interval), timetable_.EndOf(interval)};
  return EvictedBetween(
      timetable_.end_ns(interval.from.index) + timetable_.to_host_ns(interval.buffer),
      timetable_.start_ns(timetable_.EndOf(interval)) - timetable_.to_device_ns(interval.buffer));
}

const std::vector<int64_t>& SwapSchedule::LoadBytes() {
  const auto count = static_cast<size_t>(timetable_.operation_count());
  load_bytes_.assign(2 * count + 1, 0);
  for (const int32_t i : chosen_) {
    const Away away = EvictedRangeOf(i);
    if (away.empty()) continue;
    const int64_t size_bytes =
        timetable_.footprint_bytes(intervals_[static_cast<size_t>(i)].buffer);
    load_bytes_[static_cast<size_t>(away.begin)] -= size_bytes;
    load_bytes_[static_cast<size_t>(away.end)] += size_bytes;
  }
  for (size_t i = 1; i < 2 * count; ++i) load_bytes_[i] += load_bytes_[i - 1];
  for (size_t i = 0; i < count; ++i)
    load_bytes_[i] += timetable_.load_bytes()[i] + load_bytes_[i + count];
  load_bytes_.resize(count);
  return load_bytes_;
}

}  // namespace spillway::scheduler
