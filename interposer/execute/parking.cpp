#include "interposer/execute/parking.h"

#include "interposer/execute/stall_clock.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range_trace.h"

namespace spillway::interposer {

bool Parking::PrepareToMove() {
  bool wants_full_scan;
  {
    const StateLock lock(state_.locks);
    prepared_ = true;
    reads_host_ = state_.pointer_safety.MayUnmap();
    if (heap_is_used.load(std::memory_order_relaxed))
      state_.pointer_safety.MarkUnsafe(UnsafeReason::kDeviceHeap);
    wants_full_scan = state_.pointer_safety.WantsFullScan(state_.timeline.Sum().launches);
    if (!wants_full_scan && !state_.pointer_safety.MustPark()) return true;
    if (!ordering_rules::kParkingWaitsForIdle) {
      UpdateParking();
      return true;
    }
    UpdateScans();  // from before the first full scan on
    state_.all_memory.SetDeviceIdle(true);
  }
  const TraceMoment begun = state_.trace.BeginHere();
  const StallClock::Moment stalled = waits_.BeginStall();
  const bool idle = AwaitIdle();
  if (idle && wants_full_scan) scan_.ScanAll();
  state_.trace.EndHere(begun, StallEvent(StallCause::kIdle));
  const StateLock lock(state_.locks);
  waits_.EndStall(stalled, StallCause::kIdle);
  ++(idle ? state_.counters.idle_waits : state_.counters.idle_waits_given_up);
  UpdateParking();
  wait_was_futile_ = !idle && state_.pointer_safety.MustWait();
  UpdateScans();
  reads_host_ = state_.pointer_safety.MayUnmap();
  state_.all_memory.SetDeviceIdle(idle && state_.residency.parking());
  return !wait_was_futile_;
}

void Parking::EndMoving() {
  {
    const StateLock lock(state_.locks);
    if (!prepared_) return;
    prepared_ = wait_was_futile_ = false;
    if (state_.residency.parking()) state_.residency.departures().CancelAll();
  }
  AwaitRestores();
  const StateLock lock(state_.locks);
  state_.all_memory.SetDeviceIdle(false);
}

void Parking::AwaitRestores() {
  Use last;
  CUevent event = nullptr;
  {
    const StateLock lock(state_.locks);
    last = state_.residency.copies().LastRestore();
    if (!state_.residency.parking() || state_.timeline.Done(last)) return;
    event = state_.timeline.EventFor(last);
  }
  waits_.Await(last, event, StallCause::kIdle);
}

bool Parking::MustScanBeforeGranting(size_t size_bytes) {
  return state_.counters.wanted_bytes + size_bytes > state_.budget.bytes() &&
         state_.pointer_safety.MustScanBeforeGranting();
}

void Parking::ScanBeforeGranting(size_t size_bytes) {
  {
    const StateLock lock(state_.locks);
    if (!MustScanBeforeGranting(size_bytes)) return;
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);
  PrepareToMove();
  EndMoving();
}

void Parking::UpdateParking() {
  is_due_ = false;
  if (!state_.residency.host().mappable()) state_.pointer_safety.CannotPark();
  state_.residency.SetParking(state_.pointer_safety.MustPark());
}

bool Parking::MayPark() {
  const StateLock lock(state_.locks);
  return state_.pointer_safety.MayPark();
}

// A kernel may reach a new range before any call names it. While ranges must always be mapped, one
// without device memory is mapped onto host memory.
bool Parking::ParkIfNew(Range* range) {
  if (range->place != Place::kNowhere || !state_.pointer_safety.MustPark()) return true;
  if (!state_.residency.parking()) UpdateParking();
  if (!state_.pointer_safety.MustPark() || range->place == Place::kParked) return true;
  return state_.residency.parked().ParkNew(range);
}

bool Parking::AwaitsFreed(const Range& range) const {
  return range.place == Place::kNowhere && state_.pointer_safety.MustPark() &&
         state_.counters.wanted_bytes + range.size_bytes <= state_.budget.bytes();
}

bool Parking::AwaitIdle() {
  return waits_.AwaitProgress([this]() SPILLWAY_REQUIRES(kStateLock) { return IsIdle(); },
                              &vain_waits_);
}

bool Parking::IsIdle() {
  const UseList unfinished = state_.timeline.Unfinished();
  for (Use use : unfinished.items()) state_.timeline.EventFor(use);
  return unfinished.empty() && state_.calls.locked == 0 && !state_.all_memory.IsNamed();
}

}  // namespace spillway::interposer
