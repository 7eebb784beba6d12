// Makes a pattern of a sequence's last repetition.
//
// Called by a sequence learner with a repetition that holds; pure.
//
// The iteration is cut where the fewest bytes of allocations that change are alive: between update
// and forward in training. Of equal places the last one of the longest stretch is taken, so the
// same job is cut at the same place whenever it is learned.
#pragma once

#include <cstdint>

#include "scheduler/learn/event_history.h"
#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/learn/repetition.h"

namespace spillway::scheduler {

struct MadePattern {
  IterationPattern pattern;
  int32_t next = 0;  // the event that comes after the repetition's last one
};

MadePattern MakePattern(const EventHistory& history, const Repetition& repetition);

}  // namespace spillway::scheduler
