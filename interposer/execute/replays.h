// Recomputes dropped ranges by repeating their launches. (Note [Recompute records] in
// recompute_record.h)
//
// The first need recomputes a range. That may be the plan's, before an operation, or a call's that
// names the range or may write its inputs. It may also be a free of an input, or an unseen use of
// memory. No call in progress of the same thread holds memory meanwhile.
//
// Called by the classes behind JobMemory on the program's threads.
//
// Invariants
//  1. A replay is ordered behind all that its inputs and its output wait for. Users of these are
//     ordered behind the replay.
//  2. Nobody sees a range without its bytes: the launch is made under the lock that gives the range
//     its memory.
#pragma once

#include "base/function_ref.h"
#include "base/inline_vector.h"
#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/presumed_reads.h"
#include "interposer/execute/replay_checks.h"
#include "interposer/execute/restores.h"
#include "interposer/execute/scratch_memory.h"
#include "interposer/execute/state/recompute_record.h"
#include "interposer/execute/touch_set.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class Replays {
 public:
  Replays(JobState& state, Waits& waits, Parking& parking, Eviction& eviction, Restores& restores,
          DeferredFrees& frees, ScratchMemory& scratch, PresumedReads& presumed,
          ReplayChecks& checks)
      : state_(state),
        waits_(waits),
        parking_(parking),
        eviction_(eviction),
        restores_(restores),
        frees_(frees),
        scratch_(scratch),
        presumed_(presumed),
        checks_(checks) {}

  // The range, after what it is made from. Uses `stream` where possible (StreamForReplay).
  CUresult RecomputeRange(Range* wanted, StreamState* stream, TraceCause why)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // One range that must be recomputed before the call may be made.
  ToRecompute FirstToRecompute(const Addresses& addresses, Effect effect, const TouchSet& set)
      SPILLWAY_REQUIRES(kStateLock);

  // The program goes on without freeing what deferred frees wait for: recomputes it now.
  // `even_held`, called with the state lock held: also for ranges held for a plan.
  void RunDeferredFrees(base::FunctionRef<bool()> even_held)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Recomputes all that is dropped and ends all records: memory may be used, or kernels be
  // unloaded, unseen. False when something could not be recomputed.
  bool EndRecords() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Orders the stream behind all replays: it is about to write what they read unnamed.
  void OrderBehindReplays(StreamState* stream) SPILLWAY_REQUIRES(kStateLock);
  // The same as EndRecords, with the making lock held; the second only where kernels may use memory
  // unseen.
  bool EndRecordsWhileMaking() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void EndRecordsIfUnproven() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

  // The stream asked for, or ours where work on that would not do.
  StreamState* StreamForReplay(StreamState* asked) SPILLWAY_REQUIRES(kStateLock);
  // Its inputs and output are in place. What only experiments tell is checked, but for the
  // experiment itself.
  CUresult RepeatLaunch(RecomputeRecord* record, StreamState* stream, TraceCause why)
      SPILLWAY_REQUIRES(kStateLock);
  // Orders users of the memory behind `use`.
  void NoteReplay(Tracked* memory, Use use) SPILLWAY_REQUIRES(kStateLock);

 private:
  using Inputs = base::InlineVector<Range*, 8>;
  // Ends the records, or only those that may read constants, but for those of dropped ranges. One
  // such range is returned.
  enum class Which : bool { kAll, kReadingConstants };
  Range* EndUndropped(Which which) SPILLWAY_REQUIRES(kStateLock);
  UseList ReplaysUnderWay() const SPILLWAY_REQUIRES(kStateLock);
  bool AwaitReplays() SPILLWAY_EXCLUDES(kStateLock);
  void OrderBehindReaders(Tracked* input, StreamState* stream) SPILLWAY_REQUIRES(kStateLock);
  bool RestoreFromInsurance(Range* range) SPILLWAY_EXCLUDES(kStateLock);
  CUresult RecomputeOne(Range* range, StreamState* stream, TraceCause why)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  CUresult LaunchChecked(RecomputeRecord* record, StreamState* stream)
      SPILLWAY_REQUIRES(kStateLock);
  bool RestoreInsured(RecomputeRecord* record, Use made, TraceCause why)
      SPILLWAY_REQUIRES(kStateLock);
  bool PrepareInputs(const Inputs& inputs) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);
  CUresult RecomputeParked(Range* range, const Inputs& inputs) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  Waits& waits_;
  Parking& parking_;
  Eviction& eviction_;
  Restores& restores_;
  DeferredFrees& frees_;
  ScratchMemory& scratch_;
  PresumedReads& presumed_;
  ReplayChecks& checks_;
};

}  // namespace spillway::interposer
