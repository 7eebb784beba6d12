#include "interposer/execute/residency/freed_memory.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {
namespace {

constexpr int kMarkedAtOnce = 64;
constexpr size_t kMostWithoutMemory = 1024;

// Of what the freed range holds.
size_t BytesInPieces(const Range& freed, size_t piece_bytes) {
  if (piece_bytes >= kLargestChunkBytes) return freed.held_bytes;
  size_t bytes = 0;
  for (const Chunk* chunk : freed.chunks)
    bytes += chunk->holder == &freed && chunk->bytes <= piece_bytes ? chunk->bytes : 0;
  return bytes;
}

size_t HeldBesidePieces(const Range& freed) {
  size_t bytes = 0;
  for (const Chunk* chunk : freed.chunks)
    bytes += chunk->holder == &freed && !chunk->IsPiece() ? chunk->bytes : 0;
  return bytes;
}

bool IsMappedOnto(const Range& range, const Chunk* chunk) {
  return std::find(range.chunks.begin(), range.chunks.end(), chunk) != range.chunks.end();
}

bool HoldsShared(const Range& freed) {
  return std::any_of(freed.chunks.begin(), freed.chunks.end(), [&](const Chunk* chunk) {
    return chunk->holder == &freed && chunk->is_shared;
  });
}

}  // namespace

void FreedMemory::Add(Range* range) {
  range->held_bytes = range->place == Place::kDevice ? range->size_bytes : 0;
  freed_.Add(range);
}

Range* FreedMemory::Reuse(size_t bytes) {
  const auto may_serve = [this](Range* freed) { return MayServe(freed); };
  const auto is_mapped = [this](Range* freed) { return IsMapped(freed) && MayServe(freed); };
  Range* range = freed_.FindOfSize(bytes, is_mapped);
  if (!range) range = freed_.FindOfSize(bytes, may_serve);
  return range ? TakeUp(range) : nullptr;
}

Range* FreedMemory::ReuseMappedOnto(size_t bytes, const Chunks& chunks) {
  Range* const range = freed_.FindOfSize(bytes, [&](Range* freed) {
    return IsMapped(freed) && freed->chunks == chunks && MayServe(freed);
  });
  return range ? TakeUp(range) : nullptr;
}

Range* FreedMemory::TakeUp(Range* range) {
  freed_.Remove(range);
  if (range->place == Place::kParked) parts_.parked->Discard(range);
  for (Chunk* chunk : range->chunks) {
    Range* const holder = std::exchange(chunk->holder, range);
    if (holder == range) continue;
    if (!holder) {
      parts_.chunks->TakeFree(chunk);
      continue;
    }
    freed_.SetHeld(holder, holder->held_bytes - chunk->bytes);
    range->ready_after.Merge(holder->ready_after);
  }
  if (!ordering_rules::kReuseWaitsForFree) range->ready_after.Clear();
  range->BeginLife();
  ++parts_.counters->reused_ranges;
  RetireSurplus();
  return range;
}

bool FreedMemory::HasOfSize(size_t bytes) {
  const auto may_serve = [this](const Range* freed) {
    return freed->part_place == PartPlace::kNone &&
           std::all_of(freed->chunks.begin(), freed->chunks.end(),
                       [&](const Chunk* chunk) { return MayTake(*chunk, *freed); });
  };
  return freed_.FindOfSize(bytes, may_serve) != nullptr;
}

// Its former work may still run. While parking is on, calls may use the range without naming it.
// These could not be ordered behind that work.
bool FreedMemory::MayServe(Range* freed) {
  if (freed->part_place != PartPlace::kNone) return false;
  for (const Chunk* chunk : freed->chunks) {
    if (!MayTake(*chunk, *freed)) return false;
  }
  for (const Chunk* chunk : freed->chunks) {
    const bool is_others = chunk->holder && chunk->holder != freed;
    if (is_others && (parts_.parked->is_on() || !parts_.uses->CloseFastPath(chunk->holder)))
      return false;
  }
  const bool idle_only = parts_.parked->is_on() || freed->place == Place::kParked;
  return parts_.uses->CloseFastPath(freed) &&
         (!idle_only || parts_.timeline->AllDone(&freed->ready_after));
}

// As far as the chunk shows. Slabs and other users of the pool hold theirs without a range.
bool FreedMemory::MayTake(const Chunk& chunk, const Range& freed) {
  if (chunk.is_shared) return false;
  return chunk.holder ? chunk.holder == &freed || !chunk.holder->live : chunk.is_free;
}

bool FreedMemory::MayTakeFrom(Range* freed) {
  return freed->held_bytes > 0 && !HoldsShared(*freed) && parts_.uses->CloseFastPath(freed);
}

