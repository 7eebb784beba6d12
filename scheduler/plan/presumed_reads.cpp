#include "scheduler/plan/presumed_reads.h"

#include <algorithm>
#include <vector>

namespace spillway::scheduler {
namespace {

using Operations = std::vector<OperationId>;

Operations PresumedReadsOfInputs(const IterationProfile& profile, OperationId maker,
                                 const std::vector<Operations>& presumed) {
  Operations all;
  for (const BufferId input : profile.at(maker).reads) {
    const Operations& readers = presumed[static_cast<size_t>(input.index)];
    all.insert(all.end(), std::upper_bound(readers.begin(), readers.end(), maker), readers.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Whether the touches leave an interval of at least three quarters of the length.
bool LeaveMost(OperationId from, OperationId to, const Operations& touches) {
  int32_t longest = 0, last = from.index;
  for (const OperationId touch : touches) {
    longest = std::max(longest, touch.index - last);
    last = touch.index;
  }
  longest = std::max(longest, to.index - last);
  return 4 * longest >= 3 * (to.index - from.index);
}

void KeepIn(const IdleInterval& interval, OperationId maker,
            const std::vector<Operations>& presumed, IterationProfile* profile) {
  Operations touches = PresumedReadsOfInputs(*profile, maker, presumed);
  std::erase_if(touches, [&](OperationId at) { return at <= interval.from || interval.to <= at; });
  if (!LeaveMost(interval.from, interval.to, touches)) return;
  for (const OperationId touch : touches)
    profile->operations[static_cast<size_t>(touch.index)].reads.push_back(interval.buffer);
}

}  // namespace

void KeepOutputsAtPresumedReads(IterationProfile* profile) {
  std::vector<Operations> presumed(profile->buffers.size()), makers(profile->buffers.size());
  for (size_t i = 0; i < profile->operations.size(); ++i) {
    const OperationId id{static_cast<int32_t>(i)};
    const Operation& operation = profile->at(id);
    for (BufferId read : operation.presumed_reads)
      presumed[static_cast<size_t>(read.index)].push_back(id);
    if (operation.replayable)
      for (BufferId made : operation.writes) makers[static_cast<size_t>(made.index)].push_back(id);
  }
  for (const IdleInterval& interval : IdleIntervals(*profile, 0)) {
    if (interval.wraps || interval.content_dead) continue;
    const Operations& of_buffer = makers[static_cast<size_t>(interval.buffer.index)];
    const auto after = std::upper_bound(of_buffer.begin(), of_buffer.end(), interval.from);
    if (after != of_buffer.begin()) KeepIn(interval, *(after - 1), presumed, profile);
  }
}

}  // namespace spillway::scheduler
