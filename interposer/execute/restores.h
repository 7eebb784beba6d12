// Restores ranges that a call, another device or a replay needs now.
//
// Ranges that do not fit the budget together are used parked.
//
// Invariants
//  1. A range is restored with its bytes, unless the call overwrites it whole.
#pragma once

#include <span>

#include "base/inline_vector.h"
#include "interposer/execute/call_roles.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/spilling.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class Restores {
 public:
  Restores(JobState& state, Waits& waits, Parking& parking, Eviction& eviction, Spilling& spilling)
      : state_(state), waits_(waits), parking_(parking), eviction_(eviction), spilling_(spilling) {}

  // The range is pinned. False when there is no memory for it.
  bool MakeResident(Range* range, Role role) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);
  // While the job parks: a pinned range that no call needs yet, as far as memory is free or on its
  // way.
  bool BringBack(Range* range) SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // The ranges are pinned. False when they can be used neither on the device nor parked.
  bool MakeAllResident(TouchSet* set) SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  bool RestoreAll() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // For a call that names more than fits on the device at once.
  bool ParkEvicted(std::span<Range* const> ranges) SPILLWAY_REQUIRES(kStateLock);

 private:
  bool MakeEachResident(std::span<Range* const> ranges, const TouchSet& set)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  base::InlineVector<Range*, 32> RangesThatFit(const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);
  bool CanUseParked(const TouchSet& set) SPILLWAY_EXCLUDES(kStateLock);
  bool AwaitUsesWhereParked(Range* range, StallCause cause) SPILLWAY_EXCLUDES(kStateLock);
  bool RestoreOnDemand(Range* range, Role role) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Waits& waits_;
  Parking& parking_;
  Eviction& eviction_;
  Spilling& spilling_;
};

}  // namespace spillway::interposer
