// Judges whether a plan still fits the job: iterations take the time that was predicted, and their
// events are the pattern's.
//
// Told by the pipeline once per iteration, on one thread. A pure decider: times come in as values.
//
// Invariants
//   1. One odd iteration (an evaluation, a slow file) changes nothing: a verdict needs several in a
//   row.
//   2. After a verdict other than kKeep it begins anew.
#pragma once

#include <cstdint>

namespace spillway::scheduler {

enum class DriftVerdict : uint8_t {
  kKeep,
  kReplan,   // the same events take another time: measure durations again, plan again
  kRelearn,  // the events are other ones
};

class DriftMonitor {
 public:
  // The iteration's events; what the cost model expects it to take.
  DriftMonitor(int64_t events, int64_t predicted_ns);

  // `misses`: IterationFollower::last_misses().
  DriftVerdict Add(int64_t measured_ns, int64_t misses);
  // Nothing was followed at all for `events` events.
  DriftVerdict AddLost(int64_t events);

 private:
  DriftVerdict Begin(DriftVerdict verdict);

  const int64_t events_;
  const int64_t predicted_ns_;
  int64_t off_time_in_a_row_ = 0;
  int64_t off_plan_in_a_row_ = 0;
  int64_t lost_events_ = 0;
};

}  // namespace spillway::scheduler
