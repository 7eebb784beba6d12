// How a job gets memory when none is free: it frees, evicts and waits, in that order.
#include <algorithm>

#include "base/clock.h"
#include "base/pause.h"
#include "base/schedule_point.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

using base::MonotonicNs;
using driver::Driver;

namespace {

// How long to hope, with nothing under way, that other threads' calls end or that the driver changes its mind.
constexpr std::uint64_t kPatienceNs = 10'000'000'000;
constexpr std::int64_t kHeldBackPauseNs = 500'000;

}  // namespace

// Other calls, which let go of what they name, and waits for the program, behind which memory may be freed; and a budget that is
// about to be another one.
bool JobMemory::OthersMayEnd(std::uint64_t deadline_ns) {
  if (MonotonicNs() >= deadline_ns) return false;
  return state_.budget.IsHeld() || state_.calls.locked > 0 || calls::OthersInProgress() ||
         state_.timeline.AnyStreamIsHeld();
}

// What the plan has asked for is given memory before anything behind it. Nothing is sent away for it: where nothing is under way
// that frees memory, it is waited for no longer.
void JobMemory::AwaitPrefetches(StallCause cause) {
  if (!state_.executor.HasPending() || CapturesGoOn()) return;
  for (;;) {
    Awaited next;
    {
      const StateLock lock(state_.locks);
      state_.executor.BringBack();
      if (!state_.executor.MayAwait()) return;
      state_.timeline.Poll();
      next = WithEvents(state_.residency.NextToAwait());
      if (next.empty()) return state_.executor.AwaitedInVain();
    }
    AwaitOneOf(next, cause);
  }
}

// Tries `take_now`, frees what can be freed, starts evictions, awaits the first completion, and again. Gives up when
// nothing is under way and no call in progress holds memory that could move afterwards, or when the driver keeps
// refusing what should be there.
bool JobMemory::MakeRoom(size_t bytes, StallCause cause, base::FunctionRef<bool()> take_now) {
  AwaitPrefetches(cause);
  bool must_prepare, must_park;
  {
    const StateLock lock(state_.locks);
    if (take_now()) return true;
    GiveBackEmptySlabs();
    if (take_now()) return true;
    must_prepare = MustPrepare();
    must_park = state_.trust.MustPark();
  }
  if (must_prepare && must_park && AwaitFreed(bytes, cause, take_now)) return true;
  if (must_prepare) PrepareToMove();
  const std::uint64_t deadline_ns = MonotonicNs() + kPatienceNs;
  for (;;) {
    Awaited next;
    std::int64_t wait_ns = 0;
    StallCause waits_for = cause;
    {
      const StateLock lock(state_.locks);
      state_.executor.BringBack();
      if (take_now()) return true;
      if (!state_.walk.IsActive()) state_.timeline.CheckpointEveryOperation();
      GiveBackEmptySlabs();
      if (take_now()) return true;
      const bool may_move = MayMoveNow();
      const std::int64_t turn_ns = state_.residency.link().WaitNs(protocol::Direction::kToHost);
      const bool enough = may_move && turn_ns == 0 && StartMakingRoom(bytes);
      state_.timeline.Poll();
      next = NextToFree();
      if (next.empty()) {
        next = WithEvents(FirstUses(state_.residency.host().NextToAwait()));
        waits_for = StallCause::kPoolFull;
      }
      if (next.empty() && turn_ns > 0 && may_move) wait_ns = turn_ns;
      if (next.empty() && wait_ns == 0 && !OthersMayEnd(deadline_ns)) {
        if (take_now()) return true;
        if (state_.residency.Health() != CUDA_SUCCESS || MonotonicNs() > deadline_ns) return false;
        // What was busy a moment ago may be done by now; then there is more to be had.
        if (!enough && (!may_move || !StartMakingRoom(bytes))) return false;
        continue;
      }
    }
    if (wait_ns > 0)
      AwaitTurnOf(wait_ns);
    else if (!next.empty())
      AwaitOneOf(next, waits_for);
    else
      state_.budget.IsHeld() ? base::Pause(kHeldBackPauseNs) : base::YieldToOthers();
  }
}

// What was freed before may be enough once its work is done: then nothing leaves, and no mapping that is in use changes.
// False when it is not enough, or its work waits for the program.
bool JobMemory::AwaitFreed(size_t bytes, StallCause cause, base::FunctionRef<bool()> take_now) {
  for (;;) {
    Awaited next;
    {
      const StateLock lock(state_.locks);
      state_.timeline.Poll();
      GiveBackEmptySlabs();
      if (take_now()) return true;
      if (!state_.residency.HasRoomComing(bytes - std::min(bytes, state_.slabs.EmptyBytes()))) return false;
      next = NextToFree();
      if (next.empty()) return false;
    }
    AwaitOneOf(next, cause);
  }
}

bool JobMemory::StartMakingRoom(size_t bytes) {
  if (state_.residency.HasRoomComing(bytes)) return true;
  const bool by_plan = state_.walk.IsActive() && state_.executor.NoteNextUses(&state_.walk);
  return state_.residency.StartMakingRoom(
      bytes, by_plan ? Residency::LeaveFirst::kFurthestUse : Residency::LeaveFirst::kLeastRecentlyUsed);
}

