#include "interposer/execute/eviction.h"

#include <algorithm>

#include "base/clock.h"
#include "base/pause.h"
#include "base/schedule_point.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/state/calls.h"

namespace spillway::interposer {

using base::MonotonicNs;
using driver::CurrentContext;
using driver::RelaxedCapture;

namespace {

// With nothing under way: how long to wait for other calls to end, or for the driver.
constexpr std::uint64_t kRoomPatienceNs = 10'000'000'000;
constexpr std::int64_t kHeldBackPauseNs = 500'000;

}  // namespace

// Repeats: try `take_now`, free what can be freed, start evictions, await the first completion.
// Gives up when nothing is under way and no call in progress holds memory that could move later, or
// when the driver keeps refusing memory that should be there.
bool Eviction::MakeRoom(size_t bytes, StallCause cause, base::FunctionRef<bool()> take_now) {
  AwaitPrefetches(cause);
  bool must_prepare, must_park;
  {
    const StateLock lock(state_.locks);
    if (take_now()) return true;
    GiveBackEmptySlabs();
    if (take_now()) return true;
    must_prepare = parking_.MustPrepare();
    must_park = state_.pointer_safety.MustPark();
  }
  if (must_prepare && must_park && AwaitFreed(bytes, cause, take_now)) return true;
  if (must_prepare) parking_.PrepareToMove();
  const std::uint64_t deadline_ns = MonotonicNs() + kRoomPatienceNs;
  for (;;) {
    std::int64_t wish_ns = 0;
    Waits::Awaited next;
    std::int64_t wait_ns = 0;
    StallCause waits_for = cause;
    {
      const StateLock lock(state_.locks);
      state_.executor.RestoreQueued();
      if (take_now()) return true;
      if (!state_.walk.MovesMemory()) state_.timeline.CheckpointEveryOperation();
      GiveBackEmptySlabs();
      if (take_now()) return true;
      if (state_.residency.HasAtHand(bytes)) {
        wish_ns = WishNs();
        if (wish_ns == 0 && take_now()) return true;
      }
      const bool may_move = parking_.MayMoveNow();
      const std::int64_t turn_ns =
          state_.residency.copies().link().WaitNs(protocol::Direction::kToHost);
      const bool enough = may_move && turn_ns == 0 && StartMakingRoom(bytes);
      state_.timeline.Poll();
      next = NextToFree();
      if (next.empty()) {
        state_.residency.laid_out().Forgo();
        if (take_now()) return true;
        next = waits_.WithEvents(FirstUses(state_.residency.host().NextToAwait()));
        waits_for = StallCause::kPoolFull;
      }
      if (next.empty() && turn_ns > 0 && may_move) wait_ns = turn_ns;
      if (next.empty() && wait_ns == 0 && !OthersMayEnd(deadline_ns)) {
        if (take_now()) return true;
        if (state_.residency.copies().Health() != CUDA_SUCCESS || MonotonicNs() > deadline_ns)
          return false;
        // What was busy a moment ago may be idle by now: then more can be evicted.
        if (!enough && (!may_move || !StartMakingRoom(bytes))) return false;
        continue;
      }
    }
    if (wait_ns > 0)
      waits_.AwaitTurnOf(wait_ns);
    else if (!next.empty())
      AwaitOneOf(next, waits_for, wish_ns);
    else
      state_.budget.IsHeld() ? base::Pause(kHeldBackPauseNs) : base::YieldToOthers();
  }
}

void Eviction::BeginMakingRoom(size_t bytes) {
  const StateLock lock(state_.locks);
  const bool is_turn = state_.residency.copies().link().WaitNs(protocol::Direction::kToHost) == 0;
  if (is_turn && parking_.MayMoveNow()) StartMakingRoom(bytes);
}

// Freed memory may be enough once its work is done. Then nothing is evicted, and no mapping in use
// changes. False when it is not enough, or when its work waits for the program.
bool Eviction::AwaitFreed(size_t bytes, StallCause cause, base::FunctionRef<bool()> take_now) {
  for (;;) {
    Waits::Awaited next;
    {
      const StateLock lock(state_.locks);
      state_.timeline.Poll();
      GiveBackEmptySlabs();
      if (take_now()) return true;
      if (!state_.residency.departures().WillHaveRoom(bytes -
                                                      std::min(bytes, state_.slabs.EmptyBytes())))
        return false;
      next = NextToFree();
      if (next.empty()) return false;
    }
    waits_.AwaitOneOf(next, cause);
  }
}

// Nothing is evicted for prefetches. The wait ends when nothing under way can free memory.
void Eviction::AwaitPrefetches(StallCause cause) {
  if (!state_.executor.HasPending() || CapturesGoOn()) return;
  for (;;) {
    Waits::Awaited next;
    {
      const StateLock lock(state_.locks);
      state_.executor.RestoreQueued();
      if (!state_.executor.MayAwait()) return;
      state_.timeline.Poll();
      next = waits_.WithEvents(state_.residency.NextToAwait());
      if (next.empty()) return state_.executor.NoteFutileWait();
    }
    waits_.AwaitOneOf(next, cause);
  }
}

void Eviction::AwaitReturnFor(size_t bytes) {
  state_.budget.AwaitReturn([&]() SPILLWAY_REQUIRES(kStateLock) {
    return bytes + state_.counters.UnmovableBytesSoon() <= state_.budget.bytes();
  });
}

CUresult Eviction::AddSlab(size_t bytes) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);
  const CUresult result = AddSlabWhileMaking(bytes);
  parking_.EndMoving();
  return result;
}

