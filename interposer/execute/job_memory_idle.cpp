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

namespace {

// Note [Idle in vain]
// A stream may wait for something that the program does only after the call that waits here. So the wait ends when
// nothing on the device has completed for a while, sooner where it is known what is waited for. Time says nothing of what
// kernels reach: on a busy machine, or behind a long kernel, it passes all the same. So whoever waited in vain takes
// nothing away: the call uses what it names where it is parked, or gets no memory. A job whose memory can be parked waits less
// and less for the program (vain_waits.h).
constexpr std::uint64_t kPatienceNs = 10'000'000'000;
constexpr std::uint64_t kPatienceWithTheProgramNs = 500'000'000;
constexpr std::uint64_t kBriefNs = 200'000;  // so long a wait asks all the time
constexpr std::int64_t kNapNs = 50'000;

}  // namespace

// Before the first step that takes memory away from a range or a mapping from the device. False when none may be made.
bool JobMemory::PrepareToMove() {
  bool wants_census;
  {
    const StateLock lock(state_.locks);
    prepared_ = true;
    reads_host_ = state_.trust.MayUnmap();
    if (heap_is_used.load(std::memory_order_relaxed)) state_.trust.Opaque(Opacity::kDeviceHeap);
    wants_census = state_.trust.WantsCensus(state_.timeline.Sum().launches);
    if (!wants_census && !state_.trust.MustPark()) return true;
    if (!ordering_rules::kParkingWaitsForIdle) {
      UpdateParking();
      return true;
    }
    looks_ = state_.trust.WantsLooks();  // from before the first census on
    state_.all_memory.SetDeviceIdle(true);
  }
  const TraceMoment begun = state_.trace.BeginHere();
  const StallClock::Moment stalled = BeginStall();
  const bool idle = AwaitIdle();
  if (idle && wants_census) MakeCensus();
  state_.trace.EndHere(begun, StallEvent(StallCause::kIdle));
  const StateLock lock(state_.locks);
  stall_clock_.Ended(stalled, StallCause::kIdle, &state_.counters);
  ++(idle ? state_.counters.idle_waits : state_.counters.idle_waits_given_up);
  UpdateParking();
  waits_in_vain_ = !idle && state_.trust.MustWait();
  looks_ = state_.trust.WantsLooks();
  reads_host_ = state_.trust.MayUnmap();
  state_.all_memory.SetDeviceIdle(idle && state_.residency.parking());
  return !waits_in_vain_;
}

void JobMemory::AskBeforeGranting(size_t size_bytes) {
  {
    const StateLock lock(state_.locks);
    if (state_.counters.wanted_bytes + size_bytes <= state_.budget.bytes() ||
        !state_.trust.MustAskBeforeGranting())
      return;
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);
  PrepareToMove();
  EndMoving();
}

// What was brought back is there, and calls may begin.
void JobMemory::EndMoving() {
  {
    const StateLock lock(state_.locks);
    if (!prepared_) return;
    prepared_ = waits_in_vain_ = false;
    if (state_.residency.parking()) state_.residency.CancelLeaving();
  }
  AwaitRestores();
  const StateLock lock(state_.locks);
  state_.all_memory.SetDeviceIdle(false);
}

void JobMemory::AwaitRestores() {
  Use last;
  CUevent event = nullptr;
  {
    const StateLock lock(state_.locks);
    last = state_.residency.LastRestore();
    if (!state_.residency.parking() || state_.timeline.Done(last)) return;
    event = state_.timeline.EventFor(last);
  }
  Await(last, event, StallCause::kIdle);
}

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
  for (size_t i = 0; i < events.size(); ++i) Await(unfinished.items()[i], events[i], StallCause::kIdle);
}

bool JobMemory::AwaitIdle() {
  return AwaitProgress([this]() SPILLWAY_REQUIRES(kStateLock) { return IsIdle(); }, &vain_waits_);
}

