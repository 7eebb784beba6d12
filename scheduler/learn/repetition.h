// Whether the last two repetitions of a sequence of events are the same iteration, touch for touch.
//
// Asked by a sequence learner about a distance at which the tokens repeat; one use each. Reads the
// history.
//
// Repetition A are the positions [end - 2 distance, end - distance), B those up to the end.
// Invariants of a repetition that holds:
//   1. Allocations of A and B are matched one to one over all touches and allocations of equal
//   events.
//   2. A match is the same allocation (persistent), or two of equal size that were made one
//   distance apart. Where the earlier one
//      is older than A, and B's was made in A, the distance is not known to be exact: the first
//      iteration has more events. Nor is it where the earlier one was there before the first event,
//      and B's is younger than two repetitions.
//   3. Two that another thread made match where they came about one distance apart.
//   4. Of the bytes that A made half at least were freed by the end of B: setting up equal layers
//   is no iteration. And it touches something.
#pragma once

#include <cstdint>

#include "scheduler/learn/event_history.h"
#include "scheduler/learn/number_map.h"

namespace spillway::scheduler {

class Repetition {
 public:
  Repetition(const EventHistory& history, int64_t distance);

  bool holds() const { return holds_; }
  // Where it does not hold because an allocation of B is another than A's: a longer distance at
  // which the same is met, with equal tokens all the way of `run`; 0 for none.
  int64_t LongerDistance(int64_t run) const;

  int64_t distance() const { return distance_; }
  // Of the allocations that both touch.
  int64_t persistent_bytes() const { return persistent_bytes_; }
  int64_t a_begin() const { return a_begin_; }
  // B's allocation for one of A, A's for one of B; 0 for none.
  uint64_t InB(uint64_t of_a) const { return ValueOf(forward_, of_a); }
  uint64_t InA(uint64_t of_b) const { return ValueOf(backward_, of_b); }

 private:
  static uint64_t ValueOf(const NumberMap<uint64_t>& map, uint64_t key) {
    const uint64_t* value = map.Find(key);
    return value == nullptr ? 0 : *value;
  }
  bool Compare();
  bool CompareEvents(int64_t a);
  bool FreesWhatItMakes() const;
  bool Match(uint64_t a, uint64_t b, bool are_new);
  bool MayMatch(uint64_t a, uint64_t b) const;
  bool MayBothArrive(const KnownAllocation& a, const KnownAllocation& b) const;

  const EventHistory& history_;
  const int64_t distance_;
  const int64_t a_begin_;
  NumberMap<uint64_t> forward_, backward_;
  bool holds_ = false;
  int64_t persistent_bytes_ = 0;
  int64_t failed_position_ = -1, failed_touch_ = -1;  // in B
};

// Whether tokens that repeat for so long cannot do so by chance: events of few kinds must repeat
// more often.
bool IsMoreThanChance(const EventHistory& history, int64_t distance, int64_t run);

}  // namespace spillway::scheduler
