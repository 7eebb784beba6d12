// Arenas: allocations larger than the budget, of which each call uses a part.
//
// Called by Allocations and CallMemory with the state lock held. Owns the arenas; their parts are
// ranges like others.
//
// Note [Arenas]
// Some programs allocate once and cut that memory up themselves. As one range it would never fit
// the budget. So it becomes parts, each a range of its own, and a call uses the parts that its
// addresses reach: exactly, where a library documents how far; otherwise by a guess
// (ledger/arena_cuts.h). A guess may be too short. So a job with an arena parks for good
// (state/pointer_safety.h): what is not on the device is mapped onto its host copy, and mappings
// change only while the device is idle. A kernel that goes beyond the guess is slow, and right.
//
// Invariants
//  1. The parts of an arena cover it, and are live as long as it is.
//  2. A job with an arena is unsafe: every part is mapped.
//  3. The program sees the arena, never a part.
#pragma once

#include <memory>
#include <vector>

#include "interposer/execute/job_state.h"
#include "interposer/execute/state/arena.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class Arenas {
 public:
  explicit Arenas(JobState& state) : state_(state) {}

  bool MustCut(size_t size_bytes) const SPILLWAY_REQUIRES(kStateLock);
  size_t PartBytes() const SPILLWAY_REQUIRES(kStateLock);
  // Without a part so far. The job is unsafe from now on.
  Arena* Add(CUdeviceptr base, size_t bytes, size_t part_bytes) SPILLWAY_REQUIRES(kStateLock);
  void Cut(Arena* arena, std::vector<Range*> parts) SPILLWAY_REQUIRES(kStateLock);
  // Its parts are ranges like any other from now on.
  void Remove(const Arena* arena) SPILLWAY_REQUIRES(kStateLock);

  // Adds to the call's memory what it uses of arenas besides the parts that it names.
  void AddParts(const Addresses& addresses, TouchSet* set) SPILLWAY_REQUIRES(kStateLock);

 private:
  Arena* ArenaAt(CUdeviceptr address) SPILLWAY_REQUIRES(kStateLock);
  static bool IsClaimed(CUdeviceptr address, const TouchSet& set);
  void AddPartsOf(const Arena& arena, CUdeviceptr begin, CUdeviceptr end, TouchSet* set)
      SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  std::vector<std::unique_ptr<Arena>> arenas_ SPILLWAY_GUARDED_BY(kStateLock);
  std::uint64_t searches_ SPILLWAY_GUARDED_BY(kStateLock) = 0;
};

}  // namespace spillway::interposer
