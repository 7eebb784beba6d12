#include "interposer/execute/job_memory.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/ordering_rules.h"

namespace spillway::interposer {

using base::MutexLock;
using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

// Under memory pressure every operation gets a checkpoint, so that what leaves waits for its own uses and not for what
// was enqueued behind them; without pressure events are recorded only for what must be awaited.
constexpr std::uint64_t kCheckpointInterval = 1;

// How long to hope, with nothing under way, that other threads' calls end or that the driver changes its mind.
constexpr std::uint64_t kPatienceNs = 10'000'000'000;

// How long a report at exit hopes for the state lock.
constexpr std::uint64_t kReadPatienceNs = 100'000'000;

std::uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

bool IsCapturing(StreamName name) {
  const CUstream stream = name.per_thread && !name.handle ? CU_STREAM_PER_THREAD : name.handle;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return Driver().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Range* AsRange(Allocation* allocation) { return static_cast<Range*>(allocation); }

}  // namespace

JobMemory::JobMemory(CUcontext context, int device, size_t budget_bytes, size_t host_limit_bytes)
    : context_(context),
      device_(device),
      budget_bytes_(budget_bytes / kGranuleBytes * kGranuleBytes),
      host_limit_bytes_(host_limit_bytes),
      timeline_(context),
      residency_(device, budget_bytes_, host_limit_bytes, &timeline_, &counters_),
      slabs_(&ledger_, &timeline_) {}

CUresult JobMemory::Allocate(size_t bytes, CUdeviceptr* out) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  return bytes < kSmallBytes ? AllocateSmall(bytes, out) : AllocateRange(bytes, out);
}

CUresult JobMemory::AllocateRange(size_t bytes, CUdeviceptr* out) {
  const MutexLock lock(state_);
  const size_t size_bytes = RoundUp(bytes, kGranuleBytes);
  Range* range = size_bytes >= bytes && Admits(size_bytes) ? residency_.NewRange(bytes) : nullptr;
  if (!range) {
    ++counters_.refused_allocations;
    return OutOfMemory();
  }
  ledger_.AddRange(range);
  ++counters_.allocations;
  Want(range->size_bytes);
  *out = range->base;
  return CUDA_SUCCESS;
}

// What is granted can be used: beyond the budget there must be host memory for what is away, for the range that is on
// its way back, and for the last one that leaves for it, each of them at most as large as the largest.
bool JobMemory::Admits(size_t size_bytes) {
  if (size_bytes > budget_bytes_) return false;
  const size_t wanted_bytes = counters_.wanted_bytes + size_bytes;
  largest_range_bytes_ = std::max(largest_range_bytes_, size_bytes);
  return wanted_bytes <= budget_bytes_ ||
         wanted_bytes - budget_bytes_ + 2 * largest_range_bytes_ <= host_limit_bytes_;
}

CUresult JobMemory::AllocateSmall(size_t bytes, CUdeviceptr* out) {
  for (;;) {
    {
      const MutexLock lock(state_);
      if (!slabs_.NeedsSlab(bytes)) {
        *out = slabs_.Take(bytes)->base;
        ++counters_.allocations;
        return CUDA_SUCCESS;
      }
    }
    if (const CUresult result = AddSlab(bytes); result != CUDA_SUCCESS) return result;
  }
}

// Frameworks retry after out of memory, so it is said only when it is so: in a context that a fault has ended, every
// call of ours fails, and the program is to learn why.
CUresult JobMemory::OutOfMemory() const {
  const CUresult health = residency_.Health();
  return health == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : health;
}

CUresult JobMemory::AddSlab(size_t bytes) {
  const MutexLock making(making_);
  Chunks chunks;
  const bool made = MakeRoom(kGranuleBytes, [&]() SPILLWAY_REQUIRES(state_) {
    return residency_.TakeChunks(kGranuleBytes, &chunks);
  });
  const MutexLock lock(state_);
  const CUdeviceptr base = made ? residency_.MapAnew(kGranuleBytes, chunks) : 0;
  if (!base) {
    residency_.chunks().Give(&chunks);
    ++counters_.refused_allocations;
    return OutOfMemory();
  }
  slabs_.AddSlab(bytes, base, std::move(chunks));
  Want(kGranuleBytes);
  return CUDA_SUCCESS;
}

void JobMemory::Want(size_t bytes) {
  counters_.wanted_bytes += bytes;
  counters_.wanted_peak_bytes = std::max(counters_.wanted_peak_bytes, counters_.wanted_bytes);
}

