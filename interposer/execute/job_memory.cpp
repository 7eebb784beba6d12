#include "interposer/execute/job_memory.h"

#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/ordering_rules.h"

namespace spillway::interposer {

using base::MutexLock;
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
    : context_(context),
      device_(device),
      own_host_limit_bytes_(host_limit_bytes),
      budget_bytes_(budget_bytes / kGranuleBytes * kGranuleBytes),
      recorder_(learn),
      trace_(context, device),
      timeline_(context),
      host_limit_bytes_(host_limit_bytes),
      residency_(device, budget_bytes_.load(), host_limit_bytes, park != ParkChoice::kOff, &timeline_,
                 &counters_, &trace_),
      slabs_(&ledger_, &timeline_),
      trust_(park, residency_.host().mappable()) {
  everything_.gate.OpenForAll();
  reads_host_ = park == ParkChoice::kOff;
}

CUresult JobMemory::Allocate(size_t bytes, CUdeviceptr* out) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  // What a fault has ended gives no memory any more, as bare, whoever would serve it.
  if (const CUresult health = Health(); health != CUDA_SUCCESS) return health;
  const CUresult result = bytes < kSmallBytes ? AllocateSmall(bytes, out) : AllocateRange(bytes, out);
  recorder_.Settle();
  if (result == CUDA_SUCCESS && HasPeers()) {
    const MutexLock making(making_);
    BringAll();  // a peer may be the first to use it
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
    const MutexLock lock(state_);
    if (!even_held && put_off_bytes_ != 0 && !HasRoomFor(size_bytes)) continue;
    range = NewRange(bytes, size_bytes, &awaits_freed);
    if (!range) return Refused();
  }
  const CUresult result = awaits_freed ? AwaitMemory(range) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) *out = range->base;
  return result;
}

void JobMemory::AwaitRoomFor(size_t size_bytes, bool even_held) {
  FinishFrees([&]() SPILLWAY_REQUIRES(state_) { return even_held || LacksHostGrant(size_bytes); });
  AskBeforeGranting(size_bytes);
  AwaitBudget([&]() SPILLWAY_REQUIRES(state_) { return FitsBudget(size_bytes); });
  AwaitHostLimit(size_bytes);
  AwaitPrefetches(StallCause::kNoMemory);
  AwaitSpare(size_bytes);
}

// Null where it is refused. What waits for memory that was freed is pinned.
Range* JobMemory::NewRange(size_t bytes, size_t size_bytes, bool* awaits_freed) {
  RecordIfItIsTime(size_bytes);
  Range* const range = size_bytes >= bytes && Admits(size_bytes) ? residency_.NewRange(bytes) : nullptr;
  *awaits_freed = range && AwaitsFreed(*range);
  UpdateHostLimit(range ? size_bytes : 0);  // it may have to be parked at once
  if (!range) return nullptr;
  if (!*awaits_freed && !IsParkedAnew(range)) {
    residency_.Free(range, {});
    return nullptr;
  }
  Know(range);
  if (*awaits_freed) residency_.Pin(range);
  return range;
}

CUresult JobMemory::Refused() {
  ++counters_.refused_allocations;
  return OutOfMemory();
}

// From now on the range is an allocation of the job's.
void JobMemory::Know(Range* range) {
  const size_t size_bytes = range->size_bytes;
  range->id = NextId();
  if (recorder_.IsRecording())
    recorder_.Allocated(range->id, static_cast<std::int64_t>(range->requested_bytes));
  executor_.Allocated(range);
  if (walk_.IsActive())
    walk_.Observe(scheduler::JobEvent::Allocate(range->id, static_cast<std::int64_t>(size_bytes)), nullptr);
  ledger_.AddRange(range);
  ++counters_.allocations;
  Want(range->size_bytes);
  counters_.over_budget_allocations += counters_.wanted_bytes > budget_bytes_;
  UpdateHostLimit();
  residency_.TraceNow(TraceKind::kAllocated, range);
  residency_.TraceMemory();
}

