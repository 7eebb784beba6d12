// A point at which a test may switch threads: around locks, between lock-free steps, and in yields.
//
// Any thread. A no-op in shipped builds. SPILLWAY_BREAKABLE builds call the program's
// spillway_schedule_point, if any (tests/fuzz/differential/schedule.h): one thread runs at a time,
// picked by a seed.
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
