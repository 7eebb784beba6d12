// What happens around each call that names device memory: Begin, the driver's own function, End.
//
// Begin makes the memory that the call names resident and keeps it in place. It orders the call's
// stream behind what the call must await. End notes the call's place in the stream as the last use,
// and lets go. When all the memory is on the device and needs nothing, neither takes a lock
// (launch_path.h). Otherwise both do (locked_calls.h).
//
// Invariants
//  1. From Begin to End everything the call names is mapped.
// Never: calls into the application; waits with the state lock held.
#pragma once

#include "interposer/execute/call_recorder.h"
#include "interposer/execute/effect_learning.h"
#include "interposer/execute/grants.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/launch_path.h"
#include "interposer/execute/locked_calls.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/plan_follower.h"
#include "interposer/execute/post_launch_scan.h"
#include "interposer/execute/recompute_recording.h"
#include "interposer/execute/repeat_proofs.h"
#include "interposer/execute/stored_addresses.h"
#include "interposer/execute/touch_set.h"
#include "interposer/execute/workspaces.h"

namespace spillway::interposer {

class JobCalls {
 public:
  JobCalls(JobState& state, CallRecorder& recording, StoredAddresses& stored, Parking& parking,
           PresumedReads& presumed, RecomputeRecording& records, RepeatProofs& proofs,
           EffectLearning& learning, PlanFollower& plan, PostLaunchScan& post_scan, Grants& grants,
           LaunchPath& launch_path, LockedCalls& locked_calls, Workspaces& workspaces)
      : state_(state),
        recording_(recording),
        stored_(stored),
        parking_(parking),
        presumed_(presumed),
        records_(records),
        proofs_(proofs),
        learning_(learning),
        plan_(plan),
        post_scan_(post_scan),
        grants_(grants),
        launch_path_(launch_path),
        locked_calls_(locked_calls),
        workspaces_(workspaces) {}

  // Errors besides out of memory: a copy or query of freed memory is CUDA_ERROR_INVALID_VALUE, as
  // without Spillway. A launch may carry stale addresses that it does not use. In a context that is
  // beyond use, the context's own error.
  CUresult Begin(Addresses* addresses, StreamName stream, Effect effect, TouchSet* set);
  void End(TouchSet* set, Effect effect);
  // All launches of a library's call were made.
  void LibraryCallEnded(const Claims& claims) { workspaces_.CallEnded(claims); }
  void Wrote(const Transfers& transfers, const TouchSet& set) { stored_.Wrote(transfers, set); }
  // After End of a launch that awaits a scan (PostLaunchScan::EndNew).
  bool EndNew(const Addresses& addresses, const TouchSet& set, bool ran) {
    return post_scan_.EndNew(addresses, set, ran);
  }

 private:
  CUresult BeginFastOrLocked(Addresses* addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool IsToKeepRecord(const TouchSet& set) const;
  void ExpectRecord(const Addresses& addresses, StreamName stream, TouchSet* set)
      SPILLWAY_EXCLUDES(kStateLock);
  void EndLearned(TouchSet* set) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void LeavePresumed(TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  void AddBeside(Addresses* addresses) const;
  bool MustWithdraw(Effect effect, const TouchSet& set) const;
  void Withdraw(TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  CUresult RecomputeBeforeOperation(Addresses* addresses, StreamName stream, Effect effect,
                                    TouchSet* set) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool IsForeign(StreamName stream) SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  CallRecorder& recording_;
  StoredAddresses& stored_;
  Parking& parking_;
  PresumedReads& presumed_;
  RecomputeRecording& records_;
  RepeatProofs& proofs_;
  EffectLearning& learning_;
  PlanFollower& plan_;
  PostLaunchScan& post_scan_;
  Grants& grants_;
  LaunchPath& launch_path_;
  LockedCalls& locked_calls_;
  Workspaces& workspaces_;
};

}  // namespace spillway::interposer
