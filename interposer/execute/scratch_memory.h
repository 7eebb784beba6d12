// Memory for what replays clobber. (Note [Recompute records] in recompute_record.h)
//
// Owns its pieces, which stay on the device: at most a sixteenth of the budget, or a granule.
//
// Invariants
//  1. A piece stays where it is until Release: records lead into it.
//  2. One launch at a time writes there: each is ordered behind the last use.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/state/recompute_record.h"

namespace spillway::interposer {

class ScratchMemory {
 public:
  ScratchMemory(JobState& state, Parking& parking, Eviction& eviction)
      : state_(state), parking_(parking), eviction_(eviction) {}

  // Redirects what the launch clobbers. False where that cannot be. If only memory is missing,
  // `lacks_scratch_bytes` says how much.
  bool RedirectClobbered(const Claims& claims, RecomputeRecord* record, size_t* lacks_scratch_bytes)
      SPILLWAY_EXCLUDES(kStateLock);
  void TakeScratch(size_t bytes) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  Use last_use() const SPILLWAY_REQUIRES(kStateLock) { return last_use_; }
  void Used(Use use) SPILLWAY_REQUIRES(kStateLock) { last_use_ = use; }
  void Release() SPILLWAY_REQUIRES(kStateLock);

 private:
  CUdeviceptr ScratchFor(size_t bytes) SPILLWAY_REQUIRES(kStateLock);
  bool MayTakeScratch(size_t size_bytes) SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  Parking& parking_;
  Eviction& eviction_;
  std::vector<ScratchPiece> pieces_ SPILLWAY_GUARDED_BY(kStateLock);
  Use last_use_ SPILLWAY_GUARDED_BY(kStateLock);
};

}  // namespace spillway::interposer
