// Sleeps for a while: what waits for something that nobody signals asks again after a pause.
//
// Called on any thread, never with a lock held. A signal ends the pause early.
#pragma once

#include <time.h>

#include <cstdint>

namespace spillway::base {

inline void Pause(std::int64_t pause_ns) {
  const timespec pause{pause_ns / 1'000'000'000, pause_ns % 1'000'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace spillway::base