// What is granted can be used: beyond the budget there must be host memory for what is away, for the range that is on
// its way back, and for the last one that leaves for it, each of them at most as large as the largest. A range that is
// larger than the budget is used where it is parked.
bool JobMemory::Admits(size_t size_bytes) {
  const bool fits = HasRoomFor(size_bytes);
  if (fits)
    largest_range_bytes_ = std::max(largest_range_bytes_, size_bytes);  // what is refused needs no room
  return fits;
}

bool JobMemory::HasRoomFor(size_t size_bytes) {
  if (!FitsBudget(size_bytes)) return false;
  const size_t largest_bytes = std::max(largest_range_bytes_, size_bytes);
  return HostMayHold(HostBytesFor(counters_.wanted_bytes + size_bytes, largest_bytes));
}

bool JobMemory::FitsBudget(size_t size_bytes) const {
  if (MustStay()) return counters_.wanted_bytes + size_bytes <= budget_bytes_;
  return size_bytes <= budget_bytes_ || trust_.MayPark();
}

CUresult JobMemory::AllocateSmall(size_t bytes, CUdeviceptr* out) {
  for (;;) {
    {
      const MutexLock lock(state_);
      if (!slabs_.NeedsSlab(bytes)) {
        SlabBlock* const block = slabs_.Take(bytes);
        block->id = NextId();
        *out = block->base;
        ++counters_.allocations;
        return CUDA_SUCCESS;
      }
    }
    const CUresult result = AddSlab(bytes);
    if (result == CUDA_SUCCESS) continue;
    if (MayPark()) return AllocateRange(bytes, out);  // used where it is parked, if need be
    const MutexLock lock(state_);
    return Refused();
  }
}

bool JobMemory::MayPark() {
  const MutexLock lock(state_);
  return trust_.MayPark();
}

CUresult JobMemory::Health() {
  const MutexLock lock(state_);
  return residency_.Health();
}

// Frameworks retry after out of memory, so it is said only when it is so: in a context that a fault has ended, every
// call of ours fails, and the program is to learn why.
CUresult JobMemory::OutOfMemory() const {
  const CUresult health = residency_.Health();
  return health == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : health;
}

CUresult JobMemory::AddSlab(size_t bytes) {
  const base::ScopedCount call(&calls_for_memory_);
  const MutexLock making(making_);
  const CUresult result = AddSlabWhileMaking(bytes);
  EndMoving();
  return result;
}

CUresult JobMemory::AddSlabWhileMaking(size_t bytes) {
  Chunks chunks;
  const bool made = MakeRoom(kGranuleBytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(state_) {
    return residency_.TakeChunks(kGranuleBytes, &chunks);
  });
  const MutexLock lock(state_);
  const CUdeviceptr base = made ? residency_.MapAnew(kGranuleBytes, chunks) : 0;
  if (!base) {
    residency_.chunks().Give(&chunks);
    return OutOfMemory();
  }
  slabs_.AddSlab(bytes, base, std::move(chunks));
  counters_.UnmovableFor(Unmovable::kSmall).Add(kGranuleBytes);
  Want(kGranuleBytes);
  residency_.TraceMemory();
  return CUDA_SUCCESS;
}

void JobMemory::Want(size_t bytes) {
  counters_.wanted_bytes += bytes;
  counters_.wanted_peak_bytes = std::max(counters_.wanted_peak_bytes, counters_.wanted_bytes);
}

// Null, too, for what the program has freed and a recipe still needs.
Allocation* JobMemory::FindUsable(CUdeviceptr address) {
  Allocation* const found = ledger_.Find(address);
  return found && !static_cast<Tracked*>(found)->free_is_due ? found : nullptr;
}

Allocation* JobMemory::FindBase(CUdeviceptr base) {
  Allocation* found = FindUsable(base);
  return found && found->base == base ? found : nullptr;
}

bool JobMemory::Free(CUdeviceptr base, bool is_pooled) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  const bool waits = !is_pooled && ordering_rules::kFreesKeepTheirPromise;
  if (waits) AwaitWhatShows(base);
  AwaitBeforeFree();
  bool is_ours = false;
  FreeInOrder(base, nullptr, waits, &is_ours);
  recorder_.Settle();
  return is_ours;
}

bool JobMemory::FreeAsync(CUdeviceptr base, StreamName stream) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  bool is_ours = false;
  FreeInOrder(base, &stream, false, &is_ours);
  if (is_ours) recorder_.Settle();
  return is_ours;
}

