// What the program's own waits, streams and captures make known.
#pragma once

#include <vector>

#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"

namespace spillway::interposer {

class ProgramStreams {
 public:
  ProgramStreams(JobState& state, Eviction& eviction) : state_(state), eviction_(eviction) {}

  // A synchronising call asks before what it covers, and marks that complete once it succeeded.
  std::vector<Use> IssuedOn(StreamName stream);
  std::vector<Use> IssuedIn(CUcontext context) SPILLWAY_EXCLUDES(kStateLock);
  static void Completed(const std::vector<Use>& uses);
  void Waited();

  void AboutToWait(StreamName stream);
  void StreamDestroyed(CUstream stream);
  void TakeCheckpoint(StreamName stream);
  // A stream is about to capture: marks all streams' work so far.
  void TakeCheckpoints() SPILLWAY_EXCLUDES(kStateLock);

 private:
  JobState& state_;
  Eviction& eviction_;
};

}  // namespace spillway::interposer
