// Decides whether a plan still fits the job's iterations: their events and their durations.
//
// Called by the pipeline once per iteration, on one thread. Pure. A verdict needs several odd
// iterations in a row: one alone (an evaluation, a slow file) changes nothing. Any verdict but
// kKeep resets all counts.
#pragma once

#include <cstdint>

namespace spillway::scheduler {

enum class DriftVerdict : uint8_t {
  kKeep,
  kReplan,   // same events, other durations: measure and plan again
  kRelearn,  // other events: learn again
};

class DriftMonitor {
 public:
  DriftMonitor(int64_t events, int64_t predicted_ns);

  // `misses`: IterationFollower::last_misses().
  DriftVerdict Add(int64_t measured_ns, int64_t misses);

 private:
  DriftVerdict Begin(DriftVerdict verdict);

  const int64_t events_;
  const int64_t predicted_ns_;
  int64_t off_time_in_a_row_ = 0;
  int64_t off_plan_in_a_row_ = 0;
};

}  // namespace spillway::scheduler