Allocation* JobMemory::FindBase(CUdeviceptr base) {
  Allocation* found = ledger_.Find(base);
  return found && found->base == base ? found : nullptr;
}

bool JobMemory::Free(CUdeviceptr base) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  const MutexLock lock(state_);
  Allocation* found = FindBase(base);
  if (found) FreeFound(found, timeline_.Unfinished());
  return found != nullptr;
}

bool JobMemory::FreeAsync(CUdeviceptr base, StreamName stream) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  const MutexLock lock(state_);
  Allocation* found = FindBase(base);
  if (!found) return false;
  // The free has its own place in the stream: behind waits for other streams' events, too, that are no work of ours.
  UseList busy;
  busy.Add(timeline_.Issue(timeline_.Of(stream)));
  FreeFound(found, busy);
  return true;
}

void JobMemory::FreeFound(Allocation* found, const UseList& busy) {
  ++counters_.frees;
  // A graph under capture may hold the address, and launches later: such memory serves nobody else.
  if (CapturesGoOn() || found->unmovable == Unmovable::kCaptured) return;
  if (found->kind == AllocationKind::kSlabBlock) {
    slabs_.Give(static_cast<SlabBlock*>(found), busy);
    return;
  }
  ledger_.RemoveRange(found);
  counters_.wanted_bytes -= found->size_bytes;
  residency_.Free(AsRange(found), busy);
}

CUresult JobMemory::Begin(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set) {
  const bool capture_somewhere = CapturesGoOn();
  const RelaxedCapture relaxed(capture_somewhere);
  set->capturing = capture_somewhere && IsCapturing(stream);
  {
    const MutexLock lock(state_);
    set->stream = timeline_.Of(stream);
    Find(addresses, set);
    if (set->names_freed && effect != Effect::kLaunches) return CUDA_ERROR_INVALID_VALUE;
    if (AllOnDevice(*set)) {
      Enter(set);
      return CUDA_SUCCESS;
    }
  }
  return BeginSlowly(addresses, set);
}

CUresult JobMemory::BeginSlowly(const Addresses& addresses, TouchSet* set) {
  const CurrentContext current(context_);
  const MutexLock making(making_);
  {
    const MutexLock lock(state_);
    set->ranges.clear();
    Find(addresses, set);
    for (Range* range : set->ranges) residency_.Pin(range);
  }
  bool resident = true;
  for (Range* range : set->ranges) resident = resident && MakeResident(range);
  const MutexLock lock(state_);
  if (resident) Enter(set);
  for (Range* range : set->ranges) residency_.Unpin(range);
  return resident ? CUDA_SUCCESS : OutOfMemory();
}

void JobMemory::Find(const Addresses& addresses, TouchSet* set) {
  for (CUdeviceptr address : addresses) {
    Allocation* found = ledger_.Find(address);
    if (!found) {
      set->names_freed = set->names_freed || residency_.OwnsAddress(address);
      continue;
    }
    if (found->kind == AllocationKind::kSlabBlock) {
      OrderBehind(static_cast<SlabBlock*>(found), *set);
    } else if (std::find(set->ranges.begin(), set->ranges.end(), found) == set->ranges.end()) {
      set->ranges.push_back(AsRange(found));
    }
  }
}

bool JobMemory::AllOnDevice(const TouchSet& set) const {
  for (const Range* range : set.ranges) {
    if (!residency_.IsMapped(range)) return false;
  }
  return true;
}

// All ranges are mapped: from here to End they stay.
void JobMemory::Enter(TouchSet* set) {
  for (Range* range : set->ranges) {
    residency_.Pin(range);
    OrderBehind(range, *set);
    if (set->capturing) range->unmovable = Unmovable::kCaptured;
  }
  ++calls_in_progress_;
}

// Waits of a capturing stream would become part of its graph, so there the host waits instead.
void JobMemory::OrderBehind(Tracked* memory, const TouchSet& set) {
  if (memory->ready_after.empty() || timeline_.AllDone(&memory->ready_after)) {
    memory->ordered.clear();
    return;
  }
  auto& ordered = memory->ordered;
  const std::uint64_t stream = timeline_.SerialOf(set.stream);
  if (std::find(ordered.begin(), ordered.end(), stream) != ordered.end()) return;
  for (Use use : memory->ready_after.items()) {
    if (set.capturing) {
      if (use.stream == set.stream) continue;
      const CUevent event = timeline_.EventFor(use);
      event ? Driver().cuEventSynchronize(event) : Driver().cuCtxSynchronize();
    } else if (ordering_rules::kUseFollowsRestore || !residency_.IsRestore(use)) {
      timeline_.OrderAfter(set.stream, use);
    }
  }
  ordered.push_back(stream);
}