bool FreedMemory::MayTakeAll(const Chunks& chunks, Wanted wanted) {
  return std::all_of(chunks.begin(), chunks.end(), [&](const Chunk* chunk) {
    Range* const holder = chunk->holder;
    if (!holder) return chunk->is_free;
    if (holder->live || HoldsShared(*holder)) return false;
    return wanted == Wanted::kIdle ? parts_.uses->IsIdle(holder)
                                   : parts_.uses->CloseFastPath(holder);
  });
}

bool FreedMemory::AreComing(const Chunks& chunks) {
  return std::all_of(chunks.begin(), chunks.end(), [&](const Chunk* chunk) {
    Range* const holder = chunk->holder;
    if (!holder) return chunk->is_free;
    const bool is_going = !holder->live || holder->place == Place::kLeaving;
    return is_going && holder->pins == 0 && !HoldsShared(*holder) && !parts_.uses->IsHeld(holder);
  });
}

FreedMemory::Taken FreedMemory::TakeAll(const Chunks& chunks) {
  Taken taken;
  for (Chunk* chunk : chunks) {
    Range* const holder = std::exchange(chunk->holder, nullptr);
    taken.chunks.push_back(chunk);
    taken.holders.push_back(holder);
    taken.bytes += chunk->bytes;
    if (!holder) {
      parts_.chunks->TakeFree(chunk);
      continue;
    }
    freed_.SetHeld(holder, holder->held_bytes - chunk->bytes);
    taken.ready_after.Merge(holder->ready_after);
  }
  if (!ordering_rules::kReuseWaitsForFree) taken.ready_after.Clear();
  return taken;
}

FreedMemory::Taken FreedMemory::Take(size_t bytes) {
  Taken taken;
  if (parts_.parked->is_on()) return taken;
  while (Range* const whole = LargestToTake(bytes - taken.bytes, {}))
    TakeFrom(whole, bytes - taken.bytes, &taken);
  std::vector<Range*> tried;
  while (Range* const larger = LargestToTake(~size_t{0}, tried)) {
    if (taken.bytes == bytes) break;
    tried.push_back(larger);
    TakeFrom(larger, bytes - taken.bytes, &taken);
  }
  if (!ordering_rules::kReuseWaitsForFree) taken.ready_after.Clear();
  return taken;
}

// Largest chunks first.
void FreedMemory::TakeFrom(Range* freed, size_t most_bytes, Taken* taken) {
  Chunks chunks;
  for (Chunk* chunk : freed->chunks) {
    if (chunk->holder == freed) chunks.push_back(chunk);
  }
  std::stable_sort(chunks.begin(), chunks.end(),
                   [](const Chunk* a, const Chunk* b) { return a->bytes > b->bytes; });
  size_t bytes = 0;
  for (Chunk* chunk : chunks) {
    if (bytes + chunk->bytes > most_bytes) continue;
    bytes += chunk->bytes;
    chunk->holder = nullptr;
    taken->chunks.push_back(chunk);
    taken->holders.push_back(freed);
  }
  if (bytes == 0) return;
  freed_.SetHeld(freed, freed->held_bytes - bytes);
  taken->ready_after.Merge(freed->ready_after);
  taken->bytes += bytes;
}

// The pool may have released other chunks meanwhile, which retires the ranges on them: what these
// held is idle, too.
void FreedMemory::PutBack(const Taken& taken) {
  Chunks idle;
  for (size_t i = 0; i < taken.chunks.size(); ++i) {
    Chunk* const chunk = taken.chunks[i];
    Range* const holder = taken.holders[i];
    if (!holder || !IsMappedOnto(*holder, chunk)) {
      idle.push_back(chunk);
      continue;
    }
    chunk->holder = holder;
    freed_.SetHeld(holder, holder->held_bytes + chunk->bytes);
  }
  parts_.chunks->Give(&idle);
}

Range* FreedMemory::LargestToTake(size_t most_bytes, const std::vector<Range*>& tried) {
  Range* best = nullptr;
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->held_bytes > most_bytes || (best && range->held_bytes <= best->held_bytes)) continue;
    if (std::find(tried.begin(), tried.end(), range) == tried.end() && MayTakeFrom(range))
      best = range;
  }
  return best;
}

// Largest first disturbs the fewest others. Oldest first would always take what a repeating
// iteration needs next.
bool FreedMemory::YieldIdle(size_t piece_bytes) {
  return YieldIdleWithMost([&](const Range& freed) { return BytesInPieces(freed, piece_bytes); });
}

bool FreedMemory::YieldIdleBesidePieces() {
  return YieldIdleWithMost([](const Range& freed) { return HeldBesidePieces(freed); });
}

