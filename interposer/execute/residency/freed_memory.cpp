#include "interposer/execute/residency/freed_memory.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {
namespace {

constexpr int kMarkedAtOnce = 64;

// Of the range's device memory.
size_t BytesInPieces(const Range& range, size_t piece_bytes) {
  if (range.place != Place::kDevice) return 0;
  if (piece_bytes >= kLargestChunkBytes) return range.size_bytes;
  size_t bytes = 0;
  for (const Chunk& chunk : range.chunks) bytes += chunk.bytes <= piece_bytes ? chunk.bytes : 0;
  return bytes;
}

}  // namespace

Range* FreedMemory::Reuse(size_t bytes) {
  Range* const range = freed_.FindOfSize(bytes, [this](Range* freed) { return MayServe(freed); });
  if (!range) return nullptr;
  freed_.Remove(range);
  if (range->place == Place::kParked) parts_.parked->Discard(range);
  if (!ordering_rules::kReuseWaitsForFree) range->ready_after.Clear();
  range->BeginLife();
  ++parts_.counters->reused_ranges;
  return range;
}

// Its former work may still run. While parking is on, calls may use the range without naming it.
// These could not be ordered behind that work.
bool FreedMemory::MayServe(Range* freed) {
  const auto is_shared = [](const Chunk& chunk) { return chunk.shared; };
  if (std::any_of(freed->chunks.begin(), freed->chunks.end(), is_shared)) return false;
  const bool idle_only = parts_.parked->is_on() || freed->place == Place::kParked;
  return parts_.uses->CloseFastPath(freed) &&
         (!idle_only || parts_.timeline->AllDone(&freed->ready_after));
}

// A retired range must be mapped anew for the next allocation of its size, mostly in the next
// iteration. Largest first retires the fewest. Oldest first would always retire what a repeating
// iteration needs next.
bool FreedMemory::RetireIdle(size_t piece_bytes) {
  Range* best = nullptr;
  size_t most_bytes = 0;
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    const size_t bytes = BytesInPieces(*range, piece_bytes);
    if (bytes <= most_bytes || !parts_.uses->IsIdle(range)) continue;
    best = range;
    most_bytes = bytes;
  }
  if (!best) return false;
  Retire(best);
  return true;
}

bool FreedMemory::IdleBytesReach(size_t bytes, size_t piece_bytes) {
  size_t idle_bytes = 0;
  for (Range* range = freed_.oldest(); range && idle_bytes < bytes;
       range = FreedRanges::Younger(range)) {
    if (parts_.uses->IsIdle(range)) idle_bytes += BytesInPieces(*range, piece_bytes);
  }
  return idle_bytes >= bytes;
}

bool FreedMemory::RetireOldestIdle(size_t most_bytes) {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->place != Place::kDevice || range->size_bytes > most_bytes) continue;
    if (!parts_.uses->IsIdle(range)) continue;
    Retire(range);
    return true;
  }
  return false;
}

bool FreedMemory::AnyIsBusy() {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->place == Place::kDevice && !parts_.uses->IsIdle(range)) return true;
  }
  return false;
}

void FreedMemory::RetireUnmapped() {
  for (Range* range = freed_.oldest(); range;) {
    Range* const freed = std::exchange(range, FreedRanges::Younger(range));
    if (freed->place != Place::kDevice && parts_.uses->IsIdle(freed)) Retire(freed);
  }
}

void FreedMemory::Retire(Range* range) {
  freed_.Remove(range);
  if (range->place == Place::kDevice) {
    driver::MemUnmap(range->base, range->size_bytes);
    parts_.chunks->Give(&range->chunks);
  } else if (range->place == Place::kParked) {
    parts_.parked->Discard(range);
  }
  parts_.mappings->GiveAddresses(range->base, range->size_bytes);
  parts_.ranges->Remove(range);
  range->place = Place::kNowhere;
  range->BeginLife();
  range->ordered.clear();
}

size_t FreedMemory::PendingBytes() const {
  size_t bytes = 0;
  for (const Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range))
    bytes += range->place == Place::kDevice && !range->pins ? range->size_bytes : 0;
  return bytes;
}

void FreedMemory::AddNextTo(FirstUses* first) {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->place == Place::kDevice && range->pins == 0)
      first->Add(parts_.timeline->OneToAwait(&range->ready_after));
  }
}

void FreedMemory::MarkBusy() {
  int marked = 0;
  for (Range* range = freed_.oldest(); range && marked < kMarkedAtOnce;
       range = FreedRanges::Younger(range)) {
    if (range->place != Place::kDevice) continue;
    for (Use use : range->ready_after.items()) parts_.timeline->EventFor(use);
    ++marked;
  }
  parts_.timeline->Poll();
}

}  // namespace spillway::interposer
