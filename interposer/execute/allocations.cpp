#include "interposer/execute/allocations.h"

#include <algorithm>
#include <atomic>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range_trace.h"
#include "scheduler/learn/job_event.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;

namespace {

std::uint64_t NextId() {
  static constinit std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

CUresult Allocations::Allocate(size_t bytes, CUdeviceptr* out) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const CUresult result =
      bytes < kSmallBytes ? AllocateSmall(bytes, out) : AllocateRange(bytes, out);
  state_.recorder.Settle();
  if (result == CUDA_SUCCESS && state_.HasPeers()) {
    const MakingLock making(state_.locks);
    restores_.RestoreAll();  // a peer device may use it first
  }
  return result;
}

bool Allocations::Free(CUdeviceptr base, bool is_pooled) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const bool waits = !is_pooled && ordering_rules::kFreesKeepTheirPromise;
  bool is_ours = false;
  if (!FreeAtOnce(base, waits, &is_ours)) {
    if (waits) free_waits_.AwaitVisibleWork(base);
    free_waits_.AwaitIfParking();
    const StateLock lock(state_.locks);
    FreeInOrder(base, nullptr, waits, &is_ours);
  }
  state_.recorder.Settle();
  return is_ours;
}

// False when a wait must come first.
bool Allocations::FreeAtOnce(CUdeviceptr base, bool waits, bool* is_ours) {
  const StateLock lock(state_.locks);
  if (free_waits_.MustAwait(waits)) return false;
  FreeInOrder(base, nullptr, waits, is_ours);
  return true;
}

bool Allocations::FreeAsync(CUdeviceptr base, StreamName stream) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  bool is_ours = false;
  {
    const StateLock lock(state_.locks);
    FreeInOrder(base, &stream, false, &is_ours);
  }
  if (is_ours) state_.recorder.Settle();
  return is_ours;
}

bool Allocations::HasRoomFor(size_t size_bytes) {
  return FitsBudget(size_bytes) && state_.host_grant.HasRoomFor(size_bytes);
}

// Whether AwaitRoomFor has something to do.
bool Allocations::MustAwaitRoomFor(size_t size_bytes) {
  return frees_.put_off_bytes() != 0 || parking_.MustScanBeforeGranting(size_bytes) ||
         state_.budget.IsHeld() || state_.host_grant.Lacks(size_bytes) ||
         state_.executor.HasPending() || eviction_.MustAwaitFreed(size_bytes);
}

// After a fault the bare driver gives no more memory. Answer the same. Most allocations need no
// wait, and take the lock once. Frees deferred for a plan stay deferred while there is room beside
// them. Room is checked under the lock that makes the range: until then, a smaller budget or
// another thread may take it.
CUresult Allocations::AllocateRange(size_t bytes, CUdeviceptr* out) {
  const size_t size_bytes = RoundUp(bytes, kGranuleBytes);
  Range* range = nullptr;
  bool awaits_freed = false, must_cut;
  {
    const StateLock lock(state_.locks);
    if (const CUresult health = state_.Health(); health != CUDA_SUCCESS) return health;
    must_cut = arenas_.MustCut(size_bytes);
    if (!must_cut && !MustAwaitRoomFor(size_bytes))
      range = NewRange(bytes, size_bytes, &awaits_freed);
  }
  if (must_cut) return AllocateArena(bytes, out);
  for (bool even_held = false; !range; even_held = true) {
    AwaitRoomFor(size_bytes, even_held);
    const StateLock lock(state_.locks);
    if (!even_held && frees_.put_off_bytes() != 0 && !HasRoomFor(size_bytes)) continue;
    range = NewRange(bytes, size_bytes, &awaits_freed);
    if (!range) return Refused();
  }
  const CUresult result = awaits_freed ? AwaitMemory(range) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) *out = range->base;
  return result;
}

