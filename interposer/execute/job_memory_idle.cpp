// Parking: mappings change while the device is idle and no call begins. See Note [Trust] in trust.h.
#include "base/clock.h"
#include "base/pause.h"
#include "base/schedule_point.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"

namespace spillway::interposer {

using base::MonotonicNs;
using driver::Driver;

// A free implies a wait. It is left out where the uses of the memory that is freed, and of that which serves anew, are
// known.
void JobMemory::AwaitBeforeFree() {
  UseList unfinished;
  std::vector<CUevent> events;
  {
    const StateLock lock(state_.locks);
    if (!state_.residency.parking() || CapturesGoOn()) return;
    unfinished = state_.timeline.Unfinished();
    for (Use use : unfinished.items()) events.push_back(state_.timeline.EventFor(use));
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  for (size_t i = 0; i < events.size(); ++i)
    waits_.Await(unfinished.items()[i], events[i], StallCause::kIdle);
}

bool JobMemory::HasWork() {
  if (CapturesGoOn()) return true;  // nothing may be recorded on its streams
  const driver::RelaxedCapture relaxed(true);
  const driver::CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  const UseList unfinished = state_.timeline.Unfinished();
  UseList at_work;
  for (Use use : unfinished.items()) {
    if (state_.timeline.EventFor(use) && !state_.timeline.IsHeld(use)) at_work.Add(use);
  }
  return !state_.timeline.AllDone(&at_work);
}

void JobMemory::SomethingNew() {
  if (!ordering_rules::kNewKernelsAreNoted) return;
  {
    const StateLock lock(state_.locks);
    parking_.NoteDue(state_.trust.SomethingNew());
  }
  BeginParkingIfDue();
}

// Whoever finds that it is due waits until it is done, whoever does it.
void JobMemory::BeginParkingIfDue() {
  {
    const StateLock lock(state_.locks);
    if (!parking_.is_due()) return;
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  const driver::RelaxedCapture relaxed(CapturesGoOn());
  const driver::CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  BeginParking();
}

// A job that was taken for harmless is not: what is away gets its mapping, what is on its way back arrives.
void JobMemory::BeginParking() {
  {
    const StateLock lock(state_.locks);
    parking_.UpdateParking();
  }
  replays_.EndRecipesIfUnproven();
  parking_.AwaitRestores();
}

// For a range that is pinned, since nobody knows it yet. What no wait gets memory for is parked.
CUresult JobMemory::AwaitMemory(Range* range) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);  // slabs are given back
  eviction_.AwaitFreed(range->size_bytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(kStateLock) {
    return range->place != Place::kNowhere || state_.residency.Restore(range);
  });
  const StateLock lock(state_.locks);
  state_.residency.Unpin(range);
  if (parking_.IsParkedAnew(range)) return CUDA_SUCCESS;
  frees_.TellOfFree(range);
  frees_.GiveBack(range, {});
  return Refused();
}

}  // namespace spillway::interposer
