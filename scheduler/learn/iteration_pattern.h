// One iteration of a job as it comes by, event for event, and the profile that planners read.
//
// Made by the learner, read by the planner, the follower and the plan store, on any thread. A plain
// value that is not changed once it is shared.
//
// Invariants
//   1. Events are the iteration's allocations and operations in their order; event `i` of one
//   iteration comes `events.size()`
//      such events after that of the one before.
//   2. Pattern buffer `i` is profile buffer `i`; the profile has one operation for each operation
//   event, in their order.
//   3. A persistent buffer is one allocation that every iteration touches. Any other is another
//   allocation each time: made by
//      its `born_event`, or handed on from the iteration before (some buffer's `becomes`), or else
//      first seen when touched.
//   4. The iteration begins where the fewest bytes of such allocations are alive, so few are handed
//   on.
//   5. The profile passes CheckProfile. A buffer that lives for one operation alone takes memory
//   there, and is no touch of it unless it is all
//      that the operation writes: run again, the operation has other memory for that. What an
//      operation may write it may read as well, but for the first touch, which cannot, and where
//      the job said that all is overwritten. Nothing in it is replayable but by SetReplayable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "scheduler/learn/job_event.h"
#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

struct PatternTouch {
  int32_t buffer = -1;
  bool writes = true;
  bool reads = true;

  bool operator==(const PatternTouch&) const = default;
};

struct PatternEvent {
  JobEventKind kind = JobEventKind::kOperation;  // or kAllocate
  uint64_t token = 0;                            // TokenOf the job's event
  int32_t buffer = -1;                           // kAllocate: that it makes
  int32_t operation = -1;                        // kOperation: its index in the profile
  int32_t first_touch = 0,
          touch_count =
              0;  // in IterationPattern::touches, in the order in which the call names them

  bool operator==(const PatternEvent&) const = default;
};

struct PatternBuffer {
  int64_t size_bytes = 0;  // what it occupies; the profile's buffer has what of that is copied
  bool persistent = false;
  uint64_t allocation =
      0;  // of a persistent buffer in the process that it was learned in; 0: not known
  int32_t born_event =
      -1;  // the event that allocates it; -1: it is there when the iteration begins
  int32_t dies_event =
      -1;  // the last event before it is freed; the iteration's last one where it outlives it
  int32_t becomes =
      -1;  // the buffer that its allocation is in the next iteration, where that one knows it

  bool operator==(const PatternBuffer&) const = default;
};

struct IterationPattern {
  std::vector<PatternEvent> events;
  std::vector<PatternTouch> touches;
  std::vector<PatternBuffer> buffers;
  IterationProfile profile;
  // The same for the same iteration in any process: what a restarted job is recognised by.
  uint64_t fingerprint = 0;

  int32_t size() const { return static_cast<int32_t>(events.size()); }
  std::span<const PatternTouch> TouchesOf(const PatternEvent& event) const {
    return std::span(touches).subspan(static_cast<size_t>(event.first_touch),
                                      static_cast<size_t>(event.touch_count));
  }
};

// Nobody else touches the buffer: a workspace, allocated before the operation and freed after it.
bool LivesFor(const Buffer& buffer, OperationId operation);

// By profile operation; a shorter list leaves the rest as it is.
void SetDurations(IterationPattern* pattern, std::span<const int64_t> duration_ns);

// Operations may run again whose token `may_replay` approves and of which the job said all that
// they do to memory: one buffer is overwritten whole, all others are only read, or live for the
// operation alone. The rest may not, whatever was set before.
void SetReplayable(IterationPattern* pattern, base::FunctionRef<bool(uint64_t token)> may_replay);

// How many operations may.
int64_t ReplayableCount(const IterationPattern& pattern);

// Whether what the one does is a part of what the other does, event for event.
bool Contains(const IterationPattern& whole, const IterationPattern& part);

// From the other members.
uint64_t FingerprintOf(const IterationPattern& pattern);

// The event of each profile operation.
std::vector<int32_t> OperationEvents(const IterationPattern& pattern);

}  // namespace spillway::scheduler
