#include "interposer/execute/residency/freed_memory.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/residency/range_cut.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {
namespace {

constexpr int kMarkedAtOnce = 64;

}  // namespace

Range* FreedMemory::Reuse(size_t bytes) {
  Range* range = freed_.FindOfSize(bytes, [this](Range* freed) { return MayServe(freed); });
  if (!range) range = CutOut(bytes);
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

std::vector<Range*> FreedMemory::ServingByAddress() {
  std::vector<Range*> serving;
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->place == Place::kDevice && MayServe(range)) serving.push_back(range);
  }
  std::sort(serving.begin(), serving.end(),
            [](const Range* a, const Range* b) { return a->base < b->base; });
  return serving;
}

// Cuts a range of that size out of freed ones; what remains before and behind it stays freed.
Range* FreedMemory::CutOut(size_t bytes) {
  const std::vector<Range*> serving = ServingByAddress();
  const std::optional<RangeCut> cut = FindCut(serving, bytes);
  if (!cut) return nullptr;
  const auto ranges = std::span(serving).subspan(cut->first, cut->last - cut->first + 1);
  Chunks chunks;
  for (const Range* range : ranges)
    chunks.insert(chunks.end(), range->chunks.begin(), range->chunks.end());
  const size_t behind = ranges.back()->chunks.size() - cut->to_chunk;
  const auto all = std::span(std::as_const(chunks));
  CUdeviceptr base = ranges.front()->base;
  AddPiece(&base, all.first(cut->from_chunk), ranges.first(1));
  Range* const middle =
      AddPiece(&base, all.subspan(cut->from_chunk, all.size() - cut->from_chunk - behind), ranges);
  Range* const last = AddPiece(&base, all.last(behind), ranges.last(1));
  (last ? last : middle)->has_guard = ranges.back()->has_guard;
  for (Range* range : ranges) Forget(range);
  return middle;
}

// A freed range of these chunks, mapped from *base on, which moves behind them. It waits for all
// the work of the ranges that it is a piece of. Null without chunks.
Range* FreedMemory::AddPiece(CUdeviceptr* base, std::span<const Chunk> chunks,
                             std::span<Range* const> of) {
  size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.bytes;
  if (bytes == 0) return nullptr;
  Range* const piece = parts_.ranges->Add(std::exchange(*base, *base + bytes), bytes);
  piece->requested_bytes = bytes;
  piece->chunks.assign(chunks.begin(), chunks.end());
  piece->place = Place::kDevice;
  piece->live = false;
  piece->has_guard = false;
  for (const Range* range : of) piece->ready_after.Merge(range->ready_after);
  freed_.Add(piece);
  return piece;
}

// A retired range must be mapped anew for the next allocation of its size, mostly in the next
// iteration. Largest first retires the fewest. Oldest first would always retire what a repeating
// iteration needs next.
bool FreedMemory::RetireIdle(RetireFirst order) {
  const auto worth = [order](const Range* range) {
    if (range->place != Place::kDevice) return size_t{0};
    return order == RetireFirst::kLargest ? range->size_bytes : GranulesOf(range->chunks);
  };
  Range* best = nullptr;
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (worth(range) > (best ? worth(best) : 0) && parts_.uses->IsIdle(range)) best = range;
  }
  if (!best) return false;
  Retire(best);
  return true;
}

bool FreedMemory::RetireOldestIdle() {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->place != Place::kDevice || !parts_.uses->IsIdle(range)) continue;
    Retire(range);
    return true;
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
  if (range->place == Place::kDevice) {
    driver::MemUnmap(range->base, range->size_bytes);
    parts_.chunks->Give(&range->chunks);
  } else if (range->place == Place::kParked) {
    parts_.parked->Discard(range);
  }
  parts_.mappings->GiveAddresses(range->base, range->size_bytes, range->has_guard);
  Forget(range);
}

// Its memory and addresses are others' by now.
void FreedMemory::Forget(Range* range) {
  freed_.Remove(range);
  parts_.ranges->Remove(range);
  range->place = Place::kNowhere;
  range->chunks.clear();
  range->ready_after.Clear();
  range->ordered.clear();
  range->has_guard = true;
  range->BeginLife();
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
