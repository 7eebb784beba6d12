// Where a test may let another thread go on: before a lock is taken, after it was let go, between
// the steps of what is done without one, and where code yields until something changes.
//
// Called on any thread. In a library as shipped it is nothing at all. In the build for tests, which
// defines SPILLWAY_BREAKABLE, the program is asked when it exports spillway_schedule_point
// (tests/fuzz/differential/schedule.h): then one thread runs at a time, and a seed decides which.
#pragma once

#include <sched.h>

#if defined(SPILLWAY_BREAKABLE)
extern "C" __attribute__((weak, visibility("default"))) void spillway_schedule_point();
#endif

namespace spillway::base {

#if defined(SPILLWAY_BREAKABLE)
inline bool IsScheduled() { return spillway_schedule_point != nullptr; }
inline void SchedulePoint() {
  if (IsScheduled()) spillway_schedule_point();
}
#else
constexpr bool IsScheduled() { return false; }
constexpr void SchedulePoint() {}
#endif

inline void YieldToOthers() {
  SchedulePoint();
  sched_yield();
}

}  // namespace spillway::base
