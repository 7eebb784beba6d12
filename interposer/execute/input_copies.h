// Saves the old bytes of small memory that records read and the program is about to overwrite.
// (Note [Recompute records] in recompute_record.h)
//
// A layer's filter or scale has some kilobytes, and what is made from it some megabytes. Before an
// optimiser changes the filter, all of that would have to be recomputed and offloaded. Instead the
// filter is copied within the device, and the records read the copy.
//
// Owns nothing: a copy is a block, given back when no record reads it (deferred_frees.h).
#pragma once

#include <cstddef>

#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/presumed_reads.h"
#include "interposer/execute/replays.h"

namespace spillway::interposer {

class InputCopies {
 public:
  InputCopies(JobState& state, Eviction& eviction, DeferredFrees& frees, Replays& replays,
              PresumedReads& presumed)
      : state_(state), eviction_(eviction), frees_(frees), replays_(replays), presumed_(presumed) {}

  // No call of this thread holds memory meanwhile. The block's next user is ordered behind the
  // copy. False when the dropped ranges must be recomputed instead.
  bool Save(SlabBlock* input) SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

 private:
  SlabBlock* MemoryForCopy(size_t bytes) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);
  bool MayEndBefore(const RecordedLaunch& launch, const SlabBlock& block) const;
  bool MoveRecords(SlabBlock* from, SlabBlock* to) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Eviction& eviction_;
  DeferredFrees& frees_;
  Replays& replays_;
  PresumedReads& presumed_;
};

}  // namespace spillway::interposer