// Waits for the event, or where none can be recorded for the whole stream; after an error the work is over, too.
void JobMemory::Await(Use use, CUevent event, StallCause cause) {
  const TraceMoment begun = state_.trace.BeginHere();
  const StallClock::Moment stalled = BeginStall();
  event ? static_cast<void>(Driver().cuEventSynchronize(event)) : Timeline::WaitFor(use.stream);
  if (!event) state_.timeline.Completed(use.stream, use.sequence);
  state_.trace.EndHere(begun, StallEvent(cause));
  const StateLock lock(state_.locks);
  stall_clock_.Ended(stalled, cause, &state_.counters);
}

// What frees memory, or nothing.
JobMemory::Awaited JobMemory::NextToFree() {
  const FirstUses next = state_.residency.NextToAwait();
  return WithEvents(next.empty() ? FirstUses(state_.slabs.NextToAwait()) : next);
}

JobMemory::Awaited JobMemory::WithEvents(const FirstUses& uses) {
  Awaited awaited;
  for (Use use : uses.items()) awaited.push_back({use, state_.timeline.EventFor(use)});
  return awaited;
}

// Which comes first is not known, and no event says: they are asked in turn. One alone is waited for, and so is a stream without
// events.
void JobMemory::AwaitOneOf(const Awaited& awaited, StallCause cause) {
  const auto has_none = [](const AwaitedUse& one) { return !one.event; };
  const AwaitedUse* const silent = std::find_if(awaited.begin(), awaited.end(), has_none);
  if (silent != awaited.end()) return Await(silent->use, nullptr, cause);
  if (awaited.size() == 1) return Await(awaited.front().use, awaited.front().event, cause);
  const driver::RelaxedCapture relaxed(true);  // a capture may begin meanwhile, and forbid to ask
  // Once anybody has seen that the use is over its event marks another one.
  const auto is_over = [](const AwaitedUse& one) {
    return Timeline::KnownDone(one.use) || Driver().cuEventQuery(one.event) != CUDA_ERROR_NOT_READY;
  };
  const TraceMoment begun = state_.trace.BeginHere();
  const StallClock::Moment stalled = BeginStall();
  while (std::none_of(awaited.begin(), awaited.end(), is_over)) base::YieldToOthers();
  state_.trace.EndHere(begun, StallEvent(cause));
  const StateLock lock(state_.locks);
  stall_clock_.Ended(stalled, cause, &state_.counters);
}

StallClock::Moment JobMemory::BeginStall() {
  const StateLock lock(state_.locks);
  return stall_clock_.Now();
}

void JobMemory::GiveBackEmptySlabs() {
  while (Slab* slab = state_.slabs.TakeEmpty()) {
    state_.residency.UnmapAndGive(slab->plan.base, kGranuleBytes, &slab->chunks);
    state_.counters.wanted_bytes -= kGranuleBytes;
    state_.counters.UnmovableFor(Unmovable::kSmall).bytes -= kGranuleBytes;
  }
}

bool JobMemory::MakeResident(Range* range, Role role) {
  StallCause cause;
  bool copies;
  {
    const StateLock lock(state_.locks);
    copies = role != Role::kOverwrites && (range->place == Place::kHost || range->place == Place::kParked);
    cause = range->place == Place::kNowhere         ? StallCause::kNoMemory
            : state_.executor.IsAskedFor(range->id) ? StallCause::kLatePrefetch
                                                    : StallCause::kDemand;
  }
  if (!AwaitUsesWhereParked(range, cause)) return false;
  if (copies) AwaitTurn(protocol::Direction::kToDevice);
  return MakeRoom(range->size_bytes, cause, [&]() SPILLWAY_REQUIRES(kStateLock) {
    return state_.residency.IsMapped(range) || RestoreOnDemand(range, role);
  });
}

// In a proven job: while the job parks, the device is idle by now. False where nobody may wait for what happens before.
bool JobMemory::AwaitUsesWhereParked(Range* range, StallCause cause) {
  for (;;) {
    Awaited next;
    {
      const StateLock lock(state_.locks);
      if (state_.residency.StaysParked(range)) return false;
      if (range->place != Place::kParked || state_.residency.MayUnpark(range)) return true;
      next = WithEvents(FirstUses(state_.timeline.OneToAwait(&range->uses)));
      if (next.empty()) return true;  // a call of another thread is about to use it
    }
    AwaitOneOf(next, cause);
  }
}

bool JobMemory::RestoreOnDemand(Range* range, Role role) {
  const bool was_away = range->place != Place::kNowhere;
  const bool is_late = state_.executor.IsAskedFor(range->id);
  const auto content = role == Role::kOverwrites ? Residency::Content::kDead : Residency::Content::kWanted;
  if (!state_.residency.Restore(range, is_late ? TraceCause::kLatePrefetch : TraceCause::kDemand, content))
    return false;
  state_.counters.demand_fetches += was_away;
  state_.counters.prefetches_late += state_.executor.TakeFromQueue(range);
  return true;
}

}  // namespace spillway::interposer
