// A call that cannot take the fast path: its memory is found and made resident under the locks.
//
// The state lock is not held in the driver's function or in any wait. The making lock is held while
// memory is made: two calls never each hold half of what the other needs.
//
// Invariants
//  1. From BeginLocked to EndLocked or WithdrawLocked, everything that the call names is mapped.
//  2. A call is refused only in two cases. Its own memory and unmovable memory exceed the budget
//     and cannot be parked, or the host limit is reached.
#pragma once

#include "interposer/execute/call_memory.h"
#include "interposer/execute/input_copies.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/look_ahead.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/plan_follower.h"
#include "interposer/execute/post_launch_scan.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/restores.h"
#include "interposer/execute/touch_set.h"
#include "interposer/execute/waits.h"
#include "interposer/execute/workspaces.h"

namespace spillway::interposer {

class LockedCalls {
 public:
  LockedCalls(JobState& state, Waits& waits, Parking& parking, Restores& restores,
              LookAhead& look_ahead, Replays& replays, PresumedReads& presumed,
              InputCopies& input_copies, PlanFollower& plan, CallMemory& call_memory,
              PostLaunchScan& post_scan, Workspaces& workspaces)
      : state_(state),
        waits_(waits),
        parking_(parking),
        restores_(restores),
        look_ahead_(look_ahead),
        replays_(replays),
        presumed_(presumed),
        input_copies_(input_copies),
        plan_(plan),
        call_memory_(call_memory),
        post_scan_(post_scan),
        workspaces_(workspaces) {}

  CUresult BeginLocked(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void EndLocked(TouchSet* set, Effect effect) SPILLWAY_EXCLUDES(kStateLock);
  void WithdrawLocked(TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);

 private:
  enum class Entry { kEntered, kRefused, kTryAgain };
  CUresult BeginSlowly(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  Entry TryToEnter(const Addresses& addresses, Effect effect, TouchSet* set)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // All that the call names is there.
  void Enter(const Addresses& addresses, TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  void AwaitOverwrites(const Addresses& addresses, Effect effect, TouchSet* set)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void RecomputeBeforeMemory(const Addresses& addresses, StreamName stream, Effect effect,
                             TouchSet* set) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  CUresult RecomputeForCall(const Addresses& addresses, Effect effect, TouchSet* set)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void FillEmpty(const TouchSet& set) SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  Waits& waits_;
  Parking& parking_;
  Restores& restores_;
  LookAhead& look_ahead_;
  Replays& replays_;
  PresumedReads& presumed_;
  InputCopies& input_copies_;
  PlanFollower& plan_;
  CallMemory& call_memory_;
  PostLaunchScan& post_scan_;
  Workspaces& workspaces_;
};

}  // namespace spillway::interposer
