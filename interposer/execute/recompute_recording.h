// How a record begins around the launch that it makes again, and when its bytes are dropped for it.
// (Note [Recompute records] in recompute_record.h)
//
// Called by the classes behind JobMemory on the thread of the call. The records are the job's
// (recompute_records.h); this decides which launch gets one.
//
// Invariants
//  1. A record begins before its launch is made, and only while no other call or work may use its
//  memory unseen.
//  2. A range is dropped only while memory is used by calls that name it alone, and may move while
//  kernels run (MayDropAny).
// Never: waits, launches.
#pragma once

#include <cstdint>
#include <memory>

#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/recompute_record.h"
#include "interposer/execute/scratch_memory.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class JobMemory;

class RecomputeRecording {
 public:
  RecomputeRecording(JobState& state, DeferredFrees& frees, ScratchMemory& scratch, JobMemory* job)
      : state_(state), frees_(frees), scratch_(scratch), job_(job) {}

  // All is at its place, and the launch not yet made; and after it was made.
  void BeginRecord(const Addresses& addresses, TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  void NoteMade(const TouchSet& set) SPILLWAY_EXCLUDES(kStateLock);

  // Memory is used by calls that name it alone, and may move while kernels run.
  bool MayDropAny() SPILLWAY_REQUIRES(kStateLock);
  // False when the range has no record that holds.
  bool Drop(Range* range) SPILLWAY_REQUIRES(kStateLock);
  // As the plan says: dropped, or copied where that cannot be.
  void DropOrSendAway(const PlanStep::Allocations& allocations) SPILLWAY_REQUIRES(kStateLock);
  // The call that made it has ended.
  void DropWhatIsDue(Range* range) SPILLWAY_REQUIRES(kStateLock);
  // The record of the library's call is this job's.
  bool Began(const LibraryCall& call) const { return call.record && call.job == job_; }

 private:
  std::unique_ptr<RecomputeRecord> RecordOf(const Addresses& addresses, const TouchSet& set,
                                            size_t* lacks_scratch_bytes)
      SPILLWAY_EXCLUDES(kStateLock);
  bool AddMemory(const TouchSet& set, const Addresses& addresses, RecomputeRecord* record) const;
  bool NamesAllClaimed(const Claims& claims, const RecomputeRecord& record) const;
  bool LeadsElsewhere(const RecordedLaunch& launch) const;
  bool MayBegin(const RecomputeRecord& record, const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);
  bool WaitingWorkMayUse(const RecomputeRecord& record, const StreamState* stream)
      SPILLWAY_REQUIRES(kStateLock);
  bool AwaitsItsCall(Range* range) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  DeferredFrees& frees_;
  ScratchMemory& scratch_;
  JobMemory* const job_;  // which is told when a library's call has ended
};

}  // namespace spillway::interposer