bool FreedMemory::YieldIdleWithMost(base::FunctionRef<size_t(const Range&)> bytes_of) {
  Range* best = nullptr;
  size_t most_bytes = 0;
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    const size_t bytes = bytes_of(*range);
    if (bytes <= most_bytes || !parts_.uses->IsIdle(range)) continue;
    best = range;
    most_bytes = bytes;
  }
  if (!best) return false;
  Yield(best);
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

bool FreedMemory::YieldOldestIdle(size_t most_bytes) {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->held_bytes == 0 || range->held_bytes > most_bytes) continue;
    if (!parts_.uses->IsIdle(range)) continue;
    Yield(range);
    return true;
  }
  return false;
}

bool FreedMemory::AnyIsBusy() {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->held_bytes > 0 && !parts_.uses->IsIdle(range)) return true;
  }
  return false;
}

size_t FreedMemory::BytesBesidePieces(Work work) {
  size_t bytes = 0;
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    const size_t held_bytes = HeldBesidePieces(*range);
    if (held_bytes == 0 || range->pins > 0) continue;
    const bool is_idle = parts_.uses->IsIdle(range);
    const bool is_under_way = !is_idle && !parts_.uses->IsHeld(range);
    bytes += (work == Work::kIdle ? is_idle : is_under_way) ? held_bytes : 0;
  }
  return bytes;
}

void FreedMemory::RetireUnmapped() {
  for (Range* range = freed_.oldest(); range;) {
    Range* const freed = std::exchange(range, FreedRanges::Younger(range));
    if (freed->place != Place::kDevice && parts_.uses->IsIdle(freed)) Retire(freed);
  }
}

// The pool may give the chunks to the driver at once, which retires the range.
void FreedMemory::Yield(Range* freed) {
  Chunks chunks;
  for (Chunk* chunk : freed->chunks) {
    if (chunk->holder == freed) chunks.push_back(chunk);
  }
  freed_.SetHeld(freed, 0);
  parts_.chunks->Give(&chunks);
  RetireSurplus();
}

// Where sizes change all the time, few of the mappings serve again.
void FreedMemory::RetireSurplus() {
  Range* const oldest = freed_.oldest_without_memory();
  const bool is_surplus = freed_.count_without_memory() > kMostWithoutMemory;
  if (is_surplus && parts_.uses->IsIdle(oldest)) Retire(oldest);
}

// Their memory then goes back to the driver, too, which may unmap others. A call may name a range
// that another thread freed meanwhile: no kernel uses it, but the call goes on with the range.
void FreedMemory::Unmap(Chunk* chunk) {
  while (Range* const mapped = FirstMappedOnto(chunk)) {
    if (parts_.uses->IsIdle(mapped)) {
      Retire(mapped);
      continue;
    }
    freed_.Remove(mapped);
    Chunks held = TakeMapping(mapped);
    mapped->place = Place::kNowhere;
    freed_.Add(mapped);
    parts_.chunks->Give(&held);
  }
}

Range* FreedMemory::FirstMappedOnto(const Chunk* chunk) const {
  for (Range* range : {freed_.oldest_without_memory(), freed_.oldest()}) {
    for (; range; range = FreedRanges::Younger(range)) {
      if (IsMappedOnto(*range, chunk)) return range;
    }
  }
  return nullptr;
}

void FreedMemory::Retire(Range* range) {
  freed_.Remove(range);
  Chunks held;
  if (range->place == Place::kDevice) {
    held = TakeMapping(range);
  } else if (range->place == Place::kParked) {
    parts_.parked->Discard(range);
  }
  parts_.mappings->GiveAddresses(range->base, range->size_bytes,
                                 range->part_place == PartPlace::kInner);
  parts_.ranges->Remove(range);
  range->Retire();
  parts_.chunks->Give(&held);
}

Chunks FreedMemory::TakeMapping(Range* range) {
  driver::MemUnmap(range->base, range->size_bytes);
  return range->NoteUnmapped();
}

size_t FreedMemory::PendingBytes() const {
  size_t bytes = 0;
  for (const Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range))
    bytes += range->pins ? 0 : range->held_bytes;
  return bytes;
}

void FreedMemory::AddNextTo(FirstUses* first) {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->held_bytes > 0 && range->pins == 0)
      first->Add(parts_.timeline->OneToAwait(&range->ready_after));
  }
}

void FreedMemory::MarkBusy() {
  int marked = 0;
  for (Range* range = freed_.oldest(); range && marked < kMarkedAtOnce;
       range = FreedRanges::Younger(range)) {
    if (range->held_bytes == 0) continue;
    for (Use use : range->ready_after.items()) parts_.timeline->EventFor(use);
    ++marked;
  }
  parts_.timeline->Poll();
}

}  // namespace spillway::interposer