bool JobMemory::MakeResident(Range* range) {
  return MakeRoom(range->size_bytes, [&]() SPILLWAY_REQUIRES(state_) {
    return residency_.IsMapped(range) || residency_.Restore(range);
  });
}

// Tries `take_now`, frees what can be freed, starts evictions, awaits the first completion, and again. Gives up when
// nothing is under way and no call in progress holds memory that could move afterwards, or when the driver keeps
// refusing what should be there.
template <class TakeNow>
bool JobMemory::MakeRoom(size_t bytes, TakeNow take_now) {
  const std::uint64_t deadline_ns = NowNs() + kPatienceNs;
  for (;;) {
    Use next;
    CUevent event = nullptr;
    CUstream stream = nullptr;
    {
      const MutexLock lock(state_);
      if (take_now()) return true;
      timeline_.set_checkpoint_interval(kCheckpointInterval);
      GiveBackEmptySlabs();
      if (take_now()) return true;
      const bool enough = !CapturesGoOn() && residency_.StartMakingRoom(bytes);
      next = residency_.NextToAwait();
      if (!next.stream) next = slabs_.NextToAwait();
      const bool others_may_end = calls_in_progress_ > 0 && NowNs() < deadline_ns;
      if (!next.stream && !others_may_end) {
        if (take_now()) return true;
        if (residency_.Health() != CUDA_SUCCESS || NowNs() > deadline_ns) return false;
        // What was busy a moment ago may be done by now; then there is more to be had.
        if (!enough && (CapturesGoOn() || !residency_.StartMakingRoom(bytes))) return false;
        continue;
      }
      if (next.stream) {
        event = timeline_.EventFor(next);
        stream = timeline_.HandleOf(next.stream);
      }
    }
    next.stream ? Await(next, event, stream) : static_cast<void>(sched_yield());
  }
}

// Waits for the event, or where none can be recorded for the whole stream; after an error the work is over, too.
void JobMemory::Await(Use use, CUevent event, CUstream stream) {
  const std::uint64_t start_ns = NowNs();
  event ? Driver().cuEventSynchronize(event) : Driver().cuStreamSynchronize(stream);
  const MutexLock lock(state_);
  if (!event) timeline_.Completed(use.stream, use.sequence);
  counters_.stall_ns += NowNs() - start_ns;
}

void JobMemory::GiveBackEmptySlabs() {
  while (std::unique_ptr<Slab> slab = slabs_.TakeEmpty()) {
    residency_.UnmapAndGive(slab->plan.base, kGranuleBytes, &slab->chunks);
    counters_.wanted_bytes -= kGranuleBytes;
  }
}

void JobMemory::End(TouchSet* set, Effect effect) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const MutexLock lock(state_);
  --calls_in_progress_;
  ++(effect == Effect::kLaunches ? counters_.launches : counters_.copies);
  if (set->capturing) {
    for (Range* range : set->ranges) residency_.Unpin(range);
    return;
  }
  const Use use = timeline_.Issue(set->stream);
  for (Range* range : set->ranges) {
    residency_.Unpin(range);
    residency_.Used(range, use, effect != Effect::kReads);
  }
}

bool JobMemory::Captures(StreamName stream) { return IsCapturing(stream); }

bool JobMemory::IsAway(CUdeviceptr address) {
  const MutexLock lock(state_);
  const Allocation* found = ledger_.Find(address);
  return found && found->kind == AllocationKind::kRange &&
         residency_.HostCopy(static_cast<const Range*>(found));
}

bool JobMemory::ReadAway(CUdeviceptr source, void* destination, size_t bytes) {
  const MutexLock lock(state_);
  Allocation* found = ledger_.Find(source);
  if (!found || found->kind != AllocationKind::kRange) return false;
  const auto* copy = static_cast<const std::byte*>(residency_.HostCopy(AsRange(found)));
  const size_t offset = source - found->base;
  if (!copy || offset > found->requested_bytes || bytes > found->requested_bytes - offset) return false;
  std::memcpy(destination, copy + offset, bytes);
  ++counters_.served_from_host;
  return true;
}

