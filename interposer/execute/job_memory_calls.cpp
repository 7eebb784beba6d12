// What happens around each call that names device memory, and what waits make known.
#include <algorithm>
#include <cstring>

#include "base/schedule_point.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/execute/touch_clock.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

// It may write what no call shows.
bool IsUndocumented(const TouchSet& set, Effect effect) {
  return effect == Effect::kLaunches && !set.is_documented && !set.recorded;
}

void CountEnded(const TouchSet& set, Effect effect) {
  if (IsUndocumented(set, effect)) {
    Timeline::UndocumentedEnded(set.use);
  } else if (effect == Effect::kLaunches) {
    Timeline::DocumentedEnded(set.stream);
  } else {
    Timeline::CopyEnded(set.stream);
  }
}

}  // namespace

CUresult JobMemory::Begin(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set) {
  if (addresses.empty() && IsForeign(stream)) return CUDA_SUCCESS;
  if (!schedule_.empty() && effect == Effect::kLaunches) FollowSchedule();
  if (const CUresult begun = BeginEither(addresses, stream, effect, set); begun != CUDA_SUCCESS) return begun;
  if (state_.walk.IsActive() && set->stream && !set->recorded) plan_.FollowPlan(stream, effect, set);
  if (!set->step.recompute.empty()) {
    const CUresult made = MakeBeforeOperation(addresses, stream, effect, set);
    if (made != CUDA_SUCCESS) return made;
  }
  if (!set->step.prefetch_behind.empty()) plan_.AskFor(set->step.prefetch_behind, effect);
  if (set->call) records_.BeginRecipe(addresses, set);
  if (state_.recorder.IsSampling()) recording_.BeginSample(effect, set);
  if (JobTrace::IsOn()) recording_.BeginTraced(set);
  if (IsUndocumented(*set, effect)) Timeline::UndocumentedBegins(set->stream);
  return CUDA_SUCCESS;
}

// Looks may begin, and a census prove the job, between the question whether to look and the beginning of the call; once it
// has begun there is no census. Then it begins anew, as one that awaits a look. So with what it finds in memory of the host's.
CUresult JobMemory::BeginEither(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set) {
  for (;;) {
    set->awaits_look = set->is_new && BeginNew();
    set->reads_host = effect == Effect::kLaunches && parking_.reads_host();
    if (set->reads_host) stored_.ReadHost(set);
    if (!BeginAtOnce(addresses, stream, effect, set)) {
      const CUresult begun = BeginLocked(addresses, stream, effect, set);
      if (begun != CUDA_SUCCESS) {
        if (set->awaits_look) EndNew(addresses, *set, false);
        return begun;
      }
    }
    if (!MustWithdraw(effect, *set)) return CUDA_SUCCESS;
    Withdraw(set);
  }
}

bool JobMemory::MustWithdraw(Effect effect, const TouchSet& set) const {
  const bool lacks_look = set.is_new && !set.awaits_look && parking_.looks();
  return lacks_look || (effect == Effect::kLaunches && !set.reads_host && parking_.reads_host());
}

// The call is not made.
void JobMemory::Withdraw(TouchSet* set) {
  if (set->at_once) {
    calls::Leave(set->ranges.size());
  } else {
    const CurrentContext current(state_.context);
    const StateLock lock(state_.locks);
    --state_.calls.locked;
    for (Range* range : set->ranges) {
      state_.residency.Fill(range);
      state_.residency.Leave(range);
    }
  }
  set->ranges.clear();
  set->at_once = false;
}

// Work on another device's stream concerns this job only if it names its memory.
bool JobMemory::IsForeign(StreamName stream) {
  if (!driver::ContextCensus::HasSeveral()) return false;
  StreamState* state = state_.timeline.Known(stream);
  if (!state) {
    const StateLock lock(state_.locks);
    state = state_.timeline.Of(stream);
  }
  return state->foreign;
}

// Without a lock: when nothing is to be done for any of the memory. (Note [Gates])
bool JobMemory::BeginAtOnce(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set) {
  if (effect == Effect::kNames || CapturesGoOn()) return false;
  if (!set->held_on_host.empty() || set->host_is_unsure) return false;
  set->stream = state_.timeline.Known(stream);
  if (!set->stream || state_.promises.Concern(set->stream, set->shows)) return false;
  set->blocks.clear();
  set->ranges.push_back(state_.all_memory.range());
  for (CUdeviceptr address : addresses) {
    Allocation* const found = state_.ledger.Find(address);
    if (!found && effect == Effect::kLaunches) continue;
    if (!found) return false;
    if (!IsBlock(found)) {
      set->ranges.push_back(AsRange(found));
    } else {
      set->blocks.push_back(AsBlock(found));
    }
  }
  if (!calls::Enter(set->ranges.begin(), set->ranges.size(), Timeline::SerialOf(set->stream))) return false;
  set->at_once = UseBlocksAtOnce(*set);
  if (!set->at_once) calls::Leave(set->ranges.size());
  if (set->at_once && set->claims) AssignRoles(addresses, set);
  for (size_t i = 1; i < set->ranges.size(); ++i) set->ranges[i]->recent.Expect(set->stream);
  return set->at_once;
}

