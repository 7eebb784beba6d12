// How long the program waits for memory, by the device's own clock.
//
// An event on an idle stream of ours is recorded where a wait begins and where it ends. Both are
// read once the device has passed them. So waits and device work are measured by one clock, even a
// virtual one (the simulated GPU). Without events the host's time counts.
//
// Invariants
//  1. A wait is counted once, when its length is known. Settled adds the rest by host time.
//  2. The time that waits are a part of is known up to the end of a wait: it grows with the waits.
// Never: waits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "interposer/driver/cuda_abi.h"
#include "interposer/execute/state/counters.h"

namespace spillway::interposer {

class StallClock {
 public:
  struct Moment {
    CUevent event = nullptr;
    std::uint64_t host_ns = 0;
  };

  Moment Now();
  void Ended(const Moment& begun, StallCause cause, Counters* counters);
  // The counters with all waits in them. Asks the driver nothing.
  Counters Settled(Counters counters) const;
  void Release();

 private:
  struct Wait {
    Moment begin, end;
    StallCause cause;
    std::uint64_t HostNs() const { return end.host_ns - begin.host_ns; }
  };
  static std::uint64_t TimeBetween(const Moment& begin, const Moment& end);

  static constexpr std::size_t kMostPending = 32;

  CUevent TakeEvent();
  void ReadPassed(Counters* counters);
  void Give(const Moment& moment);

  CUstream stream_ = nullptr;
  std::vector<Wait> pending_;
  std::vector<CUevent> spare_;
  std::optional<Moment> last_;  // the end of the last wait that was counted
  bool is_released_ = false;
};

}  // namespace spillway::interposer
