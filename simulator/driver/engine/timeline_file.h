// The timeline in SPILLWAY_SIM_TIMELINE's file: a line per operation and long driver call.
//
// Columns: lane (compute, h2d, d2h, host); the virtual nanoseconds at which it was requested, could
// start, started and ended; bytes over the link; name.
#pragma once

#include <cstdint>

#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {

// Operations that take no time are left out.
void NoteInTimeline(const Operation& operation);
void NoteHostTime(Nanos begin_ns, Nanos end_ns);

}  // namespace spillway::simulator
