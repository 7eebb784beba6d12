// Which work uses a range, when calls may use it without a lock, and what they must wait for.
//
// Called by residency's classes with the state lock held. Keeps nothing: uses are in the ranges.
// Invariant: what a call notes without the lock is known once the fast path was closed.
#pragma once

#include "interposer/execute/state/range.h"
#include "interposer/execute/state/timeline.h"

namespace spillway::interposer {

class RangeUses {
 public:
  explicit RangeUses(Timeline* timeline) : timeline_(timeline) {}

  // Calls on that stream, which is ordered behind all of ready_after, need no lock from now on.
  static void OpenFastPath(Range* range, std::uint64_t stream_serial);
  // False while a call names the range. Then the fast path is as open as before, or the call's end
  // opens it. (Note [Fast path])
  bool CloseFastPath(Range* range);
  // By unfinished work. Call it with the fast path closed and no other call naming the range.
  bool MayBeUsedOn(Range* range, const UseList& streams);
  // Whether work on it waits for the program: a copy would wait too, and all behind it.
  bool IsHeld(const Range* range) {
    return timeline_->AnyHeld(range->uses) || timeline_->AnyHeld(range->ready_after);
  }
  // A freed range that no work uses any more, as far as is known. Closes its fast path.
  bool IsIdle(Range* freed) {
    return CloseFastPath(freed) && Timeline::AllKnownDone(&freed->ready_after);
  }
  // All that uses it or that it waits for, each with an event.
  void GatherDeparture(Range* range);

 private:
  void NoteRecent(Range* range);

  Timeline* const timeline_;
};

}  // namespace spillway::interposer
