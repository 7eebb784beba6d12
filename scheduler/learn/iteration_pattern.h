// One iteration of a job, event by event, and its profile.
//
// Made by the learner. Immutable once shared, so any thread may read it.
//
// Invariants
//   1. Events are the iteration's allocations and operations in order. They recur every
//      `events.size()` such events.
//   2. Pattern buffer `i` is profile buffer `i`. Profile operations are the operation events in
//      order.
//   3. A persistent buffer is one allocation that every iteration touches. Any other buffer is a
//      new allocation each time: made by its `born_event`, handed on by the previous iteration
//      (some buffer's `becomes`), or else first seen at a touch.
//   4. The iteration begins where the fewest bytes of non-persistent buffers are alive.
//   5. The profile passes CheckProfile. Only SetReplayable makes its operations replayable.
//   6. A buffer that lives for one operation takes memory there but counts as a touch only if it is
//      all that the operation writes: a rerun gets other memory for it.
//   7. A write also counts as a read, but for the first touch and declared full overwrites.
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
  bool presumed = false;  // a read that no call has declared (Operation::presumed_reads)

  bool operator==(const PatternTouch&) const = default;
};

// As a library's workspace: its bytes mean nothing before or after the call.
constexpr bool IsScratch(const PatternTouch& touch) { return !touch.reads && !touch.writes; }

struct PatternEvent {
  JobEventKind kind = JobEventKind::kOperation;  // or kAllocate
  // TokenOf the job's event. kAnyToken: a stray operation (repetition.h). Its touches are those
  // that it always has.
  uint64_t token = 0;
  int32_t buffer = -1;                       // kAllocate: the buffer it makes
  int32_t operation = -1;                    // kOperation: index in the profile
  int32_t first_touch = 0, touch_count = 0;  // in IterationPattern::touches, in the call's order

  bool operator==(const PatternEvent&) const = default;
};

struct PatternBuffer {
  int64_t size_bytes = 0;  // occupied bytes; the profile's buffer has the bytes to copy
  bool persistent = false;
  // A persistent buffer's allocation in the process that learned the pattern; 0: unknown.
  uint64_t allocation = 0;
  int32_t born_event = -1;  // the event that allocates it; -1: it exists when the iteration begins
  // The last event before its free; the iteration's last event if it survives.
  int32_t dies_event = -1;
  int32_t becomes = -1;  // the buffer that this allocation is in the next iteration; -1: none

  bool operator==(const PatternBuffer&) const = default;
};

struct IterationPattern {
  std::vector<PatternEvent> events;
  std::vector<PatternTouch> touches;
  std::vector<PatternBuffer> buffers;
  IterationProfile profile;
  // Equal for the same iteration in any process. Ignores what touches read and write: a job finds
  // out more about that.
  uint64_t fingerprint = 0;

  int32_t size() const { return static_cast<int32_t>(events.size()); }
  std::span<const PatternTouch> TouchesOf(const PatternEvent& event) const {
    return std::span(touches).subspan(static_cast<size_t>(event.first_touch),
                                      static_cast<size_t>(event.touch_count));
  }
};

// True for a workspace: allocated before the operation and freed after it.
bool LivesFor(const Buffer& buffer, OperationId operation);

// What a job has found out about an operation's touches, in the call's order.
struct TouchRole {
  bool writes = true;
  bool reads = true;

  bool operator==(const TouchRole&) const = default;
};
using TouchRoles = std::vector<TouchRole>;

// From the events' touches.
void SetUses(IterationPattern* pattern);

// Touches of which the job has declared nothing get the role that `roles_of` knows for the token,
// where it knows one for each touch. The profile follows.
void RefineTouches(IterationPattern* pattern,
                   base::FunctionRef<TouchRoles(uint64_t token)> roles_of);

// How many touches are not both read and written.
int64_t KnownTouchCount(const IterationPattern& pattern);

// Indexed by profile operation; a shorter list leaves the rest unchanged.
void SetDurations(IterationPattern* pattern, std::span<const int64_t> duration_ns);

// `may_replay` must approve the token, and the job must have declared all memory effects: one
// buffer is overwritten whole; the others are only read, or live for this operation alone.
void SetReplayable(IterationPattern* pattern, base::FunctionRef<bool(uint64_t token)> may_replay);

int64_t ReplayableCount(const IterationPattern& pattern);

// `part` must be contiguous.
bool Contains(const IterationPattern& whole, const IterationPattern& part);

uint64_t FingerprintOf(const IterationPattern& pattern);

std::vector<int32_t> OperationEvents(const IterationPattern& pattern);

}  // namespace spillway::scheduler
