// What the simulated machine did when: a line per operation and per long driver call, in the file
// that SPILLWAY_SIM_TIMELINE names.
//
// Written by the engine (operations, as they end) and by calls that keep the host busy, under the
// engine's mutex; nothing when the variable is not set.
//
// Columns: lane (compute, h2d, d2h, host), the virtual times in nanoseconds at which it was asked
// for, could start, started and ended, bytes over the link, name.
#pragma once

#include <cstdint>

#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {

// When the operation has ended; those that take no time are left out.
void NoteInTimeline(const Operation& operation);
void NoteHostTime(Nanos begin_ns, Nanos end_ns);

}  // namespace spillway::simulator
