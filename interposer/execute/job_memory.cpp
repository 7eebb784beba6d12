#include "interposer/execute/job_memory.h"

#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/ordering_rules.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

// How long a report at exit hopes for the state lock.
constexpr std::uint64_t kReadPatienceNs = 100'000'000;

std::uint64_t NextId() {
  static constinit std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

JobMemory::JobMemory(CUcontext context, int device, size_t budget_bytes, size_t host_limit_bytes,
                     ParkChoice park, LearnChoice learn)
    : state_(context, device, budget_bytes, host_limit_bytes, park, learn),
      parking_(state_, waits_, scan_, park) {}

CUresult JobMemory::Allocate(size_t bytes, CUdeviceptr* out) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  // What a fault has ended gives no memory any more, as bare, whoever would serve it.
  if (const CUresult health = state_.Health(); health != CUDA_SUCCESS) return health;
  const CUresult result = bytes < kSmallBytes ? AllocateSmall(bytes, out) : AllocateRange(bytes, out);
  state_.recorder.Settle();
  if (result == CUDA_SUCCESS && state_.HasPeers()) {
    const MakingLock making(state_.locks);
    restores_.BringAll();  // a peer may be the first to use it
  }
  return result;
}

// What a plan holds is in nobody's way as long as there is room beside it. That is looked at where the range is made: a budget or another
// thread may take the room at any moment before.
CUresult JobMemory::AllocateRange(size_t bytes, CUdeviceptr* out) {
  const size_t size_bytes = RoundUp(bytes, kGranuleBytes);
  Range* range = nullptr;
  bool awaits_freed = false;
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

void JobMemory::AwaitRoomFor(size_t size_bytes, bool even_held) {
  replays_.FinishFrees(
      [&]() SPILLWAY_REQUIRES(kStateLock) { return even_held || state_.host_grant.Lacks(size_bytes); });
  parking_.AskBeforeGranting(size_bytes);
  state_.budget.Await([&]() SPILLWAY_REQUIRES(kStateLock) { return FitsBudget(size_bytes); });
  state_.host_grant.Await(size_bytes);
  eviction_.AwaitPrefetches(StallCause::kNoMemory);
  eviction_.AwaitSpare(size_bytes);
}

// Null where it is refused. What waits for memory that was freed is pinned.
Range* JobMemory::NewRange(size_t bytes, size_t size_bytes, bool* awaits_freed) {
  recording_.RecordIfItIsTime(size_bytes);
  Range* const range = size_bytes >= bytes && Admits(size_bytes) ? state_.residency.NewRange(bytes) : nullptr;
  *awaits_freed = range && parking_.AwaitsFreed(*range);
  state_.host_grant.UpdateLimits(range ? size_bytes : 0);  // it may have to be parked at once
  if (!range) return nullptr;
  if (!*awaits_freed && !parking_.IsParkedAnew(range)) {
    state_.residency.Free(range, {});
    return nullptr;
  }
  Know(range);
  if (*awaits_freed) state_.residency.Pin(range);
  return range;
}

CUresult JobMemory::Refused() {
  ++state_.counters.refused_allocations;
  return state_.OutOfMemory();
}

// From now on the range is an allocation of the job's.
void JobMemory::Know(Range* range) {
  const size_t size_bytes = range->size_bytes;
  range->id = NextId();
  if (state_.recorder.IsRecording())
    state_.recorder.Allocated(range->id, static_cast<std::int64_t>(range->requested_bytes));
  state_.executor.Allocated(range);
  if (state_.walk.IsActive())
    state_.walk.Observe(scheduler::JobEvent::Allocate(range->id, static_cast<std::int64_t>(size_bytes)),
                        nullptr);
  state_.ledger.AddRange(range);
  ++state_.counters.allocations;
  state_.budget.Want(range->size_bytes);
  state_.counters.over_budget_allocations += state_.counters.wanted_bytes > state_.budget.bytes();
  state_.host_grant.UpdateLimits();
  state_.residency.TraceNow(TraceKind::kAllocated, range);
  state_.residency.TraceMemory();
}

// What is granted can be used: beyond the budget there must be host memory for what is away, for the range that is on
// its way back, and for the last one that leaves for it, each of them at most as large as the largest. A range that is
// larger than the budget is used where it is parked.
bool JobMemory::Admits(size_t size_bytes) {
  const bool fits = HasRoomFor(size_bytes);
  if (fits) state_.host_grant.NoteLargest(size_bytes);  // what is refused needs no room
  return fits;
}

bool JobMemory::HasRoomFor(size_t size_bytes) {
  return FitsBudget(size_bytes) && state_.host_grant.HasRoomFor(size_bytes);
}

bool JobMemory::FitsBudget(size_t size_bytes) const {
  if (state_.MustStay()) return state_.counters.wanted_bytes + size_bytes <= state_.budget.bytes();
  return size_bytes <= state_.budget.bytes() || state_.trust.MayPark();
}

CUresult JobMemory::AllocateSmall(size_t bytes, CUdeviceptr* out) {
  for (;;) {
    {
      const StateLock lock(state_.locks);
      if (!state_.slabs.NeedsSlab(bytes)) {
        SlabBlock* const block = state_.slabs.Take(bytes);
        block->id = NextId();
        *out = block->base;
        ++state_.counters.allocations;
        return CUDA_SUCCESS;
      }
    }
    const CUresult result = eviction_.AddSlab(bytes);
    if (result == CUDA_SUCCESS) continue;
    if (parking_.MayPark()) return AllocateRange(bytes, out);  // used where it is parked, if need be
    const StateLock lock(state_.locks);
    return Refused();
  }
}

bool JobMemory::Free(CUdeviceptr base, bool is_pooled) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const bool waits = !is_pooled && ordering_rules::kFreesKeepTheirPromise;
  if (waits) AwaitWhatShows(base);
  AwaitBeforeFree();
  bool is_ours = false;
  FreeInOrder(base, nullptr, waits, &is_ours);
  state_.recorder.Settle();
  return is_ours;
}

