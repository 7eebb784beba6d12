// What the program's own waits, and the beginnings and ends of its streams and captures, make
// known.
//
// Called by the hooks on any thread, around the driver's functions. The timeline is the job's.
#pragma once

#include <vector>

#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"

namespace spillway::interposer {

class ProgramStreams {
 public:
  ProgramStreams(JobState& state, Eviction& eviction) : state_(state), eviction_(eviction) {}

  // A synchronising call: what it covers is noted before, and marked complete after it succeeded.
  std::vector<Use> IssuedOn(StreamName stream);
  std::vector<Use> IssuedIn(CUcontext context) SPILLWAY_EXCLUDES(kStateLock);
  static void Completed(const std::vector<Use>& uses);
  // The program has waited for work on the device.
  void Waited();

  // The stream is about to wait for something that the program does when it likes.
  void AboutToWait(StreamName stream);
  void StreamDestroyed(CUstream stream);
  // The stream is about to join a capture: its work so far is marked.
  void TakeCheckpoint(StreamName stream);
  // A stream is about to capture: all streams' work so far is marked.
  void TakeCheckpoints() SPILLWAY_EXCLUDES(kStateLock);

 private:
  JobState& state_;
  Eviction& eviction_;
};

}  // namespace spillway::interposer
