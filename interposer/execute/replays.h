// Makes again what was dropped. (Note [Recompute records] in recompute_record.h)
//
// Who needs the bytes makes them: the plan before an operation, a call that names them or may write
// what they are made from, a free of that, and whatever may use memory without our noticing. No
// call in progress of the same thread holds memory meanwhile.
//
// Called by the classes behind JobMemory on the program's threads, with the making lock held where
// a function says so.
//
// Invariants
//  1. A launch is made again behind all that its inputs and its output wait for, and users of these
//  come behind it.
//  2. Nobody sees a range without its bytes: the launch is made under the lock under which the
//  range is given memory.
#pragma once

#include "base/function_ref.h"
#include "base/inline_vector.h"
#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/recompute_record.h"
#include "interposer/execute/restores.h"
#include "interposer/execute/scratch_memory.h"
#include "interposer/execute/touch_set.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class Replays {
 public:
  Replays(JobState& state, Waits& waits, Parking& parking, Eviction& eviction, Restores& restores,
          DeferredFrees& frees, ScratchMemory& scratch)
      : state_(state),
        waits_(waits),
        parking_(parking),
        eviction_(eviction),
        restores_(restores),
        frees_(frees),
        scratch_(scratch) {}

  // The range, and what it is made from. On the stream where that is possible (StreamForReplay).
  CUresult MakeAgain(Range* wanted, StreamState* stream, TraceCause why)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // What must be made before the call may be, one of it.
  ToMake FirstToMake(const Addresses& addresses, Effect effect, const TouchSet& set)
      SPILLWAY_REQUIRES(kStateLock);

  // The program goes on without having freed what frees wait for: it is made now. `even_held`,
  // whether also what a plan holds, is called with the state lock held.
  void FinishFrees(base::FunctionRef<bool()> even_held) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // All bytes are somewhere, and no record is left: memory may be used, or kernels be gone, without
  // our noticing. False when some could not be made again.
  bool EndRecords() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // The same with the making lock held; where kernels may use memory unseen.
  bool EndRecordsWhileMaking() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void EndRecordsIfUnproven() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

  // The stream asked for, or one of ours where work on that would not do.
  StreamState* StreamForReplay(StreamState* asked) SPILLWAY_REQUIRES(kStateLock);
  // Its inputs and output are at their place.
  CUresult LaunchAgain(RecomputeRecord* record, StreamState* stream, TraceCause why)
      SPILLWAY_REQUIRES(kStateLock);
  // Users of the memory come behind `use`.
  void NoteReplay(Tracked* memory, Use use) SPILLWAY_REQUIRES(kStateLock);

 private:
  using Inputs = base::InlineVector<Range*, 8>;
  CUresult MakeOneAgain(Range* range, StreamState* stream, TraceCause why)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  bool PrepareInputs(const Inputs& inputs) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);
  CUresult MakeWhereParked(Range* range, const Inputs& inputs) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  Waits& waits_;
  Parking& parking_;
  Eviction& eviction_;
  Restores& restores_;
  DeferredFrees& frees_;
  ScratchMemory& scratch_;
};

}  // namespace spillway::interposer