bool JobMemory::FreeAsync(CUdeviceptr base, StreamName stream) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  bool is_ours = false;
  FreeInOrder(base, &stream, false, &is_ours);
  if (is_ours) state_.recorder.Settle();
  return is_ours;
}

// What something dropped can only be made from is freed later on: as a rule in the same breath, when the program has freed that too.
void JobMemory::FreeInOrder(CUdeviceptr base, const StreamName* stream, bool waits, bool* is_ours) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindBase(base);
  *is_ours = found != nullptr;
  if (!*is_ours) return;
  if (waits) state_.promises.Add(state_.timeline.Unfinished());
  frees_.TellOfFree(found);
  auto* const memory = static_cast<Tracked*>(found);
  if (frees_.IsStillNeeded(memory)) return frees_.PutOffFree(memory);
  UseList busy;
  if (!stream) {
    busy = state_.timeline.Unfinished();
  } else {
    // The free has its own place in the stream: behind waits for other streams' events, too, that are no work of ours.
    const Use own_place = state_.timeline.Issue(state_.timeline.Of(*stream));
    if (ordering_rules::kStreamFreeFollowsItsStream) busy.Add(own_place);
  }
  frees_.GiveBack(found, busy);
}

bool JobMemory::Charge(size_t bytes, Unmovable reason) {
  state_.budget.Await([&]() SPILLWAY_REQUIRES(kStateLock) { return bytes <= state_.budget.bytes(); });
  if (bytes > state_.budget.bytes()) return false;
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  replays_.FinishFrees(
      [&]() SPILLWAY_REQUIRES(kStateLock) { return !HasRoomFor(bytes) || state_.host_grant.Lacks(bytes); });
  const MakingLock making(state_.locks);
  const bool charged = eviction_.MakeRoom(bytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(kStateLock) {
    if (!state_.residency.Charge(bytes)) return false;
    ++state_.counters.passed_through;
    state_.counters.UnmovableFor(reason).Add(bytes);
    state_.budget.Want(bytes);
    state_.residency.TraceMemory();
    return true;
  });
  parking_.EndMoving();
  return charged;
}

