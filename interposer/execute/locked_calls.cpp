#include "interposer/execute/locked_calls.h"

#include <algorithm>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/call_roles.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;

CUresult LockedCalls::BeginLocked(const Addresses& addresses, StreamName stream, Effect effect,
                                  TouchSet* set) {
  const RelaxedCapture relaxed(true);  // a capture may begin on another thread at any moment
  set->recorded = effect == Effect::kNames || (CapturesGoOn() && IsCapturing(stream));
  {
    const StateLock lock(state_.locks);
    set->stream = state_.timeline.Of(stream);
    if (!set->recorded) state_.promises.BeforeNext(set->stream, set->shows);
    call_memory_.Find(addresses, effect, set);
    if (set->names_freed && effect != Effect::kLaunches && effect != Effect::kNames)
      return CUDA_ERROR_INVALID_VALUE;
    const bool all_there = AllOnDevice(set->ranges) && !AnyEmpty(*set);
    if (!state_.all_memory.device_is_idle() && !set->must_park && all_there &&
        !replays_.FirstToRecompute(addresses, effect, *set).range) {
      workspaces_.Expect(*set, 0);
      Enter(addresses, set);
      return CUDA_SUCCESS;
    }
  }
  return BeginSlowly(addresses, stream, effect, set);
}

void LockedCalls::EndLocked(TouchSet* set, Effect effect) {
  if (set->failed) FillEmpty(*set);
  const StateLock lock(state_.locks);
  --state_.calls.locked;
  presumed_.Leave(set);
  for (SlabBlock* block : set->blocks)
    block->is_fresh = block->is_fresh && (set->failed || set->recorded);
  for (size_t i = 0; i < set->ranges.size(); ++i) {
    Range* const range = set->ranges[i];
    state_.residency.Leave(range);
    if (set->recorded) continue;
    workspaces_.NoteUse(*set, i);
    range->is_fresh = range->is_fresh && set->failed;
    state_.residency.Used(range, set->use, MayWrite(*set, i, effect));
    if (!set->failed) RangeUses::OpenFastPath(range, Timeline::SerialOf(set->stream));
  }
}

CUresult LockedCalls::BeginSlowly(const Addresses& addresses, StreamName stream, Effect effect,
                                  TouchSet* set) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const CurrentContext current(state_.context);
  if (state_.walk.IsActive() && !state_.recompute_records.empty())
    RecomputeBeforeMemory(addresses, stream, effect, set);
  const MakingLock making(state_.locks);
  replays_.EndRecordsIfUnproven();
  if (set->must_park) post_scan_.BeginParking();
  CUresult made = CUDA_SUCCESS;
  Entry entry = Entry::kTryAgain;
  while (made == CUDA_SUCCESS && entry == Entry::kTryAgain) {
    AwaitOverwrites(addresses, effect, set);
    made = RecomputeForCall(addresses, effect, set);
    if (made == CUDA_SUCCESS) entry = TryToEnter(addresses, effect, set);
  }
  if (entry == Entry::kEntered) look_ahead_.BringNext();
  parking_.EndMoving();
  if (entry == Entry::kEntered) return CUDA_SUCCESS;
  if (made != CUDA_SUCCESS) return made;
  const StateLock lock(state_.locks);
  return state_.OutOfMemory();
}

void LockedCalls::Enter(const Addresses& addresses, TouchSet* set) {
  call_memory_.Enter(set);
  presumed_.Enter(addresses, set);
  if (set->writes_variables) replays_.OrderBehindReplays(set->stream);
}

// Meanwhile another thread's plan may drop a range that this call must recompute first.
LockedCalls::Entry LockedCalls::TryToEnter(const Addresses& addresses, Effect effect,
                                           TouchSet* set) {
  {
    const StateLock lock(state_.locks);
    call_memory_.Find(addresses, effect, set);
    if (replays_.FirstToRecompute(addresses, effect, *set).range) return Entry::kTryAgain;
    for (Range* range : set->ranges) state_.residency.Pin(range);
  }
  const bool resident = restores_.MakeAllResident(set);
  const StateLock lock(state_.locks);
  const bool must_make = resident && replays_.FirstToRecompute(addresses, effect, *set).range;
  const bool enters = resident && !must_make;
  if (enters) {
    workspaces_.Expect(*set, 1);
    Enter(addresses, set);
  }
  for (Range* range : set->ranges) {
    if (!enters) state_.residency.Fill(range);
    state_.residency.Unpin(range);
  }
  return enters ? Entry::kEntered : must_make ? Entry::kTryAgain : Entry::kRefused;
}

// Another thread's call is about to overwrite one of the ranges. On this call's stream, its old or
// new bytes would both be right, but neither are there yet. Only a thread that makes memory
// resident empties ranges, so none is emptied meanwhile.
void LockedCalls::AwaitOverwrites(const Addresses& addresses, Effect effect, TouchSet* set) {
  waits_.AwaitProgress([&]() SPILLWAY_REQUIRES(kStateLock) {
    call_memory_.Find(addresses, effect, set);
    return !AnyEmpty(*set);
  });
}

// What the call itself needs is recomputed as the plan says, not on demand.
void LockedCalls::RecomputeBeforeMemory(const Addresses& addresses, StreamName stream,
                                        Effect effect, TouchSet* set) {
  if (set->recorded || set->step) return;
  {
    const StateLock lock(state_.locks);
    call_memory_.Find(addresses, effect, set);
  }
  plan_.ReportToPlan(effect, set);
  if (set->awaits_scan || !plan_.AnyToRerun(*set->step)) return;
  plan_.Rerun(*set->step, stream);
  set->step->recompute.clear();
}

CUresult LockedCalls::RecomputeForCall(const Addresses& addresses, Effect effect, TouchSet* set) {
  if (state_.recompute_records.empty()) return CUDA_SUCCESS;
  for (;;) {
    ToRecompute next;
    {
      const StateLock lock(state_.locks);
      call_memory_.Find(addresses, effect, set);
      next = replays_.FirstToRecompute(addresses, effect, *set);
    }
    if (!next.range) return CUDA_SUCCESS;
    if (next.small_input && input_copies_.Save(next.small_input)) continue;
    const CUresult made = replays_.RecomputeRange(next.range, nullptr, TraceCause::kDemand);
    if (made != CUDA_SUCCESS) return made;
  }
}

// The call was not made. The stream is not ordered behind the copies that bring the bytes back.
void LockedCalls::FillEmpty(const TouchSet& set) {
  const driver::CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  for (size_t i = 0; i < set.ranges.size(); ++i) {
    if (DiscardsOldBytes(RoleAt(set, i))) state_.residency.Fill(set.ranges[i]);
  }
}

void LockedCalls::WithdrawLocked(TouchSet* set) {
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  --state_.calls.locked;
  for (Range* range : set->ranges) {
    state_.residency.Fill(range);
    state_.residency.Leave(range);
  }
}

}  // namespace spillway::interposer