// What something dropped can only be made from is freed later on: as a rule in the same breath, when the program has freed that too.
void JobMemory::FreeInOrder(CUdeviceptr base, const StreamName* stream, bool waits, bool* is_ours) {
  const MutexLock lock(state_);
  Allocation* const found = FindBase(base);
  *is_ours = found != nullptr;
  if (!*is_ours) return;
  if (waits) promises_.Add(timeline_.Unfinished());
  TellOfFree(found);
  auto* const memory = static_cast<Tracked*>(found);
  if (IsStillNeeded(memory)) return PutOffFree(memory);
  UseList busy;
  if (!stream) {
    busy = timeline_.Unfinished();
  } else {
    // The free has its own place in the stream: behind waits for other streams' events, too, that are no work of ours.
    const Use own_place = timeline_.Issue(timeline_.Of(*stream));
    if (ordering_rules::kStreamFreeFollowsItsStream) busy.Add(own_place);
  }
  GiveBack(found, busy);
}

// Who follows the program hears of its free, whenever the memory goes.
void JobMemory::TellOfFree(const Allocation* found) {
  if (IsBlock(found)) return;
  if (recorder_.IsRecording()) recorder_.Freed(found->id);
  if (walk_.IsActive()) walk_.Observe(scheduler::JobEvent::Free(found->id), nullptr);
}

void JobMemory::GiveBack(Allocation* found, const UseList& busy) {
  const bool was_put_off = std::exchange(static_cast<Tracked*>(found)->free_is_due, false);
  contents_.Freed(found->base, found->size_bytes);
  if (IsBlock(found)) {
    const bool is_ours = std::exchange(AsBlock(found)->is_ours, false);
    if (is_ours) aside_bytes_ -= found->requested_bytes;
    counters_.frees += !is_ours;
    slabs_.Give(AsBlock(found), busy);
    return;
  }
  ++counters_.frees;
  if (was_put_off) {
    std::erase(put_off_, AsRange(found));
    put_off_bytes_.fetch_sub(found->size_bytes, std::memory_order_relaxed);
  }
  executor_.Freed(found->id);
  if (const Recipe* const recipe = AsRange(found)->recipe) Forget(recipe);
  MarkEnds(busy);
  ledger_.RemoveRange(found);
  if (found->unmovable != Unmovable::kNo) counters_.UnmovableFor(found->unmovable).bytes -= found->size_bytes;
  found->unmovable = Unmovable::kNo;
  counters_.wanted_bytes -= found->size_bytes;
  residency_.TraceNow(TraceKind::kFreed, AsRange(found));
  residency_.Free(AsRange(found), busy);
  residency_.GiveBackSpare(Residency::After::kFree);
  residency_.TraceMemory();
}

void JobMemory::GiveBackWhatIsFreed() {
  const MutexLock lock(state_);
  gives_back_ = true;
  residency_.GiveBackWhatIsFreed();
}

// What was busy when it was freed is idle by now.
void JobMemory::GiveBackSpare() {
  if (!gives_back_) return;
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  if (making_.TryLock()) {  // who makes memory needs the slabs where they are
    GiveBackSpareSlabs();
    making_.Unlock();
  }
  const MutexLock lock(state_);
  residency_.GiveBackSpare(Residency::After::kWait);
}

void JobMemory::GiveBackSpareSlabs() {
  const MutexLock lock(state_);
  if (residency_.IsMoreThanKept(slabs_.EmptyBytes())) GiveBackEmptySlabs();
}

// A bare free would have waited: much that is freed and busy is awaited before more is created beside it.
void JobMemory::AwaitSpare(size_t size_bytes) {
  if (!gives_back_ || CapturesGoOn()) return;
  for (;;) {
    Awaited next;
    {
      const MutexLock lock(state_);
      if (!residency_.MustAwaitSpare(size_bytes)) return;
      next = WithEvents(residency_.NextToAwait());
      if (next.empty()) return;
    }
    AwaitOneOf(next, StallCause::kNoMemory);
  }
}

// By a plan memory is short for good: what frees it is marked at once, so that nobody waits for more than that.
void JobMemory::MarkEnds(const UseList& busy) {
  if (!walk_.IsActive()) return;
  for (Use use : busy.items()) timeline_.EventFor(use);
}