void JobMemory::Discharge(size_t bytes, Unmovable reason) {
  const StateLock lock(state_.locks);
  DischargeLocked(bytes, reason);
}

void JobMemory::DischargeLocked(size_t bytes, Unmovable reason) {
  state_.counters.UnmovableFor(reason).bytes -= bytes;
  state_.residency.chunks().Discharge(bytes);
  state_.counters.wanted_bytes -= bytes;
  state_.residency.TraceMemory();
}

void JobMemory::NotePassedThrough(std::uint64_t key, size_t bytes) {
  CUcontext context = nullptr;
  Driver().cuCtxGetCurrent(&context);
  const StateLock lock(state_.locks);
  DischargeLocked(passed_through_.Add(key, bytes, context));
}

void JobMemory::ForgetPassedThrough(std::uint64_t key) {
  const StateLock lock(state_.locks);
  DischargeLocked(passed_through_.Remove(key));
}

size_t JobMemory::TakePassedThrough(std::uint64_t key) {
  const StateLock lock(state_.locks);
  return passed_through_.Remove(key);
}

void JobMemory::ContextDestroyed(CUcontext context) {
  const StateLock lock(state_.locks);
  state_.timeline.ContextDestroyed(context);
  DischargeLocked(passed_through_.RemoveAllIn(context));
}

void JobMemory::Hold(std::uint64_t owner, CUdeviceptr address, Unmovable why) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(address);
  if (found && found->kind == AllocationKind::kRange) holds_.Add(owner, AsRange(found), why);
}

void JobMemory::EndHold(std::uint64_t owner) { EndHold(TakeHold(owner)); }

Holds::Held JobMemory::TakeHold(std::uint64_t owner) {
  const StateLock lock(state_.locks);
  return holds_.Take(owner);
}

void JobMemory::PutHoldBack(std::uint64_t owner, Holds::Held held) {
  const StateLock lock(state_.locks);
  holds_.PutBack(owner, held);
}

// What used the range through its holder is not known: anything that is enqueued may.
void JobMemory::EndHold(Holds::Held held) {
  const StateLock lock(state_.locks);
  if (Range* const range = holds_.End(held)) range->uses.Merge(state_.timeline.Unfinished());
}

bool JobMemory::Describe(CUdeviceptr address, Allocation* out) {
  const StateLock lock(state_.locks);
  const Allocation* const found = state_.FindUsable(address);
  if (!found) return false;
  *out = *found;
  return true;
}

bool JobMemory::Owns(CUdeviceptr address) {
  if (state_.ledger.Find(address)) return true;
  const StateLock lock(state_.locks);
  return state_.residency.OwnsAddress(address);
}

bool JobMemory::IsFreed(CUdeviceptr address) {
  const StateLock lock(state_.locks);
  return state_.residency.OwnsAddress(address) && !state_.FindUsable(address);
}

size_t JobMemory::FreeBytes() {
  const StateLock lock(state_.locks);
  const size_t budget_bytes = state_.budget.bytes();
  return budget_bytes - std::min(budget_bytes, UsedBytes());
}

size_t JobMemory::UsedBytes() const {
  return state_.counters.wanted_bytes - state_.slabs.EmptyBytes() - frees_.put_off_bytes();
}

