// A device whose times are easy to add up. For tests of the engine, on any thread.
#pragma once

#include "simulator/driver/machine/profile.h"

namespace spillway::simulator {

// 1 byte per nanosecond each way, half of that while both directions are busy; calls cost nothing.
inline Profile PlainProfile() {
  Profile profile;
  profile.multiprocessors = 10;
  profile.h2d_bytes_per_second = profile.d2h_bytes_per_second = 1'000'000'000;
  profile.h2d_both_bytes_per_second = profile.d2h_both_bytes_per_second = 500'000'000;
  return profile;
}

}  // namespace spillway::simulator