bool JobMemory::Charge(size_t bytes, Unmovable reason) {
  AwaitBudget([&]() SPILLWAY_REQUIRES(state_) { return bytes <= budget_bytes_; });
  if (bytes > budget_bytes_) return false;
  const base::ScopedCount call(&calls_for_memory_);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  FinishFrees([&]() SPILLWAY_REQUIRES(state_) { return !HasRoomFor(bytes) || LacksHostGrant(bytes); });
  const MutexLock making(making_);
  const bool charged = MakeRoom(bytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(state_) {
    if (!residency_.Charge(bytes)) return false;
    ++counters_.passed_through;
    counters_.UnmovableFor(reason).Add(bytes);
    Want(bytes);
    residency_.TraceMemory();
    return true;
  });
  EndMoving();
  return charged;
}

void JobMemory::Discharge(size_t bytes, Unmovable reason) {
  const MutexLock lock(state_);
  DischargeLocked(bytes, reason);
}

void JobMemory::DischargeLocked(size_t bytes, Unmovable reason) {
  counters_.UnmovableFor(reason).bytes -= bytes;
  residency_.chunks().Discharge(bytes);
  counters_.wanted_bytes -= bytes;
  residency_.TraceMemory();
}

void JobMemory::NotePassedThrough(std::uint64_t key, size_t bytes) {
  CUcontext context = nullptr;
  Driver().cuCtxGetCurrent(&context);
  const MutexLock lock(state_);
  DischargeLocked(passed_through_.Add(key, bytes, context));
}

void JobMemory::ForgetPassedThrough(std::uint64_t key) {
  const MutexLock lock(state_);
  DischargeLocked(passed_through_.Remove(key));
}

size_t JobMemory::TakePassedThrough(std::uint64_t key) {
  const MutexLock lock(state_);
  return passed_through_.Remove(key);
}

void JobMemory::ContextDestroyed(CUcontext context) {
  const MutexLock lock(state_);
  timeline_.ContextDestroyed(context);
  DischargeLocked(passed_through_.RemoveAllIn(context));
}

void JobMemory::Hold(std::uint64_t owner, CUdeviceptr address, Unmovable why) {
  const MutexLock lock(state_);
  Allocation* const found = FindUsable(address);
  if (found && found->kind == AllocationKind::kRange) holds_.Add(owner, AsRange(found), why);
}

void JobMemory::EndHold(std::uint64_t owner) { EndHold(TakeHold(owner)); }

Holds::Held JobMemory::TakeHold(std::uint64_t owner) {
  const MutexLock lock(state_);
  return holds_.Take(owner);
}

void JobMemory::PutHoldBack(std::uint64_t owner, Holds::Held held) {
  const MutexLock lock(state_);
  holds_.PutBack(owner, held);
}

// What used the range through its holder is not known: anything that is enqueued may.
void JobMemory::EndHold(Holds::Held held) {
  const MutexLock lock(state_);
  if (Range* const range = holds_.End(held)) range->uses.Merge(timeline_.Unfinished());
}

bool JobMemory::Describe(CUdeviceptr address, Allocation* out) {
  const MutexLock lock(state_);
  const Allocation* const found = FindUsable(address);
  if (!found) return false;
  *out = *found;
  return true;
}

bool JobMemory::Owns(CUdeviceptr address) {
  if (ledger_.Find(address)) return true;
  const MutexLock lock(state_);
  return residency_.OwnsAddress(address);
}

bool JobMemory::IsFreed(CUdeviceptr address) {
  const MutexLock lock(state_);
  return residency_.OwnsAddress(address) && !FindUsable(address);
}

size_t JobMemory::FreeBytes() {
  const MutexLock lock(state_);
  const size_t budget_bytes = budget_bytes_;
  return budget_bytes - std::min(budget_bytes, UsedBytes());
}

size_t JobMemory::UsedBytes() const { return counters_.wanted_bytes - slabs_.EmptyBytes() - put_off_bytes_; }

