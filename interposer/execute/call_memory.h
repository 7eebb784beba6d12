// Finds the memory that a call uses: what it names, and what it reaches through stored addresses.
//
// Called by LockedCalls on the thread of the call, with the state lock held.
//
// Invariants
//  1. The call's stream is ordered behind all that users of its memory must wait for. Find does
//     this for small allocations, Enter for ranges.
// Never: waits or moves memory.
#pragma once

#include <vector>

#include "interposer/execute/arenas.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/runs.h"
#include "interposer/execute/stored_addresses.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class CallMemory {
 public:
  CallMemory(JobState& state, StoredAddresses& stored, Runs& runs, Arenas& arenas)
      : state_(state), stored_(stored), runs_(runs), arenas_(arenas) {}

  void Find(const Addresses& addresses, Effect effect, TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  // They stay so from here to End.
  void Enter(TouchSet* set) SPILLWAY_REQUIRES(kStateLock);

 private:
  void Follow(const Addresses& addresses, Effect effect, TouchSet* set)
      SPILLWAY_REQUIRES(kStateLock);
  void Reach(CUdeviceptr word, TouchSet* set, std::vector<Tracked*>* holders)
      SPILLWAY_REQUIRES(kStateLock);
  bool ReachesTooMuch(const TouchSet& set) const SPILLWAY_REQUIRES(kStateLock);
  void OpenFastPath(SlabBlock* block, StreamState* stream) SPILLWAY_REQUIRES(kStateLock);
  void OrderBehind(Tracked* memory, const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  StoredAddresses& stored_;
  Runs& runs_;
  Arenas& arenas_;
};

}  // namespace spillway::interposer