CUresult Allocations::AllocateSmall(size_t bytes, CUdeviceptr* out) {
  for (;;) {
    {
      const StateLock lock(state_.locks);
      if (const CUresult health = state_.Health(); health != CUDA_SUCCESS) return health;
      if (!state_.slabs.NeedsSlab(bytes)) {
        SlabBlock* const block = state_.slabs.Take(bytes);
        block->id = NextId();
        block->is_fresh = state_.Learns();
        if (block->is_fresh) block->fast_path.Close();
        *out = block->base;
        ++state_.counters.allocations;
        return CUDA_SUCCESS;
      }
    }
    eviction_.AwaitReturnFor(kGranuleBytes);
    const CUresult result = eviction_.AddSlab(bytes);
    if (result == CUDA_SUCCESS) continue;
    if (parking_.MayPark()) return AllocateRange(bytes, out);
    const StateLock lock(state_.locks);
    return Refused();
  }
}

void Allocations::AwaitRoomFor(size_t size_bytes, bool even_held) {
  replays_.RunDeferredFrees([&]() SPILLWAY_REQUIRES(kStateLock) {
    return even_held || state_.host_grant.Lacks(size_bytes);
  });
  parking_.ScanBeforeGranting(size_bytes);
  state_.budget.Await([&]() SPILLWAY_REQUIRES(kStateLock) { return FitsBudget(size_bytes); });
  state_.host_grant.Await(size_bytes);
  eviction_.AwaitPrefetches(StallCause::kNoMemory);
  eviction_.AwaitFreedFor(size_bytes);
}

// The range is pinned, as the program does not know it yet. Without memory it is parked.
CUresult Allocations::AwaitMemory(Range* range) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);  // AwaitFreed gives back empty slabs
  eviction_.AwaitFreed(range->size_bytes, StallCause::kNoMemory,
                       [&]() SPILLWAY_REQUIRES(kStateLock) {
                         return range->place != Place::kNowhere || state_.residency.Restore(range);
                       });
  const StateLock lock(state_.locks);
  state_.residency.Unpin(range);
  if (parking_.ParkIfNew(range)) return CUDA_SUCCESS;
  frees_.ReportFree(range);
  frees_.GiveBack(range, {});
  return Refused();
}

// Null when refused. A range that waits for freed memory is pinned.
Range* Allocations::NewRange(size_t bytes, size_t size_bytes, bool* awaits_freed) {
  recording_.RecordIfOverBudget(size_bytes);
  Range* const range =
      size_bytes >= bytes && Admits(size_bytes) ? state_.residency.NewRange(bytes) : nullptr;
  *awaits_freed = range && parking_.AwaitsFreed(*range);
  state_.host_grant.UpdateLimits(range ? size_bytes
                                       : 0);  // the range may have to be parked at once
  if (!range) return nullptr;
  if (!*awaits_freed && !parking_.ParkIfNew(range)) {
    state_.residency.Free(range, {});
    return nullptr;
  }
  state_.budget.Want(range->size_bytes);
  Know(range);
  if (*awaits_freed) state_.residency.Pin(range);
  return range;
}

// No other thread is making memory: what it decided must hold until it is done, and this makes the
// job unsafe.
CUresult Allocations::AllocateArena(size_t bytes, CUdeviceptr* out) {
  AwaitRoomFor(RoundUp(bytes, kGranuleBytes), true);
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);
  const StateLock lock(state_.locks);
  const Arena* const arena = NewArena(bytes);
  if (!arena) return Refused();
  *out = arena->base;
  return CUDA_SUCCESS;
}

