// Begins a record around the launch that it repeats, and drops ranges that have a record.
// (Note [Recompute records] in recompute_record.h)
//
// Called by the classes behind JobMemory on the thread of the call. The records are the job's
// (recompute_records.h); this class decides which launch gets one.
//
// Invariants
//  1. A record begins before its launch, while nothing else may use its memory unseen.
//  2. A range is dropped only while MayDropAny.
// Never: waits, launches.
#pragma once

#include <cstdint>
#include <memory>

#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/presumed_reads.h"
#include "interposer/execute/scratch_memory.h"
#include "interposer/execute/state/recompute_record.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class JobMemory;

class RecomputeRecording {
 public:
  RecomputeRecording(JobState& state, DeferredFrees& frees, ScratchMemory& scratch,
                     PresumedReads& presumed, JobMemory* job)
      : state_(state), frees_(frees), scratch_(scratch), presumed_(presumed), job_(job) {}

  // Before the launch, with all memory in place; and after it was made.
  void BeginRecord(const Addresses& addresses, TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  void NoteLaunched(const TouchSet& set) SPILLWAY_EXCLUDES(kStateLock);

  // Whether a wrong replay is found before the program sees what came of it.
  static bool MayCheck();
  // Only calls that name memory use it, and memory may move while kernels run.
  bool MayDropAny() SPILLWAY_REQUIRES(kStateLock);
  // False when the range cannot be dropped now.
  bool Drop(Range* range) SPILLWAY_REQUIRES(kStateLock);
  // Drops as the plan says, or copies what cannot be dropped.
  void DropOrEvict(const PlanStep::Allocations& allocations) SPILLWAY_REQUIRES(kStateLock);
  void DropIfDue(Range* range) SPILLWAY_REQUIRES(kStateLock);
  // The record of the library's call is this job's.
  bool Began(const LibraryCall& call) const { return call.record && call.job == job_; }

 private:
  std::unique_ptr<RecomputeRecord> RecordOf(const Addresses& addresses, const TouchSet& set,
                                            size_t* lacks_scratch_bytes)
      SPILLWAY_EXCLUDES(kStateLock);
  bool AddMemory(const TouchSet& set, const Addresses& addresses, RecomputeRecord* record) const;
  bool NamesAllClaimed(const Claims& claims, const RecomputeRecord& record) const;
  bool MayBegin(const RecomputeRecord& record, const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);
  bool WaitingWorkMayUse(const RecomputeRecord& record, const StreamState* stream)
      SPILLWAY_REQUIRES(kStateLock);
  bool TakePrint(RecomputeRecord* record) SPILLWAY_REQUIRES(kStateLock);
  bool IsProved(const RecomputeRecord& record) const SPILLWAY_REQUIRES(kStateLock);
  bool AwaitsItsCall(Range* range) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  DeferredFrees& frees_;
  ScratchMemory& scratch_;
  PresumedReads& presumed_;
  JobMemory* const job_;  // notified when a library's call has ended
};

}  // namespace spillway::interposer
