// Checks whether the last two repetitions of an event sequence are the same iteration, by touches.
// Made for a distance at which tokens repeat; one use.
//
// Repetition A is the positions [end - 2 distance, end - distance); B is the rest up to the end.
// Invariants of a repetition that holds:
//   1. All allocations of A and B match one to one.
//   2. A match is the same allocation (persistent), or two of equal size made one distance apart.
//   3. That distance may be inexact in two cases. The earlier allocation is older than A and the
//      later one was made in A: the first iteration has more events. Or the earlier one predates
//      the first event, and the later one is younger than two repetitions.
//   4. Two allocations by another thread match if they arrived about one distance apart.
//   5. A few operations may be stray, one in kTokensPerStray of a long iteration: they differ in
//      token or touches. What stale words in a kernel's parameters name changes from one iteration
//      to the next. Such an operation says nothing about which allocations match. With equal
//      tokens it counts only once the repetition `has_lasted`: first iterations may differ in it.
//   6. At least half of the bytes allocated in A were freed by the end of B: setting up equal
//      layers is no iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/learn/event_history.h"
#include "scheduler/learn/number_map.h"

namespace spillway::scheduler {

class Repetition {
 public:
  Repetition(const EventHistory& history, int64_t distance, bool has_lasted);

  bool holds() const { return holds_; }
  // By the distance from A's beginning.
  bool IsStray(int64_t offset) const;
  // If allocations differ: a longer distance at which they are equal and all tokens within `run`
  // match. 0 for none.
  int64_t LongerDistance(int64_t run) const;

  int64_t distance() const { return distance_; }
  int64_t persistent_bytes() const { return persistent_bytes_; }
  int64_t a_begin() const { return a_begin_; }
  // Maps an allocation of A to B's and back; 0 for none.
  uint64_t InB(uint64_t of_a) const { return ValueOf(forward_, of_a); }
  uint64_t InA(uint64_t of_b) const { return ValueOf(backward_, of_b); }

 private:
  static uint64_t ValueOf(const NumberMap<uint64_t>& map, uint64_t key) {
    const uint64_t* value = map.Find(key);
    return value == nullptr ? 0 : *value;
  }
  bool Compare();
  bool CompareEvents(int64_t a);
  bool CompareTouches(int64_t a);
  bool MayBeStray(int64_t a);
  void ForgetNewMatches();
  bool FreesMostAllocations() const;
  bool Match(uint64_t a, uint64_t b, bool are_new);
  bool MayMatch(uint64_t a, uint64_t b) const;
  bool MayMatchForeign(const KnownAllocation& a, const KnownAllocation& b) const;

  const EventHistory& history_;
  const int64_t distance_;
  const int64_t a_begin_;
  const bool has_lasted_;
  NumberMap<uint64_t> forward_, backward_;
  std::vector<uint64_t> new_matches_;  // of the event that is compared, by A's allocation
  std::vector<int64_t> strays_;        // ascending
  bool holds_ = false;
  int64_t persistent_bytes_ = 0;
  int64_t failed_position_ = -1, failed_touch_ = -1;  // in B
};

// Whether a run of this length is too long for chance. Fewer kinds of events need a longer run.
bool IsMoreThanChance(const EventHistory& history, int64_t distance, int64_t run);

}  // namespace spillway::scheduler
