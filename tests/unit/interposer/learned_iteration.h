// The iteration learned from everything that a job has recorded so far.
#pragma once

#include <memory>
#include <vector>

#include "interposer/execute/job_memory.h"
#include "scheduler/learn/iteration_learner.h"

namespace spillway::interposer {

inline scheduler::JobEvent EventOf(const RecordedEvent& event,
                                   std::span<const scheduler::JobTouch> touches) {
  switch (event.kind) {
    case RecordedKind::kAllocate:
      return scheduler::JobEvent::Allocate(
          event.allocation, static_cast<int64_t>(RoundUp(event.value, kGranuleBytes)),
          static_cast<int64_t>(event.value));
    case RecordedKind::kFree:
      return scheduler::JobEvent::Free(event.allocation);
    default:
      return scheduler::JobEvent::Operation(event.value, touches);
  }
}

// Null when there is none.
inline std::shared_ptr<const scheduler::IterationPattern> LearnedIteration(JobMemory* job) {
  scheduler::IterationLearner learner;
  std::shared_ptr<const scheduler::IterationPattern> pattern;
  std::vector<LiveAllocation> live;
  job->recording().recorder().TakeRecordingStart(&live);
  Recorder::Drained drained;
  while (job->recording().recorder().Next(&drained)) {
    std::vector<scheduler::JobTouch> touches;
    for (const RecordedTouch& touch : drained.touches)
      touches.push_back({touch.allocation, touch.writes, touch.reads});
    if (drained.event.kind == RecordedKind::kSynchronize) continue;
    const auto found = learner.Add(EventOf(drained.event, touches));
    if (found) pattern = found;
  }
  return pattern;
}

}  // namespace spillway::interposer
