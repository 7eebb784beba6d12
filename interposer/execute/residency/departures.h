// Evictions: which range leaves, how its bytes get to the host, when its memory is free.
//
// Called by residency and the classes above it with the state lock held.
//
// Invariants
//  1. A range is unmapped only when its uses and its copy are complete: cuMemUnmap does not wait.
//  2. A range that a call in progress names neither starts leaving nor leaves. Calls name ranges by
//     a pin or without the lock (calls.h).
//  3. A range leaves without a copy only if its host copy is good (host_copies.h), if a fingerprint
//     shows that the copy equals the content (content_checks.h), if a record recomputes the bytes
//     (recompute_record.h), or if its bytes mean nothing (workspaces.h).
// Never: waits. AddNextTo answers what must be waited for.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/residency/content_checks.h"
#include "interposer/execute/residency/freed_memory.h"
#include "interposer/execute/residency/host_copies.h"
#include "interposer/execute/residency/iteration_layout.h"
#include "interposer/execute/residency/parked_ranges.h"
#include "interposer/execute/residency/range_table.h"
#include "interposer/execute/residency/range_uses.h"
#include "interposer/execute/state/counters.h"
#include "interposer/record/job_trace.h"

namespace spillway::interposer {

class Departures {
 public:
  struct Parts {
    RangeTable* ranges;
    ChunkPool* chunks;
    HostCopies* copies;
    ContentChecks* checks;
    ParkedRanges* parked;
    RangeUses* uses;
    FreedMemory* freed;
    IterationLayout* layout;
    Timeline* timeline;
    Counters* counters;
    JobTrace* trace;
  };
  explicit Departures(const Parts& parts) : parts_(parts) {}

  enum class LeaveFirst : std::uint8_t { kLeastRecentlyUsed, kFurthestUse };  // by Range::next_use
  // Starts evictions until `bytes` are free or on their way. False when too little may move.
  bool StartMakingRoom(size_t bytes, LeaveFirst order);
  // So much is free or on its way, besides what a smaller budget takes.
  bool WillHaveRoom(size_t bytes) const;
  // Starts one eviction for a plan; false when the range may not leave, or cannot now.
  bool Start(Range* range);
  // The same without a copy: the record recomputes the bytes. An insured record's output is copied
  // all the same, and the copy is kept.
  bool StartDrop(Range* range);
  // It leaves before any other range (Note [Idle workspaces]).
  void AddIdleWorkspace(Range* range);
  size_t IdleWorkspaceBytes() const;  // on the device
  bool AreUnderWay() const { return !leaving_.empty(); }
  // Chunks that are no pieces of a layout. Their work does not wait for the program.
  size_t BytesBesidePieces() const;
  // The range, or all, stay on the device.
  void Cancel(Range* range);
  void CancelAll();
  // A leaving range was freed.
  void Forget(Range* range);
  // Takes the memory of ranges whose departure is complete, as far as is known.
  void Collect();
  // What must be complete before more can be collected.
  void AddNextTo(FirstUses* first);
  void NoteUnusedPrefetch(Range* range);
  void Clear() {
    leaving_.clear();
    idle_workspaces_.clear();
  }

 private:
  bool MayLeaveNow(Range* range);
  bool StartLeaving(Range* range, TraceCause why);
  bool StartWithoutContent(Range* range);
  bool StartComparing(Range* range);
  bool StartCopying(Range* range, TraceCause why);
  void NoteClean(Range* range, TraceCause why, const char* as);
  bool IsOutdated(Range* range);
  bool IsRecordOutdated(Range* range);
  void Leaves(Range* range);
  void Finish(Range* range);
  template <class Accepts>
  Range* Victim(LeaveFirst order, Accepts accepts);
  void SortCandidates(LeaveFirst order);
  Range* IdleWorkspace();
  bool TakeHostBuffer(Range* range);

  const Parts parts_;
  std::list<Range*> leaving_;  // oldest first
  struct Candidate {
    Range* range;
    std::uint64_t life, last_touch, next_use;
  };
  std::vector<Range*> idle_workspaces_;  // or ranges that were: the least recently used one first
  std::vector<Candidate> candidates_;    // to be evicted, the first one last
};

}  // namespace spillway::interposer