// Without a budget the device says what is free, and what is held for the next allocation is free, too.
size_t JobMemory::ShownFreeBytes(size_t device_free_bytes, size_t device_bytes) {
  const StateLock lock(state_.locks);
  const bool is_limited = state_.budget.bytes() + kGranuleBytes <= device_bytes;
  if (is_limited) return FreeMemoryOf(Given());
  const size_t held_bytes = state_.residency.chunks().held_bytes();
  const size_t unused_bytes = held_bytes - std::min(held_bytes, UsedBytes());
  return std::min(device_free_bytes + unused_bytes, device_bytes - std::min(device_bytes, UsedBytes()));
}

// Beyond the budget as Admits grants it. One that is larger than all before makes itself as much room on the host.
GivenMemory JobMemory::Given() {
  GivenMemory given{.budget_bytes = state_.budget.bytes(), .used_bytes = UsedBytes()};
  given.most_bytes = given.budget_bytes;
  if (state_.MustStay() || given.used_bytes < given.budget_bytes / 2) return given;
  const size_t room_bytes = given.budget_bytes + state_.host_grant.MayHoldBytes();
  const size_t wanted_bytes = state_.counters.wanted_bytes, largest_bytes = state_.host_grant.largest_bytes();
  given.most_bytes = room_bytes - std::min(room_bytes, 2 * largest_bytes);
  const size_t alike_bytes = given.most_bytes - std::min(given.most_bytes, wanted_bytes);
  const size_t larger_bytes = (room_bytes - std::min(room_bytes, wanted_bytes)) / 3;
  given.largest_bytes =
      (alike_bytes < largest_bytes ? alike_bytes : larger_bytes) / kGranuleBytes * kGranuleBytes;
  if (!state_.trust.MayPark()) given.largest_bytes = std::min(given.largest_bytes, given.budget_bytes);
  return given;
}

JobMemory::Snapshot JobMemory::Read() {
  const StateLock lock(state_.locks);
  return ReadLocked();
}

bool JobMemory::TryRead(Snapshot* out) {
  const std::uint64_t deadline_ns = base::MonotonicNs() + kReadPatienceNs;
  while (!state_.locks.TryLockState()) {
    if (base::MonotonicNs() > deadline_ns) return false;
    sched_yield();
  }
  *out = ReadLocked();
  state_.locks.UnlockState();
  return true;
}

JobMemory::Snapshot JobMemory::ReadLocked() {
  Counters counters = waits_.Settled();
  const Timeline::Totals totals = state_.timeline.Sum();
  counters.launches += totals.launches;
  counters.copies += totals.copies;
  return {.counters = counters,
          .held_bytes = state_.residency.chunks().held_bytes(),
          .held_peak_bytes = state_.residency.chunks().held_peak_bytes(),
          .pinned_bytes = state_.residency.host().pinned_bytes(),
          .pinned_peak_bytes = state_.residency.host().pinned_peak_bytes(),
          .slab_peak_bytes = state_.residency.host().slab_peak_bytes(),
          .ordinary_bytes = state_.residency.host().ordinary_bytes(),
          .ordinary_peak_bytes = state_.residency.host().ordinary_peak_bytes(),
          .host_need_bytes = state_.host_grant.need_bytes(),
          .iteration_calls = plan_.iteration_calls(),
          .follows_plan = state_.walk.IsActive(),
          .in_call = state_.calls.AnyInProgress(),
          .held_addresses = state_.contents.size() + state_.outside.size(),
          .opacity = state_.trust.opacity(),
          .standing = state_.trust.standing()};
}

void JobMemory::ReleaseAll() {
  state_.trace.Release();
  const MakingLock making(state_.locks);
  const StateLock lock(state_.locks);
  while (Slab* slab = state_.slabs.TakeAny())
    state_.residency.UnmapAndGive(slab->plan.base, kGranuleBytes, &slab->chunks);
  for (const std::uint64_t id : state_.recipes.All()) state_.recipes.Forget(state_.recipes.Find(id));
  state_.replay_stream = nullptr;
  scratch_.Release();
  state_.residency.ReleaseAll();
  waits_.Release();
  state_.timeline.Reset();
}

}  // namespace spillway::interposer
