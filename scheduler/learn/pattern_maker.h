// Makes a pattern from a sequence's last repetition, which must hold. Pure.
//
// The iteration begins where the fewest bytes of changing allocations are alive: in training,
// between update and forward. Among equal positions the end of the longest stretch wins, so the
// same job always gets the same start.
#pragma once

#include <cstdint>

#include "scheduler/learn/event_history.h"
#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/learn/repetition.h"

namespace spillway::scheduler {

struct MadePattern {
  IterationPattern pattern;
  int32_t next = 0;  // the event that follows the repetition
};

MadePattern MakePattern(const EventHistory& history, const Repetition& repetition);

}  // namespace spillway::scheduler