// Without a budget the device says what is free, and what is held for the next allocation is free, too.
size_t JobMemory::ShownFreeBytes(size_t device_free_bytes, size_t device_bytes) {
  const MutexLock lock(state_);
  const bool is_limited = budget_bytes_ + kGranuleBytes <= device_bytes;
  if (is_limited) return FreeMemoryOf(Given());
  const size_t held_bytes = residency_.chunks().held_bytes();
  const size_t unused_bytes = held_bytes - std::min(held_bytes, UsedBytes());
  return std::min(device_free_bytes + unused_bytes, device_bytes - std::min(device_bytes, UsedBytes()));
}

// Beyond the budget as Admits grants it. One that is larger than all before makes itself as much room on the host.
GivenMemory JobMemory::Given() {
  GivenMemory given{.budget_bytes = budget_bytes_, .used_bytes = UsedBytes()};
  given.most_bytes = given.budget_bytes;
  if (MustStay() || given.used_bytes < given.budget_bytes / 2) return given;
  const size_t room_bytes = given.budget_bytes + HostMayHoldBytes();
  const size_t wanted_bytes = counters_.wanted_bytes, largest_bytes = largest_range_bytes_;
  given.most_bytes = room_bytes - std::min(room_bytes, 2 * largest_bytes);
  const size_t alike_bytes = given.most_bytes - std::min(given.most_bytes, wanted_bytes);
  const size_t larger_bytes = (room_bytes - std::min(room_bytes, wanted_bytes)) / 3;
  given.largest_bytes =
      (alike_bytes < largest_bytes ? alike_bytes : larger_bytes) / kGranuleBytes * kGranuleBytes;
  if (!trust_.MayPark()) given.largest_bytes = std::min(given.largest_bytes, given.budget_bytes);
  return given;
}

JobMemory::Snapshot JobMemory::Read() {
  const MutexLock lock(state_);
  return ReadLocked();
}

bool JobMemory::TryRead(Snapshot* out) {
  const std::uint64_t deadline_ns = base::MonotonicNs() + kReadPatienceNs;
  while (!state_.TryLock()) {
    if (base::MonotonicNs() > deadline_ns) return false;
    sched_yield();
  }
  *out = ReadLocked();
  state_.Unlock();
  return true;
}

JobMemory::Snapshot JobMemory::ReadLocked() {
  Counters counters = stall_clock_.Settled(counters_);
  const Timeline::Totals totals = timeline_.Sum();
  counters.launches += totals.launches;
  counters.copies += totals.copies;
  return {.counters = counters,
          .held_bytes = residency_.chunks().held_bytes(),
          .held_peak_bytes = residency_.chunks().held_peak_bytes(),
          .pinned_bytes = residency_.host().pinned_bytes(),
          .pinned_peak_bytes = residency_.host().pinned_peak_bytes(),
          .slab_peak_bytes = residency_.host().slab_peak_bytes(),
          .ordinary_bytes = residency_.host().ordinary_bytes(),
          .ordinary_peak_bytes = residency_.host().ordinary_peak_bytes(),
          .host_need_bytes = host_need_bytes_,
          .iteration_calls = iteration_calls_,
          .follows_plan = walk_.IsActive(),
          .in_call = IsInCall(),
          .held_addresses = contents_.size() + outside_.size(),
          .opacity = trust_.opacity(),
          .standing = trust_.standing()};
}

bool JobMemory::IsInCall() const {
  return locked_calls_ > 0 || calls_for_memory_.load(std::memory_order_relaxed) > 0 ||
         blocked_threads.load(std::memory_order_relaxed) > 0 || calls::OthersInProgress();
}

void JobMemory::ReleaseAll() {
  trace_.Release();
  const MutexLock making(making_);
  const MutexLock lock(state_);
  while (Slab* slab = slabs_.TakeAny())
    residency_.UnmapAndGive(slab->plan.base, kGranuleBytes, &slab->chunks);
  for (const std::uint64_t id : recipes_.All()) recipes_.Forget(recipes_.Find(id));
  replays_ = nullptr;
  for (ScratchPiece& piece : scratch_) residency_.UnmapAndGive(piece.base, piece.size_bytes, &piece.chunks);
  scratch_.clear();
  scratch_use_ = {};
  residency_.ReleaseAll();
  stall_clock_.Release();
  timeline_.Reset();
}

}  // namespace spillway::interposer
