// The fast path of a call: begun and ended without a lock, when all that it names is on the device and asks for nothing.
//
// Called around calls on the program's threads. Why this is safe: Note [Gates] in calls.h.
//
// Invariants
//  1. Between BeginAtOnce and EndAtOnce the call's memory stays where it is.
// Never: locks, waits, or asks the driver.
#pragma once

#include "interposer/execute/job_state.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class LaunchPath {
 public:
  explicit LaunchPath(JobState& state) : state_(state) {}

  // False, with nothing written down, where the call needs the locks.
  bool BeginAtOnce(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set);
  // The uses are noted before the ranges are let go.
  static void EndAtOnce(const TouchSet& set);

 private:
  static bool UseBlocksAtOnce(const TouchSet& set);

  JobState& state_;
};

}  // namespace spillway::interposer