CUresult Eviction::AddSlabWhileMaking(size_t bytes) {
  CUdeviceptr base = 0;
  Chunks chunks;
  UseList ready_after;
  MakeRoom(kGranuleBytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(kStateLock) {
    base = state_.residency.MapNew(kGranuleBytes, &chunks, &ready_after);
    return base != 0;
  });
  const StateLock lock(state_.locks);
  if (!base) return state_.OutOfMemory();
  state_.slabs.AddSlab(bytes, base, std::move(chunks), ready_after);
  state_.counters.UnmovableFor(Unmovable::kSmall).Add(kGranuleBytes);
  state_.budget.Want(kGranuleBytes);
  state_.residency.TraceMemory();
  return CUDA_SUCCESS;
}

void Eviction::ReturnFreedMemory() {
  const StateLock lock(state_.locks);
  gives_back_ = true;
  state_.residency.spare().TurnOn();
}

// Memory that was busy when it was freed is idle by now.
void Eviction::GiveBackSpare() {
  if (!gives_back_) return;
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  if (state_.locks.TryLockMaking()) {  // a thread that makes memory needs the slabs in place
    GiveBackSpareSlabs();
    state_.locks.UnlockMaking();
  }
  const StateLock lock(state_.locks);
  state_.residency.spare().GiveBack(SpareRelease::After::kWait);
}

bool Eviction::MustAwaitFreed(size_t size_bytes) {
  return MustAwaitSpare(size_bytes) || MustAwaitLaidOut(size_bytes);
}

bool Eviction::MustAwaitLaidOut(size_t size_bytes) {
  return !CapturesGoOn() && state_.residency.MustAwaitLaidOut(size_bytes);
}

bool Eviction::MustAwaitSpare(size_t size_bytes) {
  return !CapturesGoOn() && gives_back_ && state_.residency.spare().MustAwait(size_bytes);
}

void Eviction::AwaitFreedFor(size_t size_bytes) {
  for (;;) {
    Waits::Awaited next;
    std::int64_t wish_ns = 0;
    {
      const StateLock lock(state_.locks);
      if (!MustAwaitSpare(size_bytes)) {
        if (!MustAwaitLaidOut(size_bytes)) return;
        wish_ns = WishNs();
        if (wish_ns == 0) return;
      }
      next = waits_.WithEvents(state_.residency.NextToAwait());
      if (next.empty()) return;
    }
    AwaitOneOf(next, StallCause::kNoMemory, wish_ns);
  }
}

// How long a thread waits for what the layout has for it, although other memory is at hand. 0: it
// takes any. (Note [Patience] in residency/laid_out_memory.h)
std::int64_t Eviction::WishNs() {
  const std::int64_t wish_ns = state_.residency.laid_out().patience_ns();
  if (wish_ns == 0) state_.residency.laid_out().Forgo();
  return wish_ns;
}

// `wish_ns`: how long at most; 0: until one is complete.
void Eviction::AwaitOneOf(const Waits::Awaited& awaited, StallCause cause, std::int64_t wish_ns) {
  if (wish_ns == 0) return waits_.AwaitOneOf(awaited, cause);
  const std::uint64_t began_ns = MonotonicNs();
  waits_.AwaitOneOf(awaited, cause, began_ns + static_cast<std::uint64_t>(wish_ns));
  const StateLock lock(state_.locks);
  state_.residency.laid_out().Waited(static_cast<std::int64_t>(MonotonicNs() - began_ns));
}

// From other calls that end, from streams that wait for the program, or with the next budget.
bool Eviction::OthersMayEnd(std::uint64_t deadline_ns) {
  if (MonotonicNs() >= deadline_ns) return false;
  return state_.budget.IsHeld() || state_.calls.locked > 0 || calls::OthersInProgress() ||
         state_.timeline.AnyStreamIsHeld();
}

bool Eviction::StartMakingRoom(size_t bytes) {
  if (state_.residency.departures().WillHaveRoom(bytes)) return true;
  const bool by_plan = state_.walk.IsActive() && state_.executor.NoteNextUses(&state_.walk);
  return state_.residency.departures().StartMakingRoom(
      bytes,
      by_plan ? Departures::LeaveFirst::kFurthestUse : Departures::LeaveFirst::kLeastRecentlyUsed);
}

Waits::Awaited Eviction::NextToFree() {
  const FirstUses next = state_.residency.NextToAwait();
  return waits_.WithEvents(next.empty() ? FirstUses(state_.slabs.NextToAwait()) : next);
}

void Eviction::GiveBackEmptySlabs() {
  while (Slab* slab = state_.slabs.TakeEmpty()) {
    state_.residency.UnmapAndGive(slab->plan.base, kGranuleBytes, &slab->chunks);
    state_.counters.wanted_bytes -= kGranuleBytes;
    state_.counters.UnmovableFor(Unmovable::kSmall).bytes -= kGranuleBytes;
  }
}

void Eviction::GiveBackSpareSlabs() {
  const StateLock lock(state_.locks);
  if (state_.residency.spare().IsMoreThanKept(state_.slabs.EmptyBytes())) GiveBackEmptySlabs();
}

}  // namespace spillway::interposer
