// The fast path: begins and ends a call without a lock if all its memory is resident and ready.
//
// Why this is safe: Note [Fast path] in calls.h.
//
// Invariants
//  1. From BeginAtOnce to EndAtOnce the call's memory stays in place.
// Never: locks, waits, or asks the driver.
#pragma once

#include "base/schedule_point.h"
#include "interposer/execute/call_roles.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/state/calls.h"
#include "interposer/execute/state/touch_clock.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class LaunchPath {
 public:
  explicit LaunchPath(JobState& state) : state_(state) {}

  // False, with nothing published, when the call needs the locks.
  bool BeginAtOnce(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set);
  static void EndAtOnce(const TouchSet& set);

 private:
  static bool UseBlocksAtOnce(const TouchSet& set);

  JobState& state_;
};

inline bool LaunchPath::BeginAtOnce(const Addresses& addresses, StreamName stream, Effect effect,
                                    TouchSet* set) {
  if (effect == Effect::kNames || CapturesGoOn()) return false;
  if (!set->held_on_host.empty() || set->host_is_unsure) return false;
  set->stream = state_.timeline.Known(stream);
  if (!set->stream || state_.promises.Concern(set->stream, set->shows)) return false;
  set->blocks.clear();
  set->ranges.push_back(state_.all_memory.range());
  for (CUdeviceptr address : addresses) {
    Allocation* const found = state_.ledger.Find(address);
    if (!found && (effect != Effect::kLaunches || state_.ledger.LeadsToAny(address))) return false;
    if (!found) continue;
    if (!IsBlock(found)) {
      set->ranges.push_back(AsRange(found));
    } else {
      set->blocks.push_back(AsBlock(found));
    }
  }
  if (!calls::Enter(set->ranges.begin(), set->ranges.size(), Timeline::SerialOf(set->stream)))
    return false;
  set->at_once = UseBlocksAtOnce(*set);
  if (!set->at_once) calls::Leave(set->ranges.size());
  if (set->at_once && set->claims) AssignRoles(addresses, set);
  for (size_t i = 1; i < set->ranges.size(); ++i) set->ranges[i]->recent.Expect(set->stream);
  return set->at_once;
}

// Uses are noted before the ranges are let go: a thread that closes a fast path then sees them.
inline void LaunchPath::EndAtOnce(const TouchSet& set) {
  const std::uint64_t now = TouchClock();
  base::SchedulePoint();
  for (size_t i = 1; i < set.ranges.size(); ++i) {
    NoteTouch(&set.ranges[i]->last_touch, now);
    set.ranges[i]->recent.Note(set.use, set.turn.IsMine());
  }
  calls::Leave(set.ranges.size());
}

// The call is already published, so the check of the blocks' fast paths is safe.
inline bool LaunchPath::UseBlocksAtOnce(const TouchSet& set) {
  const std::uint64_t serial = Timeline::SerialOf(set.stream);
  for (SlabBlock* block : set.blocks) {
    if (!block->fast_path.IsOpenFor(serial)) return false;
    block->users.Note(set.stream);
  }
  return true;
}

}  // namespace spillway::interposer