// Evicted memory is parked before the parts get theirs: it must be idle then, as not all uses of a
// part are known. Parts without memory are parked before a call can name them.
const Arena* Allocations::NewArena(size_t bytes) {
  const size_t size_bytes = RoundUp(bytes, kGranuleBytes), part_bytes = arenas_.PartBytes();
  recording_.RecordIfOverBudget(size_bytes);
  if (size_bytes < bytes || !state_.host_grant.HasRoomFor(size_bytes, part_bytes)) return nullptr;
  const CUdeviceptr base = state_.residency.mappings().TakeAddresses(size_bytes);
  if (!base) return nullptr;
  Arena* const arena = arenas_.Add(base, bytes, part_bytes);
  state_.host_grant.NoteLargest(part_bytes);
  state_.host_grant.UpdateLimits(size_bytes);
  parking_.UpdateParking();
  arenas_.Cut(arena, state_.residency.NewParts(base, bytes, part_bytes));
  const auto is_mapped = [this](Range* part) SPILLWAY_REQUIRES(kStateLock) {
    return parking_.ParkIfNew(part) && part->place != Place::kNowhere;
  };
  if (!std::all_of(arena->parts.begin(), arena->parts.end(), is_mapped)) {
    const std::vector<Range*> parts = arena->parts;
    arenas_.Remove(arena);
    for (Range* part : parts) state_.residency.Free(part, {});
    state_.pointer_safety.ForgetArena();
    return nullptr;
  }
  arena->id = NextId();
  for (Range* part : arena->parts) {
    state_.budget.Want(part->size_bytes);
    Know(part);
  }
  ++state_.counters.arenas;
  state_.counters.arena_bytes += size_bytes;
  return arena;
}

CUresult Allocations::Refused() {
  ++state_.counters.refused_allocations;
  return state_.OutOfMemory();
}

void Allocations::Know(Range* range) {
  const size_t size_bytes = range->size_bytes;
  range->id = NextId();
  range->is_fresh = state_.Learns();
  if (range->is_fresh) range->fast_path.Close();
  if (state_.recorder.IsRecording())
    state_.recorder.Allocated(range->id, static_cast<std::int64_t>(range->requested_bytes));
  state_.executor.Allocated(range);
  if (state_.walk.IsActive())
    state_.walk.Observe(
        scheduler::JobEvent::Allocate(range->id, static_cast<std::int64_t>(size_bytes)), nullptr);
  state_.ledger.AddRange(range);
  ++state_.counters.allocations;
  state_.counters.over_budget_allocations += state_.counters.wanted_bytes > state_.budget.bytes();
  state_.host_grant.UpdateLimits();
  TraceNow(&state_.trace, TraceKind::kAllocated, range);
  state_.residency.TraceMemory();
}

// Everything granted must be usable. HostGrant says how much host memory that takes. A range larger
// than the budget, where it is no arena, is used where it is parked.
bool Allocations::Admits(size_t size_bytes) {
  const bool fits = HasRoomFor(size_bytes);
  if (fits) state_.host_grant.NoteLargest(size_bytes);  // a refused allocation needs no room
  return fits;
}

bool Allocations::FitsBudget(size_t size_bytes) const {
  if (state_.MustStay()) return state_.counters.wanted_bytes + size_bytes <= state_.budget.bytes();
  return size_bytes <= state_.budget.bytes() || state_.pointer_safety.MayPark();
}

// A record may need the memory to recompute a dropped range. Then the free is deferred, usually
// until the program frees that range, too, a moment later.
void Allocations::FreeInOrder(CUdeviceptr base, const StreamName* stream, bool waits,
                              bool* is_ours) {
  Allocation* const found = state_.FindBase(base);
  *is_ours = found && !found->is_mapping;
  if (!*is_ours) return;
  UseList busy;
  if (!stream) busy = state_.timeline.Unfinished();
  if (waits) state_.promises.Add(busy);
  const Arena* const arena = ArenaOf(found);
  if (!arena) return FreeOne(found, busy, stream);
  const std::vector<Range*> parts = arena->parts;
  arenas_.Remove(arena);
  for (Range* part : parts) FreeOne(part, busy, stream);
}

void Allocations::FreeOne(Allocation* found, UseList busy, const StreamName* stream) {
  frees_.ReportFree(found);
  auto* const memory = static_cast<Tracked*>(found);
  if (frees_.IsStillNeeded(memory)) return frees_.DeferFree(memory);
  if (stream) {
    // The free gets a place of its own, also behind waits for other streams' events.
    const Use own_place = state_.timeline.Issue(state_.timeline.Of(*stream));
    if (ordering_rules::kStreamFreeFollowsItsStream) busy.Add(own_place);
    state_.residency.spare().NotePooled();
  }
  frees_.GiveBack(found, busy);
}

}  // namespace spillway::interposer