// Their gates are looked at when the call is written down as in progress: who closes one sees that, or the call sees it closed.
bool JobMemory::UseBlocksAtOnce(const TouchSet& set) {
  const std::uint64_t serial = Timeline::SerialOf(set.stream);
  for (SlabBlock* block : set.blocks) {
    if (!block->gate.IsOpenFor(serial)) return false;
    block->users.Note(set.stream);
  }
  return true;
}

CUresult JobMemory::BeginLocked(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set) {
  const RelaxedCapture relaxed(true);  // a capture may begin on another thread at any moment
  set->recorded = effect == Effect::kNames || (CapturesGoOn() && IsCapturing(stream));
  {
    const StateLock lock(state_.locks);
    set->stream = state_.timeline.Of(stream);
    if (!set->recorded) state_.promises.BeforeNext(set->stream, set->shows);
    Find(addresses, effect, set);
    if (set->names_freed && effect != Effect::kLaunches && effect != Effect::kNames)
      return CUDA_ERROR_INVALID_VALUE;
    const bool all_there = state_.residency.AllOnDevice(set->ranges) && !AnyEmpty(*set);
    if (!state_.all_memory.device_is_idle() && !set->must_park && all_there &&
        !replays_.FirstToMake(addresses, effect, *set).range) {
      Enter(set);
      return CUDA_SUCCESS;
    }
  }
  return BeginSlowly(addresses, stream, effect, set);
}

CUresult JobMemory::BeginSlowly(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const CurrentContext current(state_.context);
  if (state_.walk.IsActive() && !state_.recipes.empty()) MakeBeforeMemory(addresses, stream, effect, set);
  const MakingLock making(state_.locks);
  replays_.EndRecipesIfUnproven();
  if (set->must_park) BeginParking();
  CUresult made = CUDA_SUCCESS;
  Entry entry = Entry::kTryAgain;
  while (made == CUDA_SUCCESS && entry == Entry::kTryAgain) {
    AwaitOverwrites(addresses, effect, set);
    made = MakeWhatItAwaits(addresses, effect, set);
    if (made == CUDA_SUCCESS) entry = TryToEnter(addresses, effect, set);
  }
  parking_.EndMoving();
  if (entry == Entry::kEntered) return CUDA_SUCCESS;
  if (made != CUDA_SUCCESS) return made;
  const StateLock lock(state_.locks);
  return state_.OutOfMemory();
}

// Meanwhile another thread's plan may drop something that this call would have to make first.
JobMemory::Entry JobMemory::TryToEnter(const Addresses& addresses, Effect effect, TouchSet* set) {
  {
    const StateLock lock(state_.locks);
    Find(addresses, effect, set);
    if (replays_.FirstToMake(addresses, effect, *set).range) return Entry::kTryAgain;
    for (Range* range : set->ranges) state_.residency.Pin(range);
  }
  const bool resident = restores_.MakeAllResident(set);
  const StateLock lock(state_.locks);
  const bool must_make = resident && replays_.FirstToMake(addresses, effect, *set).range;
  const bool enters = resident && !must_make;
  if (enters) Enter(set);
  for (Range* range : set->ranges) {
    if (!enters) state_.residency.Fill(range);
    state_.residency.Unpin(range);
  }
  return enters ? Entry::kEntered : must_make ? Entry::kTryAgain : Entry::kRefused;
}

void JobMemory::Find(const Addresses& addresses, Effect effect, TouchSet* set) {
  set->ranges.clear();
  set->blocks.clear();
  set->names_freed = false;
  for (CUdeviceptr address : addresses) {
    Allocation* const found = state_.FindUsable(address);
    if (!found) {
      set->names_freed = set->names_freed || state_.residency.OwnsAddress(address);
    } else if (IsBlock(found)) {
      set->blocks.push_back(AsBlock(found));
      OrderBehind(AsBlock(found), *set);
      if (!set->recorded) OpenGate(AsBlock(found), set->stream);
    } else if (std::find(set->ranges.begin(), set->ranges.end(), found) == set->ranges.end()) {
      set->ranges.push_back(AsRange(found));
    }
  }
  set->named = set->ranges.size();
  set->reaches = false;
  set->reached_blocks.clear();
  Follow(addresses, effect, set);
  set->roles.clear();
  if (set->claims && !set->recorded) AssignRoles(addresses, set);
  set->must_park = false;
  if (set->host_is_unsure) {
    state_.trust.SomethingNew();
    set->must_park = state_.trust.MustPark() && !state_.residency.parking();
  }
  if (!ReachesTooMuch(*set)) return;
  if (!state_.residency.parking()) state_.trust.Opaque(Opacity::kReachesTooMuch);
  if (!state_.trust.MustPark()) return;
  state_.trust.NeedsCensus();
  set->must_park = !state_.residency.parking();
  set->ranges.Truncate(set->named);
}

