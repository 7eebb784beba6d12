#include "interposer/execute/look_ahead.h"

#include <algorithm>

namespace spillway::interposer {
namespace {

bool IsKnown(const Range* range) {
  return range->next_use < static_cast<std::uint64_t>(scheduler::IterationFollower::kNever);
}

}  // namespace

void LookAhead::BringNext() {
  std::vector<Range*> next;
  size_t bytes = 0;
  {
    const StateLock lock(state_.locks);
    if (!state_.residency.parking() || parking_.MustPrepare() || !parking_.MayMoveNow()) return;
    if (state_.residency.copies().link().WaitNs(protocol::Direction::kToDevice) > 0) return;
    if (!state_.walk.IsActive() || !state_.executor.NoteNextUses(&state_.walk)) return;
    next = WhatComesNext();
    for (Range* range : next) {
      state_.residency.Pin(range);
      bytes += range->size_bytes;
    }
  }
  if (!next.empty()) eviction_.BeginMakingRoom(bytes);
  for (Range* range : next) {
    if (!restores_.BringBack(range)) break;
  }
  const StateLock lock(state_.locks);
  for (Range* range : next) state_.residency.Unpin(range);
}

// Each in the place of others that are used later.
std::vector<Range*> LookAhead::WhatComesNext() {
  std::vector<Range*> away, there;
  state_.residency.ForEachLive([&](Range* range) {
    if (range->place == Place::kParked && IsKnown(range)) away.push_back(range);
    if (MayLeave(*range)) there.push_back(range);
  });
  std::sort(away.begin(), away.end(),
            [](const Range* a, const Range* b) { return a->next_use < b->next_use; });
  std::sort(there.begin(), there.end(),
            [](const Range* a, const Range* b) { return a->next_use < b->next_use; });
  std::vector<Range*> next;
  size_t bytes = 0, left_bytes = state_.residency.chunks().ObtainableBytes();
  for (Range* range : away) {
    bytes += range->size_bytes;
    if (bytes > state_.budget.bytes() / kShare) break;
    while (left_bytes < bytes && !there.empty() && there.back()->next_use > range->next_use) {
      left_bytes += there.back()->size_bytes;
      there.pop_back();
    }
    if (left_bytes < bytes) break;
    next.push_back(range);
  }
  return next;
}

}  // namespace spillway::interposer
