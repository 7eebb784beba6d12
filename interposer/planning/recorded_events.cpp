#include "interposer/planning/recorded_events.h"

#include "base/units.h"
#include "interposer/driver/chunk_pool.h"

namespace spillway::interposer {

using scheduler::JobEvent;

std::int64_t OccupiedBytes(std::int64_t requested_bytes) {
  return static_cast<std::int64_t>(
      RoundUp(static_cast<std::size_t>(requested_bytes), kGranuleBytes));
}

std::int64_t OccupiedPeakBytes(const scheduler::IterationPattern& pattern) {
  scheduler::IterationProfile occupied = pattern.profile;
  for (std::size_t i = 0; i < occupied.buffers.size(); ++i)
    occupied.buffers[i].size_bytes = pattern.buffers[i].size_bytes;
  return scheduler::PeakBytes(occupied);
}

JobEvent EventOf(const Recorder::Drained& drained) {
  const RecordedEvent& event = drained.event;
  JobEvent out;
  switch (event.kind) {
    case RecordedKind::kAllocate: {
      const auto requested_bytes = static_cast<std::int64_t>(event.value);
      out = JobEvent::Allocate(event.allocation, OccupiedBytes(requested_bytes), requested_bytes);
      break;
    }
    case RecordedKind::kFree:
      out = JobEvent::Free(event.allocation);
      break;
    case RecordedKind::kOperation:
      out = JobEvent::Operation(event.value, drained.touches);
      break;
    case RecordedKind::kSynchronize:
      out.kind = scheduler::JobEventKind::kSynchronize;
      break;
  }
  out.thread = drained.thread;
  return out;
}

}  // namespace spillway::interposer
