// Frees that a program takes for a wait. See Note [What a free promises] in deferred_waits.h.
//
// Called by hooks and by Allocations on the program's threads. Owns nothing: the promises are the
// job's. Never: waits with a lock held.
#pragma once

#include "interposer/execute/job_state.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class FreeWaits {
 public:
  FreeWaits(JobState& state, Waits& waits) : state_(state), waits_(waits) {}

  // Before a free: for work whose effects the program could see without a call; and where the job
  // parks, for all.
  void AwaitWhatShows(CUdeviceptr freed) SPILLWAY_EXCLUDES(kStateLock);
  void AwaitBeforeFree() SPILLWAY_EXCLUDES(kStateLock);

  // What frees have promised (deferred_waits.h): the stream's next operation comes behind it; it is
  // complete. False: none was open. Shows: the program has enqueued what no other hook tells of.
  void KeepPromises(StreamName stream) SPILLWAY_EXCLUDES(kStateLock);
  bool AwaitPromises() SPILLWAY_EXCLUDES(kStateLock);
  void Shows(StreamName stream) SPILLWAY_EXCLUDES(kStateLock);

 private:
  JobState& state_;
  Waits& waits_;
};

}  // namespace spillway::interposer
