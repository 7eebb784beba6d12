// Frees that the program takes for a wait. (Note [What a free promises] in deferred_waits.h)
//
// Never: waits with a lock held.
#pragma once

#include "interposer/execute/job_state.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class FreeWaits {
 public:
  FreeWaits(JobState& state, Waits& waits) : state_(state), waits_(waits) {}

  // Before a free: the first waits for work whose effects the program could see without a call. The
  // second waits for all work, if the job parks. MustAwait: whether either has something to do.
  bool MustAwait(bool visible_work) SPILLWAY_REQUIRES(kStateLock);
  void AwaitVisibleWork(CUdeviceptr freed) SPILLWAY_EXCLUDES(kStateLock);
  void AwaitIfParking() SPILLWAY_EXCLUDES(kStateLock);

  // KeepPromises orders the stream's next operation behind what frees have promised. AwaitPromises
  // waits for it; false when nothing was promised. Shows notes work that no other hook reports.
  void KeepPromises(StreamName stream) SPILLWAY_EXCLUDES(kStateLock);
  bool AwaitPromises() SPILLWAY_EXCLUDES(kStateLock);
  void Shows(StreamName stream) SPILLWAY_EXCLUDES(kStateLock);
  // Work may be enqueued that this job does not know: its calls began when there was no such job.
  void WorkWasUnseen() { state_.promises.NoteUnseenWork(); }

 private:
  UseList UnfinishedVisible() SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Waits& waits_;
};

}  // namespace spillway::interposer
