// How long the program waits for memory, by the device's own clock.
//
// An event on an idle stream of ours is recorded where a wait begins and where it ends; the two are
// read later, when the device has passed them. So waits are in the time in which the device's work
// is measured, also where that is virtual (the simulated GPU). Where no event can be had the host's
// time counts.
//
// Called by the classes behind JobMemory with the state lock held and the job's context current.
// Owns one stream and a few events.
//
// Invariants
//  1. A wait is added to the counters once, when it is known; Settled adds what is not known yet by
//  the host's time.
// Never: waits.
#pragma once

#include <cstdint>
#include <vector>

#include "interposer/driver/cuda_abi.h"
#include "interposer/execute/counters.h"

namespace spillway::interposer {

class StallClock {
 public:
  struct Moment {
    CUevent event = nullptr;
    std::uint64_t host_ns = 0;
  };

  Moment Now();
  // The wait that began then is over.
  void Ended(const Moment& begun, StallCause cause, Counters* counters);
  // The counters with all waits in them; asks the driver nothing.
  Counters Settled(Counters counters) const;
  // The context is going away.
  void Release();

 private:
  struct Wait {
    Moment begin, end;
    StallCause cause;
    std::uint64_t HostNs() const { return end.host_ns - begin.host_ns; }
  };
  static constexpr std::size_t kMostPending = 32;

  CUevent TakeEvent();
  void ReadPassed(Counters* counters);
  void Give(const Moment& moment);

  CUstream stream_ = nullptr;
  std::vector<Wait> pending_;  // the oldest first
  std::vector<CUevent> spare_;
  bool is_released_ = false;
};

}  // namespace spillway::interposer
