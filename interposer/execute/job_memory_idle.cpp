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
using base::MutexLock;
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
    const MutexLock lock(state_);
    prepared_ = true;
    reads_host_ = trust_.MayUnmap();
    if (heap_is_used.load(std::memory_order_relaxed)) trust_.Opaque(Opacity::kDeviceHeap);
    wants_census = trust_.WantsCensus(Launches());
    if (!wants_census && !trust_.MustPark()) return true;
    if (!ordering_rules::kParkingWaitsForIdle) {
      UpdateParking();
      return true;
    }
    looks_ = trust_.WantsLooks();  // from before the first census on
    device_is_idle_ = true;
    UpdateEverything();
  }
  const TraceMoment begun = trace_.BeginHere();
  const StallClock::Moment stalled = BeginStall();
  const bool idle = AwaitIdle();
  if (idle && wants_census) MakeCensus();
  trace_.EndHere(begun, StallEvent(StallCause::kIdle));
  const MutexLock lock(state_);
  stall_clock_.Ended(stalled, StallCause::kIdle, &counters_);
  ++(idle ? counters_.idle_waits : counters_.idle_waits_given_up);
  UpdateParking();
  waits_in_vain_ = !idle && trust_.MustWait();
  looks_ = trust_.WantsLooks();
  reads_host_ = trust_.MayUnmap();
  device_is_idle_ = idle && residency_.parking();
  UpdateEverything();
  return !waits_in_vain_;
}

void JobMemory::AskBeforeGranting(size_t size_bytes) {
  {
    const MutexLock lock(state_);
    if (counters_.wanted_bytes + size_bytes <= budget_bytes_ || !trust_.MustAskBeforeGranting()) return;
  }
  const base::ScopedCount call(&calls_for_memory_);
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
  const base::ScopedCount call(&calls_for_memory_);
  for (size_t i = 0; i < events.size(); ++i) Await(unfinished.items()[i], events[i], StallCause::kIdle);
}

bool JobMemory::AwaitIdle() {
  return AwaitProgress([this]() SPILLWAY_REQUIRES(state_) { return IsIdle(); }, &vain_waits_);
}

// No call is between its Begin and its End, and all that was enqueued is complete.
bool JobMemory::IsIdle() {
  const UseList unfinished = timeline_.Unfinished();
  for (Use use : unfinished.items()) timeline_.EventFor(use);
  return unfinished.empty() && locked_calls_ == 0 && !calls::Names(&everything_);
}

bool JobMemory::HasWork() {
  if (CapturesGoOn()) return true;  // nothing may be recorded on its streams
  const driver::RelaxedCapture relaxed(true);
  const driver::CurrentContext current(context_);
  const MutexLock lock(state_);
  const UseList unfinished = timeline_.Unfinished();
  UseList at_work;
  for (Use use : unfinished.items()) {
    if (timeline_.EventFor(use) && !timeline_.IsHeld(use)) at_work.Add(use);
  }
  return !timeline_.AllDone(&at_work);
}

// Asks, with the state lock held, until it is there, or until it will not be. (Note [Idle in vain])
bool JobMemory::AwaitProgress(base::FunctionRef<bool()> is_there, VainWaits* vain_waits) {
  std::uint64_t seen = 0, since_ns = MonotonicNs();
  bool is_held = false;
  for (;;) {
    const std::uint64_t waited_ns = MonotonicNs() - since_ns;
    {
      const MutexLock lock(state_);
      if (is_there()) {
        if (is_held && vain_waits) vain_waits->WasWorthIt();
        return true;
      }
      const std::uint64_t progress = timeline_.SumCompleted();
      is_held = timeline_.AnyStreamIsHeld();
      // What cannot be parked has nothing but the wait.
      const bool may_do_without = vain_waits && trust_.MayPark();
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
    const MutexLock lock(state_);
    parking_is_due_ |= trust_.SomethingNew();
  }
  BeginParkingIfDue();
}

// Whoever finds that it is due waits until it is done, whoever does it.
void JobMemory::BeginParkingIfDue() {
  {
    const MutexLock lock(state_);
    if (!parking_is_due_) return;
  }
  const base::ScopedCount call(&calls_for_memory_);
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
  EndRecipesIfUnproven();
  AwaitRestores();
}

void JobMemory::UpdateParking() {
  parking_is_due_ = false;
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
  const base::ScopedCount call(&calls_for_memory_);
  const MutexLock making(making_);  // slabs are given back
  AwaitFreed(range->size_bytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(state_) {
    return range->place != Place::kNowhere || residency_.Restore(range);
  });
  const MutexLock lock(state_);
  residency_.Unpin(range);
  if (IsParkedAnew(range)) return CUDA_SUCCESS;
  TellOfFree(range);
  GiveBack(range, {});
  return Refused();
}

}  // namespace spillway::interposer