bool JobMemory::Charge(size_t bytes) {
  if (bytes > budget_bytes_) return false;
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  const MutexLock making(making_);
  return MakeRoom(bytes, [&]() SPILLWAY_REQUIRES(state_) {
    if (!residency_.Charge(bytes)) return false;
    ++counters_.passed_through;
    Want(bytes);
    return true;
  });
}

void JobMemory::Discharge(size_t bytes) {
  const MutexLock lock(state_);
  DischargeLocked(bytes);
}

void JobMemory::DischargeLocked(size_t bytes) {
  residency_.chunks().Discharge(bytes);
  counters_.wanted_bytes -= bytes;
}

void JobMemory::NotePassedThrough(CUdeviceptr base, size_t bytes) {
  CUcontext context = nullptr;
  Driver().cuCtxGetCurrent(&context);
  const MutexLock lock(state_);
  // The driver gave the address out anew before its free was noted here.
  const auto [at, is_new] = passed_through_.try_emplace(base, PassedThrough{bytes, context});
  if (is_new) return;
  DischargeLocked(at->second.bytes);
  at->second = {bytes, context};
}

void JobMemory::ForgetPassedThrough(CUdeviceptr base) {
  const MutexLock lock(state_);
  const auto at = passed_through_.find(base);
  if (at == passed_through_.end()) return;
  DischargeLocked(at->second.bytes);
  passed_through_.erase(at);
}

void JobMemory::ForgetPassedThroughIn(CUcontext context) {
  const MutexLock lock(state_);
  for (auto at = passed_through_.begin(); at != passed_through_.end();) {
    if (at->second.context != context) {
      ++at;
      continue;
    }
    DischargeLocked(at->second.bytes);
    at = passed_through_.erase(at);
  }
}

std::vector<Use> JobMemory::IssuedOn(StreamName stream) {
  const MutexLock lock(state_);
  StreamState* state = timeline_.Of(stream);
  return {{state, timeline_.IssuedOn(state)}};
}

std::vector<Use> JobMemory::IssuedIn(CUcontext context) {
  const MutexLock lock(state_);
  return timeline_.IssuedIn(context);
}

void JobMemory::Completed(const std::vector<Use>& uses) {
  const MutexLock lock(state_);
  for (Use use : uses) timeline_.Completed(use.stream, use.sequence);
}

void JobMemory::StreamDestroyed(CUstream stream) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  const MutexLock lock(state_);
  timeline_.Destroyed(stream);
}

void JobMemory::TakeCheckpoint(StreamName stream) {
  const CurrentContext current(context_);
  const MutexLock lock(state_);
  timeline_.TakeCheckpoint(timeline_.Of(stream));
}

void JobMemory::Enqueued(StreamName stream) {
  const MutexLock lock(state_);
  timeline_.Issue(timeline_.Of(stream));
}

bool JobMemory::Describe(CUdeviceptr address, Allocation* out) {
  const MutexLock lock(state_);
  Allocation* found = ledger_.Find(address);
  if (!found) return false;
  *out = *found;
  return true;
}

bool JobMemory::IsFreed(CUdeviceptr address) {
  const MutexLock lock(state_);
  return residency_.OwnsAddress(address) && !ledger_.Find(address);
}

size_t JobMemory::FreeBytes() {
  const MutexLock lock(state_);
  return budget_bytes_ - std::min(budget_bytes_, counters_.wanted_bytes);
}

JobMemory::Snapshot JobMemory::Read() {
  const MutexLock lock(state_);
  return ReadLocked();
}

bool JobMemory::TryRead(Snapshot* out) {
  const std::uint64_t deadline_ns = NowNs() + kReadPatienceNs;
  while (!state_.TryLock()) {
    if (NowNs() > deadline_ns) return false;
    sched_yield();
  }
  *out = ReadLocked();
  state_.Unlock();
  return true;
}

JobMemory::Snapshot JobMemory::ReadLocked() {
  return {counters_, residency_.chunks().held_bytes(), residency_.chunks().held_peak_bytes(),
          residency_.host().pinned_peak_bytes()};
}

void JobMemory::ReleaseAll() {
  const MutexLock making(making_);
  const MutexLock lock(state_);
  for (auto& slab : slabs_.TakeAll()) residency_.UnmapAndGive(slab->plan.base, kGranuleBytes, &slab->chunks);
  residency_.ReleaseAll();
  timeline_.Reset();
}

}  // namespace spillway::interposer
