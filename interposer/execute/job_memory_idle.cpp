// Parking: mappings change while the device is idle and no call begins. See Note [Trust] in trust.h.
#include <sched.h>

#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"

namespace spillway::interposer {

using base::MonotonicNs;
using base::MutexLock;
using driver::Driver;

namespace {

// Note [Idle in vain]
// A stream may wait for something that the program does only after the call that waits here. So the wait ends when
// nothing on the device has completed for a while. An unproven job then goes on as a proven one would: nothing speaks
// against it yet, and it must not hang. A job that is opaque, or parks by choice, gets no memory this time.
constexpr std::uint64_t kPatienceNs = 500'000'000;
constexpr std::uint64_t kOpaquePatienceNs = 10'000'000'000;

}  // namespace

// Before the first step that takes memory away from a range or a mapping from the device. False when none may be made.
bool JobMemory::PrepareToMove() {
  bool wants_census, must_wait;
  {
    const MutexLock lock(state_);
    prepared_ = true;
    if (heap_is_used.load(std::memory_order_relaxed)) trust_.Opaque(Opacity::kDeviceHeap);
    wants_census = trust_.WantsCensus(Launches());
    must_wait = trust_.MustWait();
    if (!wants_census && !trust_.MustPark()) return true;
    if (!ordering_rules::kParkingWaitsForIdle) {
      UpdateParking();
      return true;
    }
    device_is_idle_ = true;
    UpdateEverything();
  }
  const TraceMoment begun = trace_.BeginHere();
  const std::uint64_t start_ns = MonotonicNs();
  const bool idle = AwaitIdle(must_wait ? kOpaquePatienceNs : kPatienceNs);
  if (idle && wants_census) MakeCensus();
  trace_.EndHere(begun, StallEvent(StallCause::kIdle));
  const MutexLock lock(state_);
  counters_.Stalled(StallCause::kIdle, MonotonicNs() - start_ns);
  ++(idle ? counters_.idle_waits : counters_.idle_waits_given_up);
  UpdateParking();
  waits_in_vain_ = !idle && trust_.MustWait();
  device_is_idle_ = idle && residency_.parking();
  UpdateEverything();
  return !waits_in_vain_;
}

void JobMemory::AskBeforeGranting(size_t size_bytes) {
  {
    const MutexLock lock(state_);
    if (counters_.wanted_bytes + size_bytes <= budget_bytes_ || !trust_.MustAskBeforeGranting()) return;
  }
  const MutexLock making(making_);
  PrepareToMove();
  EndMoving();
}

// What was brought back is there, and calls may begin.
void JobMemory::EndMoving() {
  {
    const MutexLock lock(state_);
    if (!prepared_) return;
    prepared_ = waits_in_vain_ = false;
    if (residency_.parking()) residency_.CancelLeaving();
  }
  AwaitRestores();
  const MutexLock lock(state_);
  device_is_idle_ = false;
  UpdateEverything();
}

void JobMemory::AwaitRestores() {
  Use last;
  CUevent event = nullptr;
  {
    const MutexLock lock(state_);
    last = residency_.LastRestore();
    if (!residency_.parking() || timeline_.Done(last)) return;
    event = timeline_.EventFor(last);
  }
  Await(last, event, StallCause::kIdle);
}

// A free implies a wait. It is left out where the uses of the memory that is freed, and of that which serves anew, are
// known.
void JobMemory::AwaitBeforeFree() {
  UseList unfinished;
  std::vector<CUevent> events;
  {
    const MutexLock lock(state_);
    if (!residency_.parking() || CapturesGoOn()) return;
    unfinished = timeline_.Unfinished();
    for (Use use : unfinished.items()) events.push_back(timeline_.EventFor(use));
  }
  for (size_t i = 0; i < events.size(); ++i) Await(unfinished.items()[i], events[i], StallCause::kIdle);
}

bool JobMemory::AwaitIdle(std::uint64_t patience_ns) {
  std::uint64_t progress = 0, seen = 0;
  for (std::uint64_t since_ns = MonotonicNs(); MonotonicNs() - since_ns < patience_ns; sched_yield()) {
    const MutexLock lock(state_);
    if (IsIdle(&progress)) return true;
    if (progress == seen) continue;
    seen = progress;
    since_ns = MonotonicNs();
  }
  return false;
}

// No call is between its Begin and its End, and all that was enqueued is complete. `progress` is another number whenever
// something has completed.
bool JobMemory::IsIdle(std::uint64_t* progress) {
  const UseList unfinished = timeline_.Unfinished();
  *progress = timeline_.SumCompleted();
  for (Use use : unfinished.items()) timeline_.EventFor(use);
  return unfinished.empty() && locked_calls_ == 0 && !calls::Names(&everything_);
}

void JobMemory::SomethingNew() {
  if (!ordering_rules::kNewKernelsAreNoted) return;
  {
    const MutexLock lock(state_);
    if (!trust_.SomethingNew()) return;
  }
  const driver::RelaxedCapture relaxed(CapturesGoOn());
  const driver::CurrentContext current(context_);
  const MutexLock making(making_);
  BeginParking();
}

// A job that was taken for harmless is not: what is away gets its mapping, what is on its way back arrives.
void JobMemory::BeginParking() {
  {
    const MutexLock lock(state_);
    UpdateParking();
  }
  AwaitRestores();
}

void JobMemory::UpdateParking() {
  if (!residency_.host().mappable()) trust_.CannotPark();
  residency_.SetParking(trust_.MustPark());
}

void JobMemory::UpdateEverything() {
  device_is_idle_ || !outside_.empty() ? everything_.gate.Close() : everything_.gate.OpenForAll();
}

// A kernel may reach a new range before any call names it: where it must be mapped at all times, and there is no device
// memory for it right now, its addresses are mapped onto host memory.
bool JobMemory::IsParkedAnew(Range* range) {
  if (range->place != Place::kNowhere || !trust_.MustPark()) return true;
  if (!residency_.parking()) UpdateParking();
  if (!trust_.MustPark() || range->place == Place::kParked) return true;
  return residency_.ParkNew(range);
}

// Within the budget there is memory for a new range, at the latest when the work of what was freed is done.
bool JobMemory::AwaitsFreed(const Range& range) const {
  return range.place == Place::kNowhere && trust_.MustPark() &&
         counters_.wanted_bytes + range.size_bytes <= budget_bytes_;
}

// For a range that is pinned, since nobody knows it yet. What no wait gets memory for is parked.
CUresult JobMemory::AwaitMemory(Range* range) {
  AwaitFreed(range->size_bytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(state_) {
    return range->place != Place::kNowhere || residency_.Restore(range);
  });
  const MutexLock lock(state_);
  residency_.Unpin(range);
  if (IsParkedAnew(range)) return CUDA_SUCCESS;
  FreeFound(range, {});
  return Refused();
}

}  // namespace spillway::interposer
