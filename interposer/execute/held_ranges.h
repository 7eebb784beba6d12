// Ranges that stay in place on the device until their owner's hold ends (holds.h). An owner is, for
// example, a texture object or a handle.
#pragma once

#include <cstdint>

#include "interposer/execute/job_state.h"
#include "interposer/execute/state/holds.h"

namespace spillway::interposer {

class HeldRanges {
 public:
  explicit HeldRanges(JobState& state) : state_(state) {}

  // Call it between Begin and End of a call that names the address. Small allocations stay anyway.
  void Hold(std::uint64_t owner, CUdeviceptr address, Unmovable why) SPILLWAY_EXCLUDES(kStateLock);
  void EndHold(std::uint64_t owner) SPILLWAY_EXCLUDES(kStateLock);
  void EndHold(Holds::Held held) SPILLWAY_EXCLUDES(kStateLock);
  // EndHold in two steps, for owners whose number may be reused as soon as they are destroyed.
  Holds::Held TakeHold(std::uint64_t owner) SPILLWAY_EXCLUDES(kStateLock);
  void PutHoldBack(std::uint64_t owner, Holds::Held held) SPILLWAY_EXCLUDES(kStateLock);

 private:
  JobState& state_;
  Holds holds_ SPILLWAY_GUARDED_BY(kStateLock){&state_.counters};
};

}  // namespace spillway::interposer
