// Small memory that records read, and that the program writes anew: its former bytes are saved.
// (Note [Recompute records] in recompute_record.h)
//
// A layer's filter or scale is some kilobytes, and what is made from it some megabytes: rather than
// make all of that, and copy it out, before an optimiser changes the filter, its bytes are copied
// within the device, and the records read the copy from then on.
//
// Called by JobCalls on the thread of the call, with the making lock held. Owns nothing: a copy is
// a block of its own, which is given back when no record reads it (deferred_frees.h).
#pragma once

#include <cstddef>

#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/replays.h"

namespace spillway::interposer {

class InputCopies {
 public:
  InputCopies(JobState& state, Eviction& eviction, DeferredFrees& frees, Replays& replays)
      : state_(state), eviction_(eviction), frees_(frees), replays_(replays) {}

  // No call in progress of this thread uses memory; the block's next user stands behind the copy.
  // False when what is dropped has to be made instead.
  bool Save(SlabBlock* input) SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

 private:
  SlabBlock* MemoryForCopy(size_t bytes) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);
  bool MoveRecords(SlabBlock* from, SlabBlock* to) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Eviction& eviction_;
  DeferredFrees& frees_;
  Replays& replays_;
};

}  // namespace spillway::interposer
