#include "interposer/execute/held_ranges.h"

namespace spillway::interposer {

void HeldRanges::Hold(std::uint64_t owner, CUdeviceptr address, Unmovable why) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(address);
  if (found && found->kind == AllocationKind::kRange) holds_.Add(owner, AsRange(found), why);
}

// Uses through the holder are unknown: anything enqueued may be one.
void HeldRanges::EndHold(Holds::Held held) {
  const StateLock lock(state_.locks);
  if (Range* const range = holds_.End(held)) range->uses.Merge(state_.timeline.Unfinished());
}

Holds::Held HeldRanges::TakeHold(std::uint64_t owner) {
  const StateLock lock(state_.locks);
  return holds_.Take(owner);
}

void HeldRanges::PutHoldBack(std::uint64_t owner, Holds::Held held) {
  const StateLock lock(state_.locks);
  holds_.PutBack(owner, held);
}

void HeldRanges::EndHold(std::uint64_t owner) { EndHold(TakeHold(owner)); }

}  // namespace spillway::interposer