// No call is between its Begin and its End, and all that was enqueued is complete.
bool JobMemory::IsIdle() {
  const UseList unfinished = state_.timeline.Unfinished();
  for (Use use : unfinished.items()) state_.timeline.EventFor(use);
  return unfinished.empty() && state_.calls.locked == 0 && !state_.all_memory.IsNamed();
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

// Asks, with the state lock held, until it is there, or until it will not be. (Note [Idle in vain])
bool JobMemory::AwaitProgress(base::FunctionRef<bool()> is_there, VainWaits* vain_waits) {
  std::uint64_t seen = 0, since_ns = MonotonicNs();
  bool is_held = false;
  for (;;) {
    const std::uint64_t waited_ns = MonotonicNs() - since_ns;
    {
      const StateLock lock(state_.locks);
      if (is_there()) {
        if (is_held && vain_waits) vain_waits->WasWorthIt();
        return true;
      }
      const std::uint64_t progress = state_.timeline.SumCompleted();
      is_held = state_.timeline.AnyStreamIsHeld();
      // What cannot be parked has nothing but the wait.
      const bool may_do_without = vain_waits && state_.trust.MayPark();
      const std::uint64_t with_the_program_ns =
          may_do_without ? vain_waits->PatienceNs(progress) : kPatienceWithTheProgramNs;
      if (is_held && with_the_program_ns == 0) return false;
      if (progress != seen) {
        since_ns = MonotonicNs();
      } else if (waited_ns > (is_held ? with_the_program_ns : kPatienceNs)) {
        if (is_held && vain_waits) vain_waits->WasInVain(progress);
        return false;
      }
      seen = progress;
    }
    waited_ns < kBriefNs || base::IsScheduled() ? base::YieldToOthers() : base::Pause(kNapNs);
  }
}

void JobMemory::SomethingNew() {
  if (!ordering_rules::kNewKernelsAreNoted) return;
  {
    const StateLock lock(state_.locks);
    parking_is_due_ |= state_.trust.SomethingNew();
  }
  BeginParkingIfDue();
}

// Whoever finds that it is due waits until it is done, whoever does it.
void JobMemory::BeginParkingIfDue() {
  {
    const StateLock lock(state_.locks);
    if (!parking_is_due_) return;
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
    UpdateParking();
  }
  EndRecipesIfUnproven();
  AwaitRestores();
}

void JobMemory::UpdateParking() {
  parking_is_due_ = false;
  if (!state_.residency.host().mappable()) state_.trust.CannotPark();
  state_.residency.SetParking(state_.trust.MustPark());
}

// A kernel may reach a new range before any call names it: where it must be mapped at all times, and there is no device
// memory for it right now, its addresses are mapped onto host memory.
bool JobMemory::IsParkedAnew(Range* range) {
  if (range->place != Place::kNowhere || !state_.trust.MustPark()) return true;
  if (!state_.residency.parking()) UpdateParking();
  if (!state_.trust.MustPark() || range->place == Place::kParked) return true;
  return state_.residency.ParkNew(range);
}

// Within the budget there is memory for a new range, at the latest when the work of what was freed is done.
bool JobMemory::AwaitsFreed(const Range& range) const {
  return range.place == Place::kNowhere && state_.trust.MustPark() &&
         state_.counters.wanted_bytes + range.size_bytes <= state_.budget.bytes();
}

// For a range that is pinned, since nobody knows it yet. What no wait gets memory for is parked.
CUresult JobMemory::AwaitMemory(Range* range) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);  // slabs are given back
  AwaitFreed(range->size_bytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(kStateLock) {
    return range->place != Place::kNowhere || state_.residency.Restore(range);
  });
  const StateLock lock(state_.locks);
  state_.residency.Unpin(range);
  if (IsParkedAnew(range)) return CUDA_SUCCESS;
  TellOfFree(range);
  GiveBack(range, {});
  return Refused();
}

}  // namespace spillway::interposer