// The stream is ordered behind all that the block's users must wait for.
void JobMemory::OpenGate(SlabBlock* block, StreamState* stream) {
  if (block->holds_addresses || !block->readers.empty()) return;
  block->ready_after.empty() ? block->gate.OpenForAll() : block->gate.OpenFor(Timeline::SerialOf(stream));
}

// All ranges are mapped, on the device or parked: from here to End they stay so.
void JobMemory::Enter(TouchSet* set) {
  for (Range* range : set->ranges) {
    state_.residency.Enter(range);
    OrderBehind(range, *set);
  }
  ++state_.calls.locked;
  if (set->recorded) return;
  for (SlabBlock* block : set->blocks) block->users.Note(set->stream);
  for (Tracked* block : set->reached_blocks) AsBlock(block)->users.Note(set->stream);
}

void JobMemory::OrderBehind(Tracked* memory, const TouchSet& set) {
  if (!set.recorded) state_.residency.OrderBehind(memory, set.stream);
}

void JobMemory::End(TouchSet* set, Effect effect) {
  if (!set->stream) return;
  const RelaxedCapture relaxed(!set->at_once);
  if (set->sample.number) state_.recorder.AfterLaunch(set->stream->handle, set->sample);
  if (set->traced.host_ns) recording_.EndTraced(*set, effect);
  if (set->recorded) return EndLocked(set, effect);
  set->use = state_.timeline.Issue(set->stream);
  if (set->shows) state_.timeline.Show(set->use);
  CountEnded(*set, effect);
  if (state_.recorder.IsRecording()) recording_.Record(*set, effect);
  if (set->call && records_.Began(*set->call)) records_.NoteMade(*set);
  set->at_once ? EndAtOnce(*set) : EndLocked(set, effect);
  plan_.EndPlanned(set->step);
  state_.recorder.Settle();
}

// The uses are noted before the ranges are let go: whoever closes a gate then sees them.
void JobMemory::EndAtOnce(const TouchSet& set) {
  const std::uint64_t now = TouchClock();
  base::SchedulePoint();
  for (size_t i = 1; i < set.ranges.size(); ++i) {  // the first stands for everything
    NoteTouch(&set.ranges[i]->last_touch, now);
    set.ranges[i]->recent.Note(set.use);
  }
  calls::Leave(set.ranges.size());
}

void JobMemory::EndLocked(TouchSet* set, Effect effect) {
  if (set->failed) FillWhatIsEmpty(*set);
  const StateLock lock(state_.locks);
  --state_.calls.locked;
  for (size_t i = 0; i < set->ranges.size(); ++i) {
    Range* const range = set->ranges[i];
    state_.residency.Leave(range);
    if (set->recorded) continue;
    state_.residency.Used(range, set->use, MayWrite(*set, i, effect));
    if (!set->failed) state_.residency.OpenGate(range, Timeline::SerialOf(set->stream));
  }
}

bool JobMemory::IsAway(CUdeviceptr address) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(address);
  return found && !IsBlock(found) && state_.residency.HostCopy(AsRange(found));
}

bool JobMemory::ReadAway(CUdeviceptr source, void* destination, size_t bytes) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(source);
  if (!found || IsBlock(found)) return false;
  const auto* copy = static_cast<const std::byte*>(state_.residency.HostCopy(AsRange(found)));
  const size_t offset = source - found->base;
  if (!copy || offset > found->requested_bytes || bytes > found->requested_bytes - offset) return false;
  std::memcpy(destination, copy + offset, bytes);
  ++state_.counters.served_from_host;
  return true;
}

std::vector<Use> JobMemory::IssuedOn(StreamName stream) {
  StreamState* state = state_.timeline.Known(stream);
  if (!state) {
    const StateLock lock(state_.locks);
    state = state_.timeline.Of(stream);
  }
  return {{state, Timeline::IssuedOn(state)}};
}

std::vector<Use> JobMemory::IssuedIn(CUcontext context) {
  if (!ordering_rules::kAnswersTakeTheLock) return state_.timeline.IssuedIn(context);
  const StateLock lock(state_.locks);
  return state_.timeline.IssuedIn(context);
}

void JobMemory::Completed(const std::vector<Use>& uses) {
  for (Use use : uses) Timeline::Completed(use.stream, use.sequence);
}

void JobMemory::StreamDestroyed(CUstream stream) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.timeline.Destroyed(stream);
}

void JobMemory::AboutToWait(StreamName stream) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.timeline.AboutToWait(state_.timeline.Of(stream));
}

void JobMemory::TakeCheckpoint(StreamName stream) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.timeline.TakeCheckpoint(state_.timeline.Of(stream));
}

void JobMemory::TakeCheckpoints() {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.timeline.TakeCheckpoints();
}

}  // namespace spillway::interposer
