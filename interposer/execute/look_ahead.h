// While a job parks, the device must be idle before memory moves. So a call for which memory moves
// also brings what the next calls need, in the plan's order.
//
// Called by LockedCalls, once the call's own memory is there and before calls may begin again.
//
// Invariants
//  1. Nothing leaves that is used before what comes for it, as far as the plan tells.
//  2. At most one part in kShare of the budget comes at a time.
//  3. It waits for memory on its way, and for nothing else.
#pragma once

#include <vector>

#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/restores.h"

namespace spillway::interposer {

class LookAhead {
 public:
  LookAhead(JobState& state, Parking& parking, Eviction& eviction, Restores& restores)
      : state_(state), parking_(parking), eviction_(eviction), restores_(restores) {}

  void BringNext() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

 private:
  static constexpr size_t kShare = 8;
  std::vector<Range*> WhatComesNext() SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Parking& parking_;
  Eviction& eviction_;
  Restores& restores_;
};

}  // namespace spillway::interposer
