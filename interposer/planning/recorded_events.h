// Translates recorded events into the learner's: sizes become the device memory that they occupy.
#pragma once

#include <cstdint>

#include "interposer/record/recorder.h"
#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/learn/job_event.h"

namespace spillway::interposer {

// Whole chunks, as Allocations::Know passes sizes to PlanWalk.
std::int64_t OccupiedBytes(std::int64_t requested_bytes);
std::int64_t OccupiedPeakBytes(const scheduler::IterationPattern& pattern);

// The event refers to the drained touches.
scheduler::JobEvent EventOf(const Recorder::Drained& drained);

}  // namespace spillway::interposer
